"""Failures and losses that are followed by another attempt."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import SECOND, Brokerage
from tests.support.building import a_job, a_spec

from grass.broker.core.attempts.outcomes import (
    LONGEST_BACKOFF_S,
    backoff_s,
    outcome,
    retried,
)
from grass.link.messages import Exited, Start
from grass.model.jobs.lifecycle import AttemptState, JobState

Meanwhile = Callable[[Brokerage], None]

SIGNALLED = {"exit_code": None, "signal": 9}
NOT_STARTED = {"exit_code": None, "reason": "no such program"}
TIMED_OUT = {"exit_code": None, "signal": 15, "reason": "time limit"}
LOST = {"exit_code": None, "lost": True}


def ended(**how: Any) -> Exited:
    return Exited("x", 1, **how)


@pytest.mark.parametrize(
    ("how", "stopping", "state"),
    [
        ({"exit_code": 0}, False, JobState.SUCCEEDED),
        ({"exit_code": 0}, True, JobState.CANCELLED),
        ({"exit_code": 1}, False, JobState.FAILED),
        ({"exit_code": 1}, True, JobState.CANCELLED),
        (SIGNALLED, False, JobState.FAILED),
        (NOT_STARTED, False, JobState.FAILED),
        (TIMED_OUT, False, JobState.FAILED),
        ({"exit_code": 0, "reason": "time limit"}, False, JobState.FAILED),
        (LOST, False, JobState.LOST),
        (LOST, True, JobState.LOST),
    ],
)
def test_an_end_is_judged(how: dict[str, Any], stopping: bool, state: JobState) -> None:
    job = a_job(stopping_since=5 if stopping else None)
    assert outcome(job, ended(**how)) is state


@pytest.mark.parametrize(
    ("retry_on", "how", "again"),
    [
        ((), {"exit_code": 1}, True),
        ((), SIGNALLED, True),
        ((), NOT_STARTED, True),
        ((), TIMED_OUT, True),
        (("1",), {"exit_code": 1}, True),
        (("1",), {"exit_code": 2}, False),
        (("1", "2"), {"exit_code": 2}, True),
        (("137",), SIGNALLED, True),
        (("137",), {"exit_code": 137}, True),
        (("signal",), SIGNALLED, True),
        (("signal",), {"exit_code": 137}, False),
        (("143",), SIGNALLED, False),
        (("time-limit",), TIMED_OUT, True),
        (("time-limit",), SIGNALLED, False),
        (("time-limit",), {"exit_code": 0, "reason": "time limit"}, True),
        (("not-started",), NOT_STARTED, True),
        (("not-started",), {"exit_code": 127}, False),
        (("1",), NOT_STARTED, False),
    ],
)
def test_retry_on_chooses_the_failures(
    retry_on: tuple[str, ...], how: dict[str, Any], again: bool
) -> None:
    spec = a_spec(retries=1, retry_on=retry_on)
    assert retried(a_job(), spec, JobState.FAILED, ended(**how)) is again
    assert not retried(a_job(failures=1), spec, JobState.FAILED, ended(**how))
    cancelled = a_job(stopping_since=5)
    assert not retried(cancelled, spec, JobState.FAILED, ended(**how))


def test_success_and_cancelling_are_never_retried() -> None:
    spec = a_spec(retries=9, retry_lost=9)
    for end in (JobState.SUCCEEDED, JobState.CANCELLED):
        assert not retried(a_job(), spec, end, ended(exit_code=0))


def test_the_pause_doubles_and_ends_at_a_day() -> None:
    spec = a_spec(backoff_s=30.0)
    assert [backoff_s(spec, n) for n in (1, 2, 3, 4)] == [30, 60, 120, 240]
    assert backoff_s(spec, 50) == LONGEST_BACKOFF_S == 86_400
    assert backoff_s(spec, 100_000) == LONGEST_BACKOFF_S
    assert backoff_s(a_spec(), 5) == 0


def test_a_failed_job_is_tried_again_and_its_attempts_are_kept(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    job = broker.enqueue(retries=2)
    broker.exit(job, 3)
    assert broker.started_jobs() == [job]
    broker.start(job)
    meanwhile(broker)
    broker.exit(job, 4)
    assert broker.said(Start)[0].number == 3
    broker.exit(job, 5)
    found = broker.job(job)
    assert found.job.state is JobState.FAILED
    assert [one.exit_code for one in found.attempts] == [3, 4, 5]
    assert {one.state for one in found.attempts} == {AttemptState.EXITED}
    assert (found.job.failures, found.job.exit_code) == (2, 5)


def test_a_retry_that_succeeds_is_a_success(broker: Brokerage) -> None:
    job = broker.enqueue(retries=3)
    broker.exit(job, 1)
    broker.exit(job, 0)
    assert broker.job_state(job) is JobState.SUCCEEDED
    assert broker.job(job).job.exit_code == 0


def test_without_retries_there_is_one_attempt(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.exit(job, 1)
    assert broker.job_state(job) is JobState.FAILED
    assert not broker.started_jobs()


def test_a_failure_that_is_not_listed_ends_the_job(broker: Brokerage) -> None:
    job = broker.enqueue(retries=5, retry_on=("137", "signal"))
    broker.exit(job, None, signal=9)
    assert broker.job_state(job) is JobState.RUNNING
    broker.exit(job, 1)
    assert broker.job_state(job) is JobState.FAILED


def test_back_off_doubles_and_survives(broker: Brokerage, meanwhile: Meanwhile) -> None:
    job = broker.enqueue(retries=5, backoff_s=10.0)
    for pause_s in (10, 20, 40):
        broker.exit(job, 1)
        found = broker.job(job).job
        assert found.state is JobState.WAITING
        assert found.not_before == broker.now_us + pause_s * SECOND
        assert broker.core.next_time() == found.not_before
        assert broker.why(job).startswith(f"retry {found.failures} at ")
        meanwhile(broker)
        broker.pass_time(pause_s - 5)
        assert broker.job_state(job) is JobState.WAITING
        broker.pass_time(10)
        assert broker.started_jobs() == [job]


def test_who_backs_off_holds_no_units_and_lets_others_by(broker: Brokerage) -> None:
    first = broker.enqueue(require="{cpu:2}", retries=1, backoff_s=100.0)
    second = broker.enqueue(require="{cpu:2}")
    broker.exit(first, 1)
    assert broker.running() == [second]


def test_a_job_can_be_held_released_and_cancelled_in_its_back_off(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    jobs = [broker.enqueue(retries=1, backoff_s=100.0) for _ in range(2)]
    for job in jobs:
        broker.exit(job, 1)
    broker.hold(jobs[0])
    meanwhile(broker)
    broker.release(jobs[0])
    assert broker.job_state(jobs[0]) is JobState.WAITING
    broker.hold(jobs[0])
    broker.pass_time(200)
    assert broker.states(*jobs) == ["held", "running"]
    meanwhile(broker)
    broker.release(jobs[0])
    assert broker.started_jobs() == [jobs[0]]
    broker.exit(jobs[1], 1)
    assert broker.job_state(jobs[1]) is JobState.FAILED


def test_cancelling_ends_a_back_off(broker: Brokerage) -> None:
    job = broker.enqueue(retries=1, backoff_s=100.0)
    broker.exit(job, 1)
    broker.cancel(job)
    assert broker.job_state(job) is JobState.CANCELLED
    broker.pass_time(500)
    assert not broker.started_jobs()
    assert broker.core.next_time() is None


def test_cancelling_a_running_job_leaves_no_retry(broker: Brokerage) -> None:
    job = broker.enqueue(retries=5, retry_lost=5)
    broker.cancel(job)
    broker.exit(job, 1)
    assert broker.job_state(job) is JobState.CANCELLED
    other = broker.enqueue(retries=5, retry_lost=5)
    broker.cancel(other)
    broker.exit(other, None, lost=True)
    assert broker.job_state(other) is JobState.LOST
    assert not broker.started_jobs()


def test_a_lost_attempt_is_followed_only_where_that_is_allowed(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    once, never = broker.enqueue(retry_lost=1), broker.enqueue(retries=5)
    for job in (once, never):
        broker.start(job)
        broker.exit(job, None, lost=True)
    assert broker.states(once, never) == ["running", "lost"]
    broker.start(once)
    meanwhile(broker)
    broker.exit(once, None, lost=True)
    assert broker.job_state(once) is JobState.LOST
    states = [one.state for one in broker.job(once).attempts]
    assert states == [AttemptState.LOST, AttemptState.LOST]


def test_attempts_lost_with_the_machine_are_followed_too(broker: Brokerage) -> None:
    job = broker.enqueue(retry_lost=1)
    broker.start(job)
    broker.restart()
    broker.hello(boot="boot-2")
    assert broker.job_state(job) is JobState.RUNNING
    assert broker.state.attempts[job].number == 2


def test_losses_do_not_use_up_retries(broker: Brokerage) -> None:
    job = broker.enqueue(retries=1, retry_lost=1)
    broker.exit(job, None, lost=True)
    broker.exit(job, 1)
    assert broker.job_state(job) is JobState.RUNNING
    broker.exit(job, 1)
    found = broker.job(job).job
    assert (found.state, found.failures, found.losses) == (JobState.FAILED, 1, 1)


def test_a_time_limit_is_told_to_the_worker_and_is_the_reason(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    job = broker.enqueue(time_limit_s=7200.0, grace_s=3.0, nice=7)
    (start,) = broker.said(Start)
    assert (start.time_limit_s, start.grace_s, start.nice) == (7200.0, 3.0, 7)
    broker.start(job)
    meanwhile(broker)
    broker.exit(job, None, signal=15, reason="time limit")
    found = broker.job(job).job
    assert (found.state, found.reason) == (JobState.FAILED, "time limit")


def test_who_waits_for_a_job_waits_for_its_last_attempt(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    job = broker.enqueue(retries=1, backoff_s=5.0, retry_lost=1)
    bad = broker.enqueue(after=(f"{job}:failed",))
    good = broker.enqueue(after=(str(job),))
    broker.exit(job, 1)
    assert broker.states(bad, good) == ["waiting", "waiting"]
    meanwhile(broker)
    broker.pass_time(10)
    broker.exit(job, None, lost=True)
    assert broker.states(bad, good) == ["waiting", "waiting"]
    broker.exit(job, 0)
    assert broker.states(bad, good) == ["cancelled", "running"]


def test_a_retry_does_not_wait_for_its_dependencies_again(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    second = broker.enqueue(after=(str(first),), retries=1, backoff_s=5.0)
    broker.exit(first)
    broker.exit(second, 1)
    broker.rerun(first)
    meanwhile(broker)
    broker.pass_time(10)
    assert broker.job_state(second) is JobState.RUNNING


DAYS = 2 * 86_400 * SECOND


@pytest.mark.parametrize("restarts", [False, True])
def test_a_clock_set_back_makes_no_pause_longer_than_it_should_be(
    broker: Brokerage, restarts: bool
) -> None:
    broker.now_us += DAYS
    job = broker.enqueue(retries=1, backoff_s=100.0)
    broker.start(job)
    broker.exit(job, 1)
    other = broker.enqueue(begin_at=broker.now_us + DAYS)
    broker.now_us -= DAYS
    if restarts:
        broker.restart()
    broker.pass_time(0)
    latest = broker.now_us + 100 * SECOND
    assert broker.core.next_time() == broker.state.jobs[job].not_before
    assert (broker.core.next_time() or 0) <= latest
    broker.now_us = latest
    broker.pass_time(0)
    assert broker.job_state(other) is JobState.WAITING
    assert broker.job_state(job) is not JobState.WAITING


def test_a_clock_set_back_right_after_a_start_makes_no_pause_longer(
    broker: Brokerage,
) -> None:
    broker.now_us += DAYS
    job = broker.enqueue(retries=1, backoff_s=100.0)
    broker.start(job)
    broker.exit(job, 1)
    broker.restart()
    broker.now_us -= DAYS
    broker.pass_time(0)
    assert (broker.state.jobs[job].not_before or 0) <= broker.now_us + 100 * SECOND
