"""Draining a unit: running jobs finish, nothing new starts there."""

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

ONE = ("--require", "{gpu:1}")


@pytest.mark.parametrize("kill", [False, True])
def test_nothing_new_starts_on_a_drained_unit(
    shared: GrassHome, gate: Fifo, *, kill: bool
) -> None:
    shared.ok("create-queue", "q", "--json", "{gpu:2}")
    line = f"echo {{gpu}}; read x < {gate}"
    first = shared.enqueue("q", *ONE, line)
    assert "gpu:0 is drained" in shared.ok("drain", "gpu:0")
    assert shared.ok("drain", "gpu:0") == "gpu:0 was drained already\n"
    if kill:
        shared.replace_daemon()
    ids = [shared.enqueue("q", *ONE, line) for _ in range(2)]
    assert shared.states([first, *ids]) == ["running", "running", "queued"]
    gate.tell(times=3)
    shared.wait(first, *ids)
    assert [shared.logs(id) for id in (first, *ids)] == ["0\n", "1\n", "1\n"]
    last = shared.enqueue("q", "--require", "{gpu:2}", "--", "true")
    assert shared.state(last) == "queued"
    assert shared.client.overview()["workers"][0]["drained"] == {"gpu": ["0"]}
    assert "drained" in shared.ok("show")
    assert shared.ok("resume", "gpu:0") == "gpu:0 is in use again\n"
    assert shared.wait(last)["state"] == "succeeded"
    assert shared.ok("resume", "gpu:0") == "gpu:0 was not drained\n"


def test_who_waits_for_a_drained_unit_is_told(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "--json", "{gpu:1}")
    shared.ok("drain", "gpu:0")
    id = shared.enqueue("q", *ONE, "--", "true")
    [worker] = shared.client.overview()["workers"]
    [short] = [one for one in shared.client.explain(id)["constraints"] if not one["ok"]]
    assert (short["what"], short["need"], short["have"]) == ("gpu", "1", "0")
    assert worker["name"]
    assert "gpu" in shared.reason(id)
    shared.ok("resume", "gpu:0")
    assert shared.wait(id)["state"] == "succeeded"


def test_resuming_everything_leaves_a_drained_unit(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "--json", "{gpu:1}")
    shared.ok("drain", "gpu:0")
    shared.ok("resume")
    assert shared.client.overview()["workers"][0]["drained"] == {"gpu": ["0"]}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["drain"], 2),
        (["drain", "gpu"], 4),
        (["drain", "gpu:9"], 4),
        (["resume", "nosuch"], 4),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_units_change_nothing(
    shared: GrassHome, words: list[str], code: int
) -> None:
    shared.ok("create-queue", "q", "--json", "{gpu:1}")
    before = shared.client.overview()
    refused = shared.run(*words)
    assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.client.overview() == before
