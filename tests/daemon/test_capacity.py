"""Units that come and go while jobs run."""

import json

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome

pytestmark = pytest.mark.daemon


def worker(home: GrassHome) -> Document:
    [found] = home.client.overview()["workers"]
    return dict(found)


def test_an_added_unit_is_used_at_once(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("capacity", "add", '{slot:{"a":1}}')
    line = f"echo {{slot}}; read x < {gate}"
    ids = [shared.enqueue("--require", "{slot:1}", line) for _ in range(2)]
    assert shared.states(ids) == ["running", "queued"]
    assert shared.ok("capacity", "add", "{slot:{'4':1}}") == "added {slot:{'4':1}}\n"
    assert shared.states(ids) == ["running", "running"]
    gate.tell(times=2)
    shared.wait(*ids)
    assert [shared.logs(id) for id in ids] == ["a\n", "4\n"]


def test_added_units_are_shown_and_outlive_a_kill(shared: GrassHome) -> None:
    shared.ok("capacity", "add", "{gpu:{'4':1},licence:[3]}")
    before = worker(shared)
    assert before["capacity"]["gpu"] == {"4": 1}
    assert before["capacity"]["licence"] == {"0": 3}
    assert before["origin"]["gpu"] == {"4": "added"}
    for words in ((), ("show",)):
        assert "licence" in shared.ok("capacity", *words)
    [shown] = json.loads(shared.ok("capacity", "show", "--json"))["workers"]
    assert shown["capacity"] == before["capacity"]
    shared.replace_daemon()
    assert worker(shared) == before
    id = shared.enqueue("-g", "1", "--", "echo", "{gpu}")
    shared.wait(id)
    assert shared.logs(id) == "4\n"


@pytest.mark.parametrize("kill", [False, True])
def test_a_unit_that_is_held_goes_when_its_job_ends(
    shared: GrassHome, gate: Fifo, *, kill: bool
) -> None:
    shared.ok("capacity", "add", "{slot:{'a':1,'b':1}}")
    line = f"read x < {gate}"
    ids = [shared.enqueue("--require", "{slot:1}", line) for _ in range(2)]
    held = [next(iter(shared.client.job(id)["allocation"]["slot"])) for id in ids]
    shared.ok("capacity", "remove", f"slot:{held[0]}")
    if kill:
        shared.replace_daemon()
    third = shared.enqueue("--require", "{slot:1}", "--", "echo", "{slot}")
    assert shared.states([*ids, third]) == ["running", "running", "queued"]
    gate.tell(times=2)
    assert shared.wait(*ids)["state"] == "succeeded"
    shared.wait(third)
    assert shared.logs(third) == f"{held[1]}\n"
    assert worker(shared)["capacity"]["slot"] == {held[1]: 1}
    assert shared.run("enqueue", "--require", "{slot:2}", "--", "true").returncode == 6


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "{slot:"], 2, "column"),
        (["remove", "cpu:0"], 5, "found on the machine"),
        (["remove", "printer:0"], 5, "declared by a queue"),
        (["frobnicate"], 2, "frobnicate"),
        (["show", "slot:1"], 2, "slot:1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_capacity_changes_nothing(
    shared: GrassHome, words: list[str], code: int, said: str
) -> None:
    shared.ok("create-queue", "q", "--json", "{printer:1}")
    before = worker(shared)
    refused = shared.run("capacity", *words)
    assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr
    assert said in refused.stderr
    assert worker(shared) == before
