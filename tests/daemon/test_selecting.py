"""Which jobs and queues words mean, and input that once led astray."""

import time

import pytest

from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.daemon


def test_a_hostile_pattern_is_answered_in_time(shared: GrassHome) -> None:
    id = shared.enqueue("--name", "a" * 40 + "!", "--", "true")
    shared.wait(id)
    for words in (
        ("cancel", "name~(a+)+$"),
        ("show", "name~(a+)+$"),
        ("wait", "name~(a|a)*$"),
    ):
        began = time.monotonic()
        ran = shared.run(*words)
        # One that tries every way to match would take days.
        assert time.monotonic() - began < PATIENCE_S / 3, words
        assert "Traceback" not in ran.stderr
    assert shared.ok("show", "-q", r"name~^a{40}\!$").split() == [str(id)]


def test_a_thousand_ids_can_be_named_one_by_one(shared: GrassHome) -> None:
    reply = shared.client.enqueue_many(
        ["true"] * 1200, require="{cpu:0.001}", hold=True
    )
    ids = [str(id) for id in range(reply["first"], reply["last"] + 1)]
    shared.ok("cancel", "--yes", *ids)
    assert shared.run("wait", *ids).returncode == 1
    shown = shared.shell(f"grass wait --json $(seq {ids[0]} {ids[-1]}) | wc -c")
    assert int(shown.stdout) > 1200 * len('{"id":1}')


def test_waiting_for_nothing_that_exists_is_an_error(shared: GrassHome) -> None:
    ended = shared.enqueue("--project", "there", "--", "true")
    shared.wait(ended)
    assert shared.run("wait", "--timeout", "0", str(ended)).returncode == 0
    assert shared.run("wait", "@there").returncode == 0
    for words in (["@nosuch"], ["name~nosuch"], ["queue:nosuch"], ["999999", "1"]):
        ran = shared.run("wait", *words)
        assert ran.returncode == 4, words
        assert ran.stderr.count("\n") == 1


def test_a_queue_named_twice_is_refused(shared: GrassHome) -> None:
    shared.ok("create-queue", "q2")
    shared.ok("create-queue", "job1")
    for words in (
        ["q2", "--queue", "job1"],
        ["q2", "--queue", "job1", "--", "true"],
    ):
        before = shared.client.overview()["daemon"]["jobs"]
        ran = shared.run("enqueue", *words)
        assert ran.returncode in (2, 4), (words, ran.stdout)
        assert ran.stderr.count("\n") == 1
        assert shared.client.overview()["daemon"]["jobs"] == before


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"command":"true","require":{"cpu":999}}', "999"),
        ('{"command":"true","after":["999999"]}', "999999"),
    ],
)
def test_one_bad_line_among_many_is_named(
    shared: GrassHome, bad: str, said: str
) -> None:
    good = '{"command":"true"}\n'
    before = shared.client.overview()["daemon"]["jobs"]
    lines = good * 2500 + "# a remark\n\n" + bad + "\n" + good * 10
    ran = shared.run("enqueue", "--from", "-", input=lines)
    assert ran.returncode != 0
    assert "stdin, line 2503" in ran.stderr
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert shared.client.overview()["daemon"]["jobs"] == before


@pytest.mark.parametrize(
    "words", ["show", "show --json", "enqueue -- true", "logs last", "events"]
)
def test_a_closed_stdout_is_no_disaster(shared: GrassHome, words: str) -> None:
    shared.wait(shared.enqueue("--", "echo", "text"))
    ran = shared.shell(f"grass {words} >&-")
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") <= 1
    assert "Traceback" not in shared.log()


@pytest.fixture
def grid(home: GrassHome) -> GrassHome:
    """Jobs 1-2 of the project have succeeded, 3 has failed, 4 waits; 5 is another's."""
    for line in ("true", "true", "false"):
        home.enqueue("--project", "grid", "--name", "a", "--", line)
    home.wait(1, 2, 3)
    home.enqueue("--project", "grid", "--name", "b", "--hold", "--", "true")
    home.wait(home.enqueue("--project", "other", "--name", "b", "--", "false"))
    return home


def test_words_of_different_kinds_narrow_in_every_verb(grid: GrassHome) -> None:
    def planned(*words: str) -> list[int]:
        return [int(one) for one in grid.ok(*words, "--dry-run", "-q").split()]

    assert planned("rerun", "@grid", "state:failed") == [3]
    assert planned("rerun", "--any", "@grid", "state:failed") == [1, 2, 3, 5]
    assert planned("rerun", "@grid", "@other", "state:failed", "state:lost") == [3, 5]
    assert planned("remove", "name~^b", "all") == []
    assert planned("remove", "name~^b", "all", "state:failed") == [5]
    assert planned("cancel", "name~^b", "queue:default") == [4]
    assert planned("release", "1-9", "@grid") == [4]
    assert planned("remove", "@grid", "state:succeeded", "last") == [2]
    shown = grid.ok("show", "@grid", "state:failed", "state:succeeded", "-q")
    assert sorted(shown.split()) == ["1", "2", "3"]
    assert grid.ok("show", "-q", "default", "last", "@grid") == "4\n"
    assert grid.ok("show", "--csv=id", "@grid", "state:failed").split() == ["id", "3"]
    assert grid.run("wait", "@grid", "state:succeeded").returncode == 0
    assert grid.run("wait", "@grid", "state:failed").returncode == 1
    assert grid.run("explain", "@grid", "state:failed", "last").returncode == 0
    assert grid.run("logs", "@grid", "state:lost").returncode == 4


def test_an_id_that_is_left_out_is_named_and_nothing_is_done(grid: GrassHome) -> None:
    for words in (
        ("rerun", "--yes", "3", "1", "state:failed"),
        ("remove", "--yes", "1", "state:failed"),
        ("cancel", "--yes", "1", "4", "all"),
        ("wait", "1", "state:failed"),
        ("logs", "1", "state:failed"),
        ("show", "1", "state:failed"),
        ("show", "-q", "1", "3", "state:failed"),
        ("show", "--csv", "1", "state:failed"),
        ("explain", "1", "state:failed"),
    ):
        ran = grid.run(*words)
        assert ran.returncode == 4, words
        state = "all" if "all" in words else "state:failed"
        assert f"job 1 is not `{state}`" in ran.stderr
        assert ran.stderr.count("\n") == 1
    states = ["succeeded", "succeeded", "failed", "held", "failed"]
    assert grid.states(range(1, 6)) == states


def test_how_many_and_how_many_of_them_run_is_said_first(grid: GrassHome) -> None:
    ran = grid.run("rerun", "@grid")
    assert ran.returncode == 2
    assert "this would rerun 3 jobs, none of them running (add --yes" in ran.stderr
    running = grid.enqueue("--project", "grid", "--", "sleep", "600")
    grid.await_event("started", running)
    ran = grid.run("cancel", "--yes", "@grid")
    assert ran.returncode == 0
    assert ran.stderr == "grass: will cancel 2 jobs, 1 of them running\n"
    assert ran.stdout == "cancelled 2 jobs\n"
