"""Verbs on more jobs than are done at a time: others go on between the slices."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage, outcome_of
from tests.support.building import WORKER

from grass.broker.core.calls import (
    Cancel,
    DeleteQueue,
    Edit,
    HoldJobs,
    Prune,
    ReleaseJobs,
    Rerun,
    SetPaused,
)
from grass.broker.core.jobs import bulk_calls
from grass.broker.core.jobs.bulk_calls import BulkCall
from grass.errors import NeverFits, NotFound, Refused, StorageError
from grass.link.messages import Start
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_calls, "SLICE", 2)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokerage]:
    made = Brokerage(tmp_path / "grass.db", "{cpu:1}")
    yield made
    made.store.close()


def waiting_jobs(broker: Brokerage, count: int, **settings: Any) -> list[int]:
    """Enqueue jobs that do not start."""
    broker.call(SetPaused(ME, True))
    return [broker.enqueue("work", **settings) for _ in range(count)]


def ended_jobs(broker: Brokerage, count: int, **settings: Any) -> list[int]:
    jobs = []
    for _ in range(count):
        jobs.append(broker.enqueue("work", **settings))
        broker.start(jobs[-1])
        broker.exit(jobs[-1], 1)
    return jobs


def stored(broker: Brokerage, jobs: list[int]) -> list[str]:
    return [one.state.value for one in broker.store.outcomes(jobs)]


def test_a_slice_is_committed_before_the_next_is_begun(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 5)
    reply = broker.step(HoldJobs(ME, jobs))
    seen = []
    while reply.reply is None:
        broker.flush()
        seen.append(stored(broker, jobs).count("held"))
    broker.flush()
    assert seen == [2, 4, 5]
    assert outcome_of(reply).jobs == jobs
    assert stored(broker, jobs) == ["held"] * 5


def test_a_small_call_goes_between_the_slices_of_a_large_one(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 6)
    reply = broker.step(Cancel(ME, jobs))
    broker.flush()
    extra = broker.step(HoldJobs(ME, [jobs[-1]]))
    assert extra.jobs == [jobs[-1]]
    new = broker.step(broker.new_job("more"))
    broker.flush()
    assert reply.reply is None
    assert stored(broker, [new.first]) == ["queued"]


def test_of_two_large_calls_the_first_is_finished_first(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 6)
    held = broker.step(HoldJobs(ME, jobs))
    broker.flush()
    released = broker.call(ReleaseJobs(ME, list(reversed(jobs))))
    assert held.finished
    assert sorted(released.jobs) == jobs
    assert stored(broker, jobs) == ["queued"] * 6


@pytest.mark.parametrize("verb", [HoldJobs, Cancel])
def test_a_job_does_not_start_before_its_slice(
    broker: Brokerage, verb: type[HoldJobs] | type[Cancel]
) -> None:
    jobs = waiting_jobs(broker, 3)
    last = broker.enqueue("work", priority=9)
    other = broker.enqueue("other")
    reply = broker.step(verb(ME, [*jobs, last]))
    started = broker.call(SetPaused(ME, False)) and broker.said(Start)
    while reply.reply is None or broker.state.bulk.verbs:
        broker.flush()
        started += broker.said(Start)
    broker.flush()
    started += broker.said(Start)
    assert [one.job for one in started] == [other]
    assert sorted(outcome_of(reply).jobs) == [*jobs, last]


def test_what_is_not_done_is_told_once(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 30)
    broker.call(HoldJobs(ME, jobs))
    done = broker.call(HoldJobs(ME, jobs))
    assert not done.changed
    assert len(done.warnings) == 11
    assert done.warnings[-1] == "and 20 more were left alone"


def test_after_a_crash_the_same_call_does_the_rest(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 6)
    broker.step(Cancel(ME, jobs))
    broker.flush()
    broker.restart()
    assert stored(broker, jobs) == ["cancelled"] * 2 + ["queued"] * 4
    assert broker.cancel(*jobs) == jobs[2:]


def test_an_edit_is_refused_before_its_first_change(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 5)
    broker.cancel(jobs[-1])
    assert "has ended" in broker.refused(
        Refused, lambda: broker.edit(*jobs, priority=4)
    )
    assert {broker.state.jobs[job].priority for job in jobs[:-1]} == {0}


def test_all_jobs_of_a_large_edit_are_changed(broker: Brokerage) -> None:
    jobs, leader = waiting_jobs(broker, 5), broker.enqueue("leader")
    assert broker.edit(*jobs, priority=4, after=(f"{leader}",)).jobs == jobs
    assert {broker.state.jobs[job].priority for job in jobs} == {4}
    assert stored(broker, jobs) == ["waiting"] * 5


def test_a_job_cancelled_during_a_large_edit_is_left_alone(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 5)
    reply = broker.step(Edit(ME, jobs, JobPatch(priority=4)))
    while not broker.state.jobs[jobs[0]].priority:
        broker.flush()
    broker.step(Cancel(ME, [jobs[-1]]))
    while reply.reply is None:
        broker.flush()
    done = outcome_of(reply)
    assert done.jobs == jobs[:-1]
    assert done.warnings == ["1 jobs have ended meanwhile and were left alone"]


def test_a_large_edit_goes_on_when_the_jobs_it_changed_first_have_ended(
    broker: Brokerage,
) -> None:
    jobs = waiting_jobs(broker, 5)
    before = broker.state.jobs[jobs[0]].spec
    reply = broker.step(Edit(ME, jobs, JobPatch(grace_s=7.0)))
    while broker.state.jobs[jobs[0]].spec == before:
        broker.flush()
    broker.step(Cancel(ME, jobs[:2]))
    while reply.reply is None:
        broker.flush()
    assert outcome_of(reply).jobs == jobs
    assert {
        broker.state.specs[broker.state.jobs[one].spec].grace_s for one in jobs[2:]
    } == {7.0}


def test_a_large_rerun_goes_on_when_the_jobs_it_changed_first_have_ended(
    broker: Brokerage,
) -> None:
    broker.call(SetPaused(ME, True))
    jobs = broker.array(5)
    broker.cancel(*jobs)
    reply = broker.step(Rerun(ME, jobs, JobPatch(grace_s=7.0), wanted=jobs[:2]))
    cancelled = False
    while reply.reply is None:
        broker._read_for_bulk()
        broker.flush()
        if jobs[0] in broker.state.jobs and not cancelled:
            broker.step(Cancel(ME, jobs[:2]))
            cancelled = True
    assert outcome_of(reply).jobs == jobs
    assert stored(broker, jobs) == ["cancelled"] * 2 + ["queued"] * 3


def test_an_edit_whose_queue_is_deleted_meanwhile_fails_alone(
    broker: Brokerage,
) -> None:
    broker.create_queue("other", "{}")
    jobs = waiting_jobs(broker, 5)
    reply = broker.step(Edit(ME, jobs, JobPatch(queue="other")))
    broker.flush()
    broker.step(DeleteQueue(ME, "other", WORKER))
    broker.step(SetPaused(ME, False))
    while reply.reply is None:
        broker.flush()
    assert isinstance(reply.reply, NotFound)
    assert not broker.state.bulk.before_start
    broker.flush()
    assert broker.running()


def test_edits_that_would_wait_for_each_other_are_refused(broker: Brokerage) -> None:
    jobs = waiting_jobs(broker, 6)
    first = broker.step(Edit(ME, jobs[:5], broker.patch(after=(f"{jobs[5]}",))))
    broker.flush()
    second = broker.step(Edit(ME, [jobs[5]], broker.patch(after=(f"{jobs[0]}",))))
    assert isinstance(second, BulkCall)
    while broker.state.bulk.verbs:
        broker.flush()
    assert outcome_of(first).jobs == jobs[:5]
    with pytest.raises(Refused, match="would wait for itself"):
        outcome_of(second)


def test_many_jobs_run_again_together(broker: Brokerage) -> None:
    jobs = ended_jobs(broker, 5)
    for earlier, later in pairwise(jobs):
        broker.call(SetPaused(ME, True))
        broker.rerun(later, hold=True)
        broker.edit(later, after=(f"{earlier}:any",))
        broker.cancel(later)
    # Each waits for the one after it in the call, of which it knows by its slice only.
    backwards = list(reversed(jobs))
    assert broker.rerun(*backwards).jobs == backwards
    assert stored(broker, jobs) == ["queued"] + ["waiting"] * 4


def test_nothing_runs_again_if_one_job_is_not_there(broker: Brokerage) -> None:
    jobs = ended_jobs(broker, 5)
    broker.prune(jobs[-1])
    broker.refused(NotFound, lambda: broker.rerun(*jobs))
    assert stored(broker, jobs) == ["failed"] * 4


def test_nothing_runs_again_if_one_job_can_never_start(broker: Brokerage) -> None:
    jobs = ended_jobs(broker, 4)
    leader = broker.enqueue("work")
    waits = broker.enqueue("work", after=(f"{leader}:failed",))
    broker.cancel(waits)
    broker.start(leader)
    broker.exit(leader)
    broker.refused(NeverFits, lambda: broker.rerun(*jobs, waits))
    assert stored(broker, jobs) == ["failed"] * 4


def test_a_job_that_is_pruned_while_others_run_again_is_left_out(
    broker: Brokerage,
) -> None:
    jobs = ended_jobs(broker, 5)
    broker.call(SetPaused(ME, True))
    reply = broker.step(Rerun(ME, jobs, wanted=jobs[:2]))
    while reply.reply is None:
        broker._read_for_bulk()
        verbs = broker.state.bulk.verbs
        if jobs[0] in broker.state.jobs and verbs and verbs[0].wanted == jobs[4:]:
            # In the batch for which it was read.
            broker.step(Prune(ME, jobs[4:], wanted=jobs[4:]))
        broker.flush()
    done = outcome_of(reply)
    assert done.jobs == jobs[:4]
    assert done.warnings == [f"there is no job {jobs[4]}"]
    assert stored(broker, jobs) == ["queued"] * 4


def test_a_job_run_again_by_another_call_meanwhile_is_left_alone(
    broker: Brokerage,
) -> None:
    jobs = ended_jobs(broker, 5)
    broker.call(SetPaused(ME, True))
    reply = broker.step(Rerun(ME, jobs, wanted=jobs[:2]))
    other = broker.step(Rerun(ME, [jobs[-1]], wanted=[jobs[-1]]))
    assert isinstance(other, BulkCall)
    while broker.state.bulk.verbs:
        broker._read_for_bulk()
        broker.flush()
    assert outcome_of(reply).jobs == jobs
    with pytest.raises(Refused, match="has not ended"):
        outcome_of(other)
    assert stored(broker, jobs) == ["queued"] * 5


def test_an_error_half_way_says_so() -> None:
    cut = BulkCall(iter([[1]])).error_for(StorageError("the disk is full", "make room"))  # type: ignore[arg-type]
    assert isinstance(cut, StorageError)
    assert str(cut).startswith("not all jobs were reached: the disk is full (do it")


def test_a_large_call_ends_with_what_it_waits_for(broker: Brokerage) -> None:
    leader = waiting_jobs(broker, 1)[0]
    followers = [broker.enqueue("work", after=(f"{leader}",)) for _ in range(5)]
    broker.call(Cancel(ME, [leader]))
    assert stored(broker, followers) == [JobState.CANCELLED.value] * 5
