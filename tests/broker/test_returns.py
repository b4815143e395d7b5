"""Workers that give back what they are to start."""

import pytest
from tests.support.brokerage import Brokerage

from grass.broker.core.attempts import prefetch
from grass.broker.core.attempts.tracking import MOST_RETURNS
from grass.broker.core.calls import FromWorker
from grass.broker.core.workers.message_checks import LONGEST_RETURN
from grass.link.messages import (
    RECALLED,
    Exited,
    Readiness,
    Recall,
    Report,
    Returned,
    Start,
    Started,
)
from grass.model.jobs.lifecycle import JobState

FARM = "farm"


@pytest.fixture
def job(broker: Brokerage) -> int:
    broker.join(FARM, "{cpu:4}")
    return broker.enqueue(worker=FARM)


def give_back(broker: Brokerage, job: int, reason: str = "no") -> None:
    """Have the worker return a start, and report when it is asked to."""
    attempt = broker.state.attempts[job]
    broker.hear(Returned(broker.name(job), reason, attempt.started_at), FARM)
    if reason != RECALLED:
        broker.join(FARM, "{cpu:4}")


@pytest.mark.parametrize("reason", ["no", RECALLED])
def test_a_worker_that_begins_nothing_is_drained_with_the_reason(
    broker: Brokerage, job: int, reason: str
) -> None:
    for _ in range(MOST_RETURNS):
        assert not broker.state.workers[FARM].draining
        give_back(broker, job, reason)
    worker = broker.state.workers[FARM]
    assert (worker.draining, broker.job_state(job)) == (True, JobState.QUEUED)
    why = f"it gave back {MOST_RETURNS} starts in a row: {reason}"
    assert worker.draining_reason == why
    broker.join(FARM, "{cpu:4}")
    assert not broker.said(Start)
    broker.restart()
    broker.join(FARM, "{cpu:4}")
    assert not broker.said(Start)
    assert broker.state.workers[FARM].draining_reason == why
    broker.rest(FARM, False)
    assert broker.started_jobs() == [job]
    assert broker.state.workers[FARM].draining_reason == ""
    give_back(broker, job, reason)
    assert not broker.state.workers[FARM].draining


def test_a_worker_that_begins_something_is_not(broker: Brokerage, job: int) -> None:
    for _ in range(2 * MOST_RETURNS):
        give_back(broker, job)
        other = broker.enqueue(worker=FARM)
        at = broker.state.attempts[other].started_at
        broker.hear(_exited(broker, other, at), FARM)
    assert not broker.state.workers[FARM].draining


def _exited(broker: Brokerage, job: int, at: int) -> Exited:
    return Exited(broker.name(job), 5, 0, placed_at=at)


def test_starts_that_were_placed_together_count_once(broker: Brokerage) -> None:
    broker.join(FARM, f"{{gpu:{2 * MOST_RETURNS}}}")
    jobs = broker.array(2 * MOST_RETURNS, worker=FARM, require="{gpu:1}")
    names = [broker.name(job) for job in jobs]
    for name in names:
        broker.step(FromWorker(FARM, Returned(name, "no")))
    broker.flush()
    assert not broker.state.workers[FARM].draining


def test_a_recalled_attempt_or_an_unable_worker_does_not_count(
    broker: Brokerage, job: int
) -> None:
    for _ in range(2 * MOST_RETURNS):
        prefetch.request_return(broker.state, [job])
        broker.flush()
        assert broker.said(Recall)
        give_back(broker, job, RECALLED)
    for _ in range(2 * MOST_RETURNS):
        broker.step(FromWorker(FARM, Readiness("the disk is full")))
        give_back(broker, job, RECALLED)
        broker.hear(Readiness(""), FARM)
    assert not broker.state.workers[FARM].draining


def test_a_reason_is_cut_short(broker: Brokerage, job: int) -> None:
    give_back(broker, job, "x" * 60_000)
    (line,) = broker.store.events(0, 100, job, ("returned",))
    assert len(line.data) < LONGEST_RETURN + 20


def test_a_worker_that_has_a_job_running_is_drained_all_the_same(
    broker: Brokerage, job: int
) -> None:
    running = broker.enqueue(worker=FARM)
    at = broker.state.attempts[running].started_at
    broker.hear(Started(broker.name(running), 7, 5, placed_at=at), FARM)
    held = Report(broker.name(running), {"cpu": {"0": 10_000}}, True, 7, placed_at=at)
    for _ in range(MOST_RETURNS):
        placed_at = broker.state.attempts[job].started_at
        broker.hear(Returned(broker.name(job), "no", placed_at), FARM)
        broker.join(FARM, "{cpu:4}", running=[held])
        broker.hear(Started(broker.name(running), 7, 5, placed_at=at), FARM)
    assert broker.state.workers[FARM].draining
