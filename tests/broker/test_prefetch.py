"""Very short jobs are prefetched, and no other job is worse off for it."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, SECOND, Brokerage

from grass.broker.core.calls import Cancel
from grass.link.messages import Exited, Recall, Returned, Start
from grass.model.jobs.lifecycle import JobState

MakeBroker = Callable[[str], Brokerage]


@pytest.fixture
def broker(broker_of: MakeBroker) -> Brokerage:
    """Give a broker that has seen one job end as soon as it began, and has more."""
    broker = broker_of("{cpu:1}")
    broker.pause()
    for _ in range(5):
        broker.enqueue("true")
    broker.resume()
    run_quickly(broker, 1)
    return broker


def run_quickly(broker: Brokerage, job: int) -> None:
    broker.start(job)
    broker.exit(job, ran_s=0.0)


def leaders(broker: Brokerage) -> dict[int, int | None]:
    return {job: one.after for job, one in broker.state.attempts.items()}


def test_the_next_jobs_are_sent_along_each_behind_the_one_before(
    broker: Brokerage,
) -> None:
    assert leaders(broker) == {2: None, 3: 2, 4: 3, 5: 4}
    starts = broker.said(Start)
    assert [start.job for start in starts] == [2, 3, 4, 5]
    assert starts[1].after == starts[0].attempt
    assert {str(start.allocation) for start in starts} == {str(starts[0].allocation)}


def test_when_the_leader_ends_the_next_one_has_its_units(broker: Brokerage) -> None:
    run_quickly(broker, 2)
    assert leaders(broker) == {3: None, 4: 3, 5: 4}
    broker.restart()
    assert leaders(broker) == {3: None, 4: 3, 5: 4}


def test_a_job_cancelled_before_its_turn_lets_the_next_one_move_up(
    broker: Brokerage,
) -> None:
    broker.cancel(3)
    broker.exit(3, reason="cancelled before it started")
    assert leaders(broker) == {2: None, 4: 2, 5: 4}
    assert broker.job_state(3) is JobState.CANCELLED


def test_pausing_asks_for_them_back_and_they_wait_in_their_old_place(
    broker: Brokerage,
) -> None:
    broker.pause()
    (recall,) = broker.said(Recall)
    assert recall.attempts == [broker.name(job) for job in (3, 4, 5)]
    for name in recall.attempts:
        broker.hear(Returned(name, "recalled"))
    assert leaders(broker) == {2: None}
    assert [broker.job_state(job) for job in (3, 4, 5)] == [JobState.QUEUED] * 3
    assert not broker.job(3).attempts
    broker.resume()
    broker.exit(2)
    assert broker.started_jobs()[0] == 3


def test_a_leader_that_turns_out_long_loses_its_followers(broker: Brokerage) -> None:
    broker.now_us += 10 * SECOND
    broker.flush()
    (recall,) = broker.said(Recall)
    assert recall.attempts == [broker.name(job) for job in (3, 4, 5)]


def test_after_a_restart_what_did_not_have_its_turn_is_queued_again(
    broker: Brokerage,
) -> None:
    running = broker.report(2)
    broker.restart()
    broker.hello(running=[running])
    # Their starts may be under way still: only the answer to a recall is sure.
    assert broker.started_jobs() == [3, 4, 5]
    asked = [name for one in broker.said(Recall) for name in one.attempts]
    assert asked == [broker.name(job) for job in (3, 4, 5)]
    for name in asked:
        broker.hear(Returned(name, "recalled"))
    assert leaders(broker) == {2: None}
    assert [broker.job_state(job) for job in (3, 4, 5)] == [JobState.QUEUED] * 3


def test_a_hello_that_crosses_a_start_takes_nothing_back(broker: Brokerage) -> None:
    broker.hello(running=[broker.report(2)])
    assert leaders(broker) == {2: None, 3: 2, 4: 3, 5: 4}
    run_quickly(broker, 2)
    run_quickly(broker, 3)
    assert broker.job_state(3) is JobState.SUCCEEDED


def test_no_job_is_prefetched_behind_a_recalled_one(
    broker_of: MakeBroker,
) -> None:
    broker = broker_of("{cpu:1}")
    broker.pause()
    for _ in range(12):
        broker.enqueue("true")
    broker.resume()
    run_quickly(broker, 1)
    assert list(leaders(broker)) == list(range(2, 11))
    gone = Exited(broker.name(2), broker.now_us, 0)
    waiting = [broker.report(job, running=False) for job in range(4, 11)]
    broker.hello([broker.report(3), *waiting], [gone])
    assert [name for one in broker.said(Recall) for name in one.attempts] == [
        broker.name(job) for job in range(4, 11)
    ]
    assert broker.started_jobs() == []


def test_no_job_is_prefetched_behind_one_that_is_being_stopped(
    broker: Brokerage,
) -> None:
    broker.step(broker.new_job("true"))
    broker.step(Cancel(ME, [5]))
    broker.step_hear(Exited(broker.name(2), broker.now_us, 0))
    broker.flush()
    assert leaders(broker) == {3: None, 4: 3, 5: 4}
    broker.exit(5, reason="cancelled before it started")
    broker.exit(3)
    assert leaders(broker) == {4: None, 6: 4}
