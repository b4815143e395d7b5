"""Cancel, hold and release, suspend and continue: in every state a job can be in."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, SECOND, Brokerage, memory
from tests.support.building import WORKER

from grass.broker.core.calls import Cancel, HoldJobs, WorkerGone
from grass.broker.core.jobs.verbs import MOST_WARNINGS
from grass.link.messages import (
    Continue,
    Returned,
    Signal,
    Start,
    Started,
    Stop,
    Suspend,
)
from grass.model.jobs.lifecycle import ENDED, JobState

Meanwhile = Callable[[Brokerage], None]

UNSTARTED = ("queued", "waiting", "begin", "back-off", "held")
STATES = (*UNSTARTED, "running", "starting", "succeeded", "failed", "cancelled", "lost")


def job_in(broker: Brokerage, state: str) -> int:
    """Give a job that is in some state."""
    match state:
        case "queued":
            broker.pause("default")
            return broker.enqueue()
        case "waiting":
            return broker.enqueue(after=(str(broker.enqueue()),))
        case "begin":
            return broker.enqueue(begin_at=broker.now_us + 1000 * SECOND)
        case "back-off":
            job = broker.enqueue(retries=1, backoff_s=1000.0)
            broker.exit(job, 1)
            return job
        case "held":
            return broker.enqueue(hold=True)
        case _:
            return started_job_in(broker, state)


def started_job_in(broker: Brokerage, state: str) -> int:
    """Give a job that runs or has ended."""
    job = broker.enqueue()
    if state == "running":
        broker.start(job)
    elif state != "starting":
        if state == "cancelled":
            broker.cancel(job)
        broker.exit(job, 1 if state == "failed" else 0, lost=state == "lost")
        assert broker.job_state(job).value == state
    return job


@pytest.mark.parametrize("state", STATES)
def test_cancel_in_every_state(
    broker: Brokerage, state: str, meanwhile: Meanwhile
) -> None:
    job = job_in(broker, state)
    before = broker.job_state(job)
    meanwhile(broker)
    done = broker.cancel(job)
    if state in UNSTARTED:
        assert done == [job]
        assert broker.job_state(job) is JobState.CANCELLED
    elif before in ENDED:
        assert done == []
        assert broker.job_state(job) is before
    else:
        assert [stop.attempt for stop in broker.said(Stop)] == [broker.name(job)]
        assert broker.job_state(job) is JobState.RUNNING
        meanwhile(broker)
        if job in broker.running():
            broker.exit(job, 0)
        assert broker.job_state(job) is JobState.CANCELLED
    broker.resume("default")
    broker.pass_time(5000)
    assert job not in broker.started_jobs()
    assert job not in broker.running()


@pytest.mark.parametrize("state", STATES)
def test_hold_and_release_in_every_state(
    broker: Brokerage, state: str, meanwhile: Meanwhile
) -> None:
    job = job_in(broker, state)
    before = broker.job_state(job)
    done = broker.hold(job)
    if state not in UNSTARTED or state == "held":
        assert (done.jobs, done.changed) == ([], False)
        assert done.warnings[0].startswith(f"job {job} ")
        assert broker.job_state(job) is before
        return
    assert (done.jobs, done.changed, done.warnings) == ([job], True, [])
    assert broker.job_state(job) is JobState.HELD
    assert f"grass release {job}" in broker.why(job)
    meanwhile(broker)
    assert broker.job_state(job) is JobState.HELD
    assert broker.release(job).jobs == [job]
    assert broker.job_state(job) is before
    again = broker.release(job)
    assert (again.jobs, len(again.warnings)) == ([], 1)


@pytest.mark.parametrize("state", UNSTARTED)
def test_a_held_job_does_not_start_whatever_happens(
    broker: Brokerage, state: str, meanwhile: Meanwhile
) -> None:
    job = job_in(broker, state)
    if state != "held":
        broker.hold(job)
    for other in broker.running():
        broker.exit(other)
    broker.resume("default")
    meanwhile(broker)
    broker.pass_time(5000)
    assert broker.job_state(job) is JobState.HELD
    broker.release(job)
    assert broker.started_jobs() == [job]


def test_a_held_job_keeps_its_place(broker: Brokerage) -> None:
    broker.pause()
    jobs = [broker.enqueue(require="{cpu:2}") for _ in range(2)]
    broker.hold(jobs[0])
    broker.release(jobs[0])
    broker.resume()
    assert broker.started_jobs() == jobs[:1]


def test_who_waits_for_a_held_job_goes_on_waiting(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    broker.pause()
    job = broker.enqueue()
    waits = broker.enqueue(after=(f"{job}:any",))
    broker.hold(job)
    meanwhile(broker)
    broker.resume()
    assert broker.states(job, waits) == ["held", "waiting"]
    broker.cancel(job)
    assert broker.started_jobs() == [waits]


def test_a_held_job_whose_dependency_fails_is_cancelled(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    held = broker.enqueue(after=(str(first),), hold=True)
    broker.release(held)
    broker.hold(held)
    meanwhile(broker)
    broker.exit(first, 1)
    assert broker.job_state(held) is JobState.CANCELLED


def test_dependencies_are_met_while_a_job_is_held(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    held = broker.enqueue(after=(str(first),), hold=True)
    broker.exit(first)
    meanwhile(broker)
    assert broker.job_state(held) is JobState.HELD
    broker.release(held)
    assert broker.started_jobs() == [held]


def test_a_verb_warns_of_few_and_counts_the_rest(broker: Brokerage) -> None:
    done = broker.hold(*range(100, 115))
    assert len(done.warnings) == MOST_WARNINGS + 1
    assert done.warnings[0] == "job 100 has ended"
    assert done.warnings[-1] == "and 5 more were left alone"


def test_a_verb_does_what_it_can(broker: Brokerage) -> None:
    broker.pause()
    jobs = [broker.enqueue() for _ in range(3)]
    broker.cancel(jobs[1])
    done = broker.hold(*jobs)
    assert done.jobs == [jobs[0], jobs[2]]
    assert len(done.warnings) == 1
    assert broker.cancel(*jobs) == [jobs[0], jobs[2]]


def test_every_verb_is_written_down_with_who_asked(broker: Brokerage) -> None:
    broker.pause()
    job = broker.enqueue()
    broker.call(HoldJobs("token:ci", [job]))
    broker.release(job)
    broker.call(Cancel("token:ci", [job]))
    events = broker.store.events(0, 100, job, ())
    kinds = [(event.kind, event.actor) for event in events]
    assert ("held", "token:ci") in kinds
    assert ("released", ME) in kinds
    assert ("cancelled", "token:ci") in kinds


def test_a_suspended_job_keeps_its_units_and_goes_on(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    job = broker.enqueue(require="{cpu:2}")
    broker.start(job)
    waits = broker.enqueue()
    assert broker.suspend(job).jobs == [job]
    assert broker.said(Suspend) == [Suspend(broker.name(job))]
    found = broker.job(job).job
    assert (found.state, found.suspended_since) == (JobState.RUNNING, broker.now_us)
    meanwhile(broker)
    assert broker.job_state(waits) is JobState.QUEUED
    assert broker.go_on(job).jobs == [job]
    assert broker.said(Continue) == [Continue(broker.name(job))]
    assert broker.job(job).job.suspended_since is None
    broker.exit(job)
    assert broker.states(job, waits) == ["succeeded", "running"]


@pytest.mark.parametrize("state", STATES)
def test_only_running_jobs_are_suspended(broker: Brokerage, state: str) -> None:
    job = job_in(broker, state)
    done = broker.suspend(job)
    if state in ("running", "starting"):
        assert done.jobs == [job]
        again = broker.suspend(job)
        assert (again.jobs, again.changed) == ([], False)
        assert "already" in again.warnings[0]
    else:
        before = memory(broker.state)
        assert (done.jobs, len(done.warnings)) == ([], 1)
        assert not broker.said(Suspend)
        assert memory(broker.state) == before
    unknown = broker.go_on(broker.enqueue())
    assert (unknown.jobs, len(unknown.warnings)) == ([], 1)


@pytest.mark.parametrize("state", STATES)
def test_only_running_jobs_are_signalled(broker: Brokerage, state: str) -> None:
    job = job_in(broker, state)
    done = broker.signal(10, job)
    if state == "running":
        assert (done.jobs, done.changed) == ([job], True)
        assert broker.said(Signal) == [Signal(broker.name(job), 10)]
    else:
        assert (done.jobs, len(done.warnings)) == ([], 1)
        assert not broker.said(Signal)


def test_a_signal_to_an_unreachable_worker_is_not_sent_later(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.start(job)
    broker.call(WorkerGone(WORKER))
    done = broker.signal(10, job)
    assert (done.jobs, done.changed) == ([], False)
    assert done.warnings == [f"job {job} was not signalled: its worker is unreachable"]
    broker.hello([broker.report(job)])
    assert not broker.said(Signal)


def test_a_suspend_that_the_worker_missed_is_repeated(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.start(job)
    broker.suspend(job)
    broker.restart()
    broker.hello([broker.report(job)])
    assert broker.said(Suspend) == [Suspend(broker.name(job))]


def test_a_suspended_start_that_the_worker_never_saw_is_suspended_again(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.suspend(job)
    broker.restart()
    broker.hello()
    assert [start.job for start in broker.said(Start)] == [job]
    assert broker.said(Suspend) == [Suspend(broker.name(job))]


def test_a_suspended_start_that_is_returned_is_suspended_no_more(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.suspend(job)
    broker.hear(Returned(broker.name(job), "in use"))
    assert broker.job(job).job.suspended_since is None


def test_a_continue_that_the_worker_missed_is_repeated(broker: Brokerage) -> None:
    """The daemon went down between the commit and the message."""
    job = broker.enqueue()
    broker.start(job)
    broker.suspend(job)
    broker.call(WorkerGone(WORKER))
    broker.go_on(job)
    broker.restart()
    broker.hello([broker.report(job, suspended=True)])
    assert broker.said(Continue) == [Continue(broker.name(job))]


def test_a_suspended_job_can_be_cancelled(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    job = broker.enqueue()
    broker.start(job)
    broker.suspend(job)
    meanwhile(broker)
    broker.cancel(job)
    assert broker.said(Stop)
    assert broker.suspend(job).jobs == []
    broker.exit(job, None, signal=15)
    found = broker.job(job).job
    assert (found.state, found.suspended_since) == (JobState.CANCELLED, None)


def test_a_job_that_is_being_stopped_is_not_suspended(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.start(job)
    broker.cancel(job)
    done = broker.suspend(job)
    assert "being stopped" in done.warnings[0]
    assert not broker.said(Suspend)


def test_a_retry_of_a_suspended_job_runs(broker: Brokerage) -> None:
    job = broker.enqueue(retries=1)
    broker.start(job)
    broker.suspend(job)
    broker.exit(job, None, signal=9)
    assert broker.job_state(job) is JobState.RUNNING
    assert broker.job(job).job.suspended_since is None
    broker.hear(Started(broker.name(job), 5, broker.now_us))
    assert broker.suspend(job).jobs == [job]


def test_cancel_takes_the_jobs_own_grace_unless_told_another(
    broker: Brokerage,
) -> None:
    job = broker.enqueue(grace_s=3.0)
    broker.cancel(job)
    assert broker.said(Stop)[0].grace_s == 3.0
    broker.call(Cancel(ME, [job], 0.0, 9))
    assert broker.said(Stop) == [Stop(broker.name(job), 0.0, 9)]
