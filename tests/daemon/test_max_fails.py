"""A typo must not burn five hundred jobs: `--max-fails`."""

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome

pytestmark = pytest.mark.daemon

SLOT = ("--json", "{slot:1}", "--default-require", "{slot:1}")


def queue(home: GrassHome) -> Document:
    queues: list[Document] = home.client.overview()["queues"]
    [found] = [one for one in queues if one["name"] == "q"]
    return found


def counts(home: GrassHome, ids: list[int]) -> dict[str, int]:
    states = home.states(ids)
    return {state: states.count(state) for state in set(states)}


@pytest.mark.parametrize("kill", [False, True])
def test_an_array_stops_after_exactly_as_many_failures(
    shared: GrassHome, *, kill: bool
) -> None:
    shared.ok("create-queue", "q", *SLOT)
    ids = shared.enqueue_array("q", "--array", "1-50", "--max-fails", "3", "--",
                               "false")  # fmt: skip
    shared.wait(*ids[:3])
    if kill:
        shared.replace_daemon()
    # A job of another queue shows that starts have been decided on since.
    shared.wait(shared.enqueue("--", "true"))
    assert counts(shared, ids) == {"failed": 3, "queued": 47}
    reason = f"3 jobs of the array {ids[0]} failed"
    assert (queue(shared)["paused"], queue(shared)["paused_reason"]) == (True, reason)
    assert f"queue q paused by itself: {reason}" in shared.ok("show")
    assert "paused" in shared.reason(ids[3])
    assert reason in shared.ok("explain", str(ids[3]))
    assert shared.ok("resume", "q") == "queue q is running again\n"
    shared.wait(*ids[3:6])
    shared.wait(shared.enqueue("--", "true"))
    assert counts(shared, ids) == {"failed": 6, "queued": 44}
    assert queue(shared)["paused_reason"] == reason


def test_the_count_goes_on_after_a_kill(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("create-queue", "q", *SLOT)
    line = f"read code < {gate}; exit $code"
    ids = shared.enqueue_array("q", "--array", "1-9", "--max-fails", "3", line)
    for code in ("1", "0", "1"):
        gate.tell(code)
    shared.wait(*ids[:3])
    shared.replace_daemon()
    gate.tell("1")
    shared.wait(ids[3])
    shared.wait(shared.enqueue("--", "true"))
    assert counts(shared, ids) == {"failed": 3, "succeeded": 1, "queued": 5}
    assert queue(shared)["paused"]


def test_a_queue_counts_failures_in_a_row(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("create-queue", "q", *SLOT, "--max-fails", "2")
    line = f"read code < {gate}; exit $code"
    ids = [shared.enqueue("q", line) for _ in range(6)]
    for code in ("1", "0", "1"):
        gate.tell(code)
    shared.wait(*ids[:3])
    assert (queue(shared)["fails"], queue(shared)["paused"]) == (1, False)
    shared.replace_daemon()
    gate.tell("1")
    shared.wait(ids[3])
    shared.wait(shared.enqueue("--", "true"))
    assert shared.states(ids[4:]) == ["queued", "queued"]
    assert queue(shared)["paused_reason"] == "2 jobs in a row failed"
    shared.ok("resume", "q")
    assert (queue(shared)["fails"], queue(shared)["paused_reason"]) == (0, None)
    gate.tell("0", times=2)
    assert shared.wait(*ids)["state"] == "succeeded"


def test_retries_and_cancelled_members_do_not_count(
    shared: GrassHome, gate: Fifo
) -> None:
    shared.ok("create-queue", "q", *SLOT)
    line = f"read code < {gate}; exit $code"
    ids = shared.enqueue_array(
        "q", "--array", "1-4", "--max-fails", "2", "--retries", "1", line
    )
    shared.ok("cancel", str(ids[3]))
    for code in ("1", "0", "1", "1"):
        gate.tell(code)
    shared.wait(*ids[:2])
    assert not queue(shared)["paused"]
    gate.tell("0", times=2)
    shared.wait(*ids)
    assert counts(shared, ids) == {"succeeded": 2, "failed": 1, "cancelled": 1}


def test_other_queues_go_on(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", *SLOT)
    shared.ok("create-queue", "other", "--default-require", "{slot:1}")
    bad = shared.enqueue_array("q", "--array", "1-3", "--max-fails", "1", "--", "false")
    good = [shared.enqueue("other", "--", "true") for _ in range(2)]
    assert shared.wait(*good)["state"] == "succeeded"
    assert counts(shared, bad) == {"failed": 1, "queued": 2}
