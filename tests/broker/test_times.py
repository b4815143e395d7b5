"""Jobs that wait for a time of the clock."""

from collections.abc import Callable

from tests.support.brokerage import SECOND, Brokerage

from grass.model.jobs.lifecycle import JobState

Meanwhile = Callable[[Brokerage], None]


def test_a_job_begins_when_its_time_has_come(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    at = broker.now_us + 100 * SECOND
    job = broker.enqueue(begin_at=at)
    assert broker.job_state(job) is JobState.WAITING
    assert broker.core.next_time() == at
    assert broker.why(job).startswith("begins 1970-01-01T00:18")
    meanwhile(broker)
    broker.pass_time(50)
    assert broker.job_state(job) is JobState.WAITING
    broker.now_us = at - SECOND
    broker.pass_time()
    assert broker.started_jobs() == [job]
    assert broker.core.next_time() is None


def test_a_job_whose_time_has_passed_does_not_wait(broker: Brokerage) -> None:
    job = broker.enqueue(begin_at=broker.now_us)
    assert broker.started_jobs() == [job]


def test_a_time_that_passes_while_the_broker_is_down_has_come(
    broker: Brokerage,
) -> None:
    job = broker.enqueue(begin_at=broker.now_us + 100 * SECOND)
    broker.now_us += 200 * SECOND
    broker.restart()
    broker.hello()
    assert broker.job_state(job) is JobState.RUNNING


def test_times_come_in_order_whatever_the_order_of_asking(broker: Brokerage) -> None:
    late = broker.enqueue(begin_at=broker.now_us + 300 * SECOND)
    soon = broker.enqueue(begin_at=broker.now_us + 100 * SECOND)
    gone = broker.enqueue(begin_at=broker.now_us + 50 * SECOND)
    broker.cancel(gone)
    assert broker.core.next_time() == broker.job(soon).spec.begin_at
    broker.pass_time(150)
    assert broker.started_jobs() == [soon]
    assert broker.core.next_time() == broker.job(late).spec.begin_at
    broker.pass_time(150)
    assert broker.started_jobs() == [late]


def test_a_time_and_a_dependency_must_both_come(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    early = broker.enqueue(after=(str(first),), begin_at=broker.now_us + 10 * SECOND)
    late = broker.enqueue(after=(str(first),), begin_at=broker.now_us + 99 * SECOND)
    broker.pass_time(20)
    meanwhile(broker)
    assert broker.states(early, late) == ["waiting", "waiting"]
    assert f"waits for job {first}" in broker.why(early)
    broker.exit(first)
    assert broker.states(early, late) == ["running", "waiting"]
    assert "begins" in broker.why(late)
    meanwhile(broker)
    broker.pass_time(100)
    assert broker.job_state(late) is JobState.RUNNING


def test_a_dependency_runs_again_before_the_time_has_come(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    second = broker.enqueue(after=(str(first),), begin_at=broker.now_us + 50 * SECOND)
    broker.exit(first)
    broker.rerun(first)
    meanwhile(broker)
    broker.pass_time(100)
    assert broker.job_state(second) is JobState.WAITING
    broker.exit(first, 1)
    assert broker.job_state(second) is JobState.CANCELLED


def test_a_clock_set_back_after_a_held_jobs_time_makes_it_wait_again(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    at = broker.now_us + 100 * SECOND
    job = broker.enqueue(begin_at=at, hold=True)
    broker.pass_time(200)
    broker.now_us -= 150 * SECOND
    broker.release(job)
    assert broker.job_state(job) is JobState.WAITING
    assert broker.core.next_time() == at
    meanwhile(broker)
    broker.pass_time(60)
    assert broker.started_jobs() == [job]


def test_a_clock_set_back_before_a_dependency_ends_makes_its_follower_wait(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    at = broker.now_us + 100 * SECOND
    second = broker.enqueue(after=(str(first),), begin_at=at)
    broker.pass_time(200)
    broker.now_us -= 150 * SECOND
    broker.exit(first)
    assert broker.job_state(second) is JobState.WAITING
    meanwhile(broker)
    broker.pass_time(60)
    assert broker.job_state(second) is JobState.RUNNING
