"""Arrays: ids, caps, and queues that pause when too many fail."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import WORKER

from grass.broker.core.calls import EditQueue
from grass.link.messages import Start
from grass.model.jobs.lifecycle import JobState
from grass.model.queue import QueuePatch

Meanwhile = Callable[[Brokerage], None]
MakeBroker = Callable[[str], Brokerage]


@pytest.fixture
def wide(broker_of: MakeBroker) -> Brokerage:
    return broker_of("{cpu:8}")


def fail(broker: Brokerage, *jobs: int) -> None:
    for job in jobs:
        broker.exit(job, 1)


def is_paused(broker: Brokerage, queue: str = "default") -> bool:
    return broker.state.queues[queue].paused


def test_members_have_ids_that_follow_and_an_index_each(broker: Brokerage) -> None:
    broker.enqueue()
    members = broker.array(3)
    found = [broker.job(job).job for job in members]
    assert members == [2, 3, 4]
    assert [job.index for job in found] == [1, 2, 3]
    assert {job.array for job in found} == {2}
    assert len({job.spec for job in found}) == 1
    broker.exit(1)
    assert [start.index for start in broker.said(Start)] == [2]


def test_a_job_that_is_no_member_has_no_index(broker: Brokerage) -> None:
    job = broker.job(broker.enqueue()).job
    assert (job.index, job.array) == (None, None)


def test_a_cap_holds_and_the_next_follows_each_end(
    wide: Brokerage, meanwhile: Meanwhile
) -> None:
    members = wide.array(6, at_most=2)
    assert wide.running() == members[:2]
    meanwhile(wide)
    assert wide.running() == members[:2]
    wide.exit(members[0])
    assert wide.running() == members[1:3]
    wide.exit(members[1], 1)
    assert wide.running() == members[2:4]


def test_a_capped_array_does_not_block_others_of_its_shape(
    wide: Brokerage, meanwhile: Meanwhile
) -> None:
    members = wide.array(10, at_most=2)
    meanwhile(wide)
    alone = wide.enqueue()
    others = wide.array(3, at_most=1)
    free = wide.array(2)
    assert wide.running() == [*members[:2], alone, others[0], *free]


def test_a_cap_holds_across_cancels_holds_and_retries(
    wide: Brokerage, meanwhile: Meanwhile
) -> None:
    members = wide.array(6, at_most=2, retries=1)
    wide.hold(members[2])
    wide.cancel(members[3])
    wide.exit(members[0], 1)
    assert wide.running() == members[:2]
    meanwhile(wide)
    wide.exit(members[0])
    assert wide.running() == [members[1], members[4]]
    wide.release(members[2])
    assert wide.running() == [members[1], members[4]]
    wide.exit(members[1])
    assert wide.running() == [members[2], members[4]]


def test_a_member_that_runs_again_is_kept_to_the_cap(
    wide: Brokerage, meanwhile: Meanwhile
) -> None:
    members = wide.array(2, at_most=1)
    wide.exit(members[0])
    wide.exit(members[1])
    assert not wide.state.arrays.active
    meanwhile(wide)
    wide.rerun(*members)
    assert wide.running() == members[:1]
    wide.exit(members[0])
    assert wide.running() == members[1:]


def test_too_many_failed_members_pause_the_queue_and_say_so(
    wide: Brokerage, meanwhile: Meanwhile
) -> None:
    members = wide.array(20, max_fails=3, at_most=1)
    fail(wide, *members[:2])
    assert not is_paused(wide)
    meanwhile(wide)
    fail(wide, members[2])
    assert is_paused(wide)
    reason = wide.state.queues["default"].paused_reason or ""
    assert reason.startswith(f"3 jobs of the array {members[0]} failed")
    assert not wide.running()
    meanwhile(wide)
    assert is_paused(wide)
    assert wide.state.queues["default"].paused_reason == reason
    assert wide.enqueue() not in wide.running()


def test_resuming_counts_anew(wide: Brokerage, meanwhile: Meanwhile) -> None:
    members = wide.array(20, max_fails=2, at_most=1)
    fail(wide, *members[:2])
    wide.resume("default")
    assert wide.state.queues["default"].paused_reason is None
    meanwhile(wide)
    fail(wide, members[2])
    assert not is_paused(wide)
    fail(wide, members[3])
    assert is_paused(wide)


def test_failures_of_an_array_need_not_be_in_a_row(wide: Brokerage) -> None:
    members = wide.array(9, max_fails=2, at_most=1)
    fail(wide, members[0])
    wide.exit(members[1])
    fail(wide, members[2])
    assert is_paused(wide)


def test_what_is_cancelled_lost_or_tried_again_is_no_failed_member(
    wide: Brokerage,
) -> None:
    members = wide.array(9, max_fails=1, at_most=1, retries=1)
    wide.cancel(members[0])
    wide.exit(members[0], 1)
    wide.exit(members[1], None, lost=True)
    fail(wide, members[2])
    assert not is_paused(wide)
    fail(wide, members[2])
    assert is_paused(wide)


def test_one_arrays_failures_are_not_anothers(wide: Brokerage) -> None:
    one = wide.array(4, max_fails=2)
    two = wide.array(4, max_fails=2)
    fail(wide, one[0], two[0])
    assert not is_paused(wide)
    fail(wide, two[1])
    assert "2 jobs" in (wide.state.queues["default"].paused_reason or "")
    assert f"array {two[0]}" in (wide.state.queues["default"].paused_reason or "")


def test_running_members_finish_when_the_queue_pauses(wide: Brokerage) -> None:
    members = wide.array(9, max_fails=1, at_most=3)
    fail(wide, members[0])
    assert wide.running() == members[1:3]
    wide.exit(members[1])
    fail(wide, members[2])
    assert wide.states(*members[:3]) == ["failed", "succeeded", "failed"]
    assert not wide.running()


def test_an_arrays_failures_leave_with_its_last_member(wide: Brokerage) -> None:
    members = wide.array(3, max_fails=2)
    fail(wide, *members[:2])
    wide.resume("default")
    wide.exit(members[2])
    assert not wide.state.arrays.active
    assert wide.store.load(0).arrays == {}


def test_members_in_another_queue_pause_that_one_and_count_anew_with_it(
    wide: Brokerage, meanwhile: Meanwhile
) -> None:
    wide.create_queue("q1", "{cpu:8}")
    wide.pause()
    members = wide.array(6, max_fails=1)
    wide.edit(*members[1:4], queue="q1")
    wide.resume()
    meanwhile(wide)
    fail(wide, members[1])
    assert is_paused(wide, "q1")
    assert not is_paused(wide)
    wide.resume("q1")
    assert wide.state.arrays.active[members[0]].fails == 0


@pytest.fixture
def strict(wide: Brokerage) -> Brokerage:
    """A broker whose queue q1 pauses after three failures in a row."""
    wide.create_queue("q1", "{cpu:8}", max_fails=3)
    return wide


def test_a_queue_pauses_after_so_many_failures_in_a_row(
    strict: Brokerage, meanwhile: Meanwhile
) -> None:
    jobs = [strict.enqueue(queue="q1") for _ in range(8)]
    waits = strict.enqueue(queue="q1", require="{cpu:8}")
    fail(strict, *jobs[:2])
    strict.exit(jobs[2])
    fail(strict, *jobs[3:5])
    meanwhile(strict)
    assert not is_paused(strict, "q1")
    fail(strict, jobs[5])
    assert is_paused(strict, "q1")
    reason = strict.state.queues["q1"].paused_reason or ""
    assert reason.startswith("3 jobs in a row failed")
    fail(strict, *jobs[6:])
    assert strict.job_state(waits) is JobState.QUEUED
    meanwhile(strict)
    strict.resume("q1")
    assert strict.started_jobs() == [waits]
    fail(strict, waits)
    assert not is_paused(strict, "q1")
    assert strict.state.queues["q1"].fails == 1


def test_a_paused_queue_does_not_stop_another(strict: Brokerage) -> None:
    jobs = [strict.enqueue(queue="q1") for _ in range(3)]
    fail(strict, *jobs)
    assert is_paused(strict, "q1")
    assert strict.enqueue() in strict.running()


def test_a_limit_on_failures_can_be_set_and_lifted(strict: Brokerage) -> None:
    strict.call(EditQueue(ME, "default", WORKER, QueuePatch(max_fails=1)))
    fail(strict, strict.enqueue())
    assert is_paused(strict)
    strict.resume("default")
    strict.call(EditQueue(ME, "default", WORKER, QueuePatch(max_fails=None)))
    fail(strict, strict.enqueue(), strict.enqueue())
    assert not is_paused(strict)


def test_cancelled_members_that_never_ran_leave_nothing(broker: Brokerage) -> None:
    members = broker.array(5, at_most=1, max_fails=1)
    broker.cancel(*members)
    broker.exit(members[0], 1)
    assert not broker.state.arrays.active
    assert not is_paused(broker)
    assert broker.store.load(0).arrays == {}
