"""A database that came back from a backup: workers know more than it does."""

import pytest
from tests.support.brokerage import Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.attempts import placing, reconcile
from grass.broker.core.calls import FromWorker
from grass.link.messages import (
    RECALLED,
    Exited,
    Forget,
    Hello,
    Recall,
    Report,
    Returned,
    Start,
    Started,
    Stop,
)
from grass.model.amount_text import WHOLE
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState, JobState

EARLIER = 5
"""When the attempt was placed that this database knows nothing of."""
CORE = {"cpu": {"0": WHOLE}}


@pytest.fixture
def job(broker: Brokerage) -> int:
    return broker.enqueue()


def placed(broker: Brokerage, job: int) -> Attempt:
    return broker.state.attempts[job]


def namesake(broker: Brokerage, job: int, number: int = 1) -> Report:
    """Give what a worker says of an attempt of before."""
    name = broker.name(job, number)
    return Report(name, CORE, running=True, pid=9, started_at=6, placed_at=EARLIER)


def test_the_exit_of_a_namesake_is_not_the_jobs_end(
    broker: Brokerage, job: int
) -> None:
    name = broker.name(job)
    broker.hear(Exited(name, broker.now_us, 1, placed_at=EARLIER))
    assert broker.job_state(job) is JobState.RUNNING
    assert broker.said(Forget) == [Forget([name])]
    at = placed(broker, job).started_at
    broker.hear(Exited(name, broker.now_us, 0, placed_at=at))
    assert broker.job_state(job) is JobState.SUCCEEDED


def test_the_start_of_a_namesake_is_not_the_jobs_start(
    broker: Brokerage, job: int
) -> None:
    name = broker.name(job)
    broker.hear(Started(name, 9, broker.now_us, placed_at=EARLIER))
    assert placed(broker, job).state is AttemptState.STARTING
    at = placed(broker, job).started_at
    broker.hear(Started(name, 10, broker.now_us, placed_at=at))
    assert (placed(broker, job).state, placed(broker, job).pid) == (
        AttemptState.RUNNING,
        10,
    )
    broker.hear(Exited(name, broker.now_us, 0, placed_at=at))
    assert broker.job_state(job) is JobState.SUCCEEDED


def test_a_namesake_that_ended_is_forgotten_and_the_job_recalled(
    broker: Brokerage, job: int
) -> None:
    name, at = broker.name(job), placed(broker, job).started_at
    broker.hello(exited=[Exited(name, broker.now_us, 0, placed_at=EARLIER)])
    assert broker.said(Forget) == [Forget([name])]
    # A second start could be taken after the first was refused, and run twice.
    assert not broker.said(Start)
    assert broker.said(Recall) == [Recall([name], [at])]
    broker.hear(Returned(name, RECALLED, at))
    assert broker.started_jobs() == [job]
    assert placed(broker, job).started_at > at


def test_a_namesake_that_runs_is_left_alone_and_the_job_gets_another_number(
    broker: Brokerage, job: int
) -> None:
    old, at = namesake(broker, job), placed(broker, job).started_at
    broker.hello(running=[old])
    assert not broker.said(Stop)
    assert placed(broker, job).state is AttemptState.STARTING
    broker.hear(Returned(old.attempt, "its name is taken", at))
    assert broker.job_state(job) is JobState.QUEUED
    broker.hello(running=[old])
    assert broker.started_jobs() == [job]
    assert placed(broker, job).number == 2
    broker.hear(Exited(old.attempt, broker.now_us, 1, placed_at=EARLIER))
    assert broker.job_state(job) is JobState.RUNNING
    broker.exit(job)
    assert broker.job_state(job) is JobState.SUCCEEDED


def test_a_namesake_of_a_job_that_waits_does_not_start_it(broker: Brokerage) -> None:
    job = broker.enqueue(hold=True)
    broker.hello(running=[namesake(broker, job, 1), namesake(broker, job, 2)])
    assert broker.job_state(job) is JobState.HELD
    broker.release(job)
    assert placed(broker, job).number == 3


def test_a_number_is_skipped_only_where_it_is_in_use(broker: Brokerage) -> None:
    job = broker.enqueue(hold=True)
    broker.hello(running=[namesake(broker, job, 3)])
    broker.release(job)
    assert placed(broker, job).number == 1


def test_a_worker_moves_no_number_of_a_job_that_is_not_placed_there(
    broker: Brokerage,
) -> None:
    job = broker.enqueue(hold=True)
    lies = [namesake(broker, job, number) for number in range(1, 200)]
    broker.join("liar", running=[*lies, namesake(broker, 41)])
    assert broker.state.jobs[job].attempts == 0
    assert broker.enqueue(hold=True) == job + 1
    broker.edit(job, worker=WORKER)
    broker.release(job)
    assert placed(broker, job).number == 1


def test_a_worker_that_names_every_number_as_used_gets_the_first(
    broker: Brokerage,
) -> None:
    job = broker.enqueue(hold=True, worker=WORKER)
    used = range(1, placing.MOST_SKIPPED + 1)
    broker.hello(running=[namesake(broker, job, number) for number in used])
    broker.release(job)
    assert placed(broker, job).number == 1


@pytest.mark.parametrize("made", [10**9 - 1, 10**17])
def test_a_job_whose_numbers_were_pushed_far_still_runs(
    broker: Brokerage, made: int
) -> None:
    job = broker.enqueue(hold=True)
    broker.state.jobs[job].attempts = made
    broker.state.save_job(broker.state.jobs[job])
    broker.flush()
    broker.restart()
    broker.hello()
    broker.release(job)
    assert attempt_id(broker.name(job)).number == made + 1
    broker.restart_all()
    broker.exit(job)
    assert broker.job_state(job) is JobState.SUCCEEDED


def test_a_worker_that_does_not_say_when_it_was_placed_is_believed(
    broker: Brokerage, job: int
) -> None:
    broker.hello(running=[broker.report(job)])
    assert placed(broker, job).state is AttemptState.RUNNING
    broker.exit(job)
    assert broker.job_state(job) is JobState.SUCCEEDED


def logged(broker: Brokerage, *running: Report) -> list[str]:
    """Have the worker say hello, and return what is logged of it."""
    hello = Hello(WORKER, "desk", BOOT, units("{cpu:2}"), list(running), [])
    broker.step(FromWorker(WORKER, hello))
    said = [str(event) for event in broker.state.batch.log_events]
    broker.flush()
    return said


def test_numbers_go_on_above_what_workers_know(broker: Brokerage) -> None:
    line, _ = logged(broker, namesake(broker, 41))
    assert line == "database.outdated worker=desk job=41"
    assert broker.enqueue() == 42
    broker.restart()
    broker.hello()
    assert broker.enqueue() == 43


def test_numbers_of_another_database_and_nonsense_count_for_nothing(
    broker: Brokerage,
) -> None:
    foreign = Report(f"{'f' * 16}.41.1", CORE, running=True)
    far = namesake(broker, reconcile.MOST_JOBS_BEHIND + 1)
    (line,) = logged(broker, foreign, far)
    assert line.startswith("attempts.foreign")
    assert broker.enqueue() == 1
