"""Very short jobs are handed ahead; nobody is overtaken and nothing is lost."""

from grass.broker import relay
from grass.link.messages import Exited, Recall, Returned, Start, Started
from grass.model.lifecycle import JobState
from tests.support.brokerage import Brokerage

MILLISECOND = 1_000


def short_run(broker: Brokerage, job: int, took_us: int = MILLISECOND) -> None:
    """Let a running job have started and ended within a millisecond."""
    name = broker.name(job)
    at = broker.now_us
    broker.hear(Started(name, 100 + job, at, "/out"))
    broker.hear(Exited(name, at + took_us, 0))


def with_followers(broker: Brokerage, waiting: int = 4) -> list[int]:
    """Have short jobs run until others were handed ahead; return who follows whom."""
    jobs = [broker.enqueue() for _ in range(waiting + 3)]
    short_run(broker, jobs[0])
    return [job for job in jobs if job in broker.state.handed]


def test_jobs_are_handed_ahead_once_their_kind_is_known_to_be_short(
    broker: Brokerage,
) -> None:
    first = [broker.enqueue() for _ in range(6)]
    assert not broker.state.handed
    short_run(broker, first[0])
    starts = broker.said(Start)
    assert [start.job for start in starts] == first[2:6]
    leader = broker.name(first[2])
    assert [start.after for start in starts] == [
        None,
        leader,
        broker.name(first[3]),
        broker.name(first[4]),
    ]
    assert broker.job_state(first[5]) is JobState.RUNNING


def test_long_jobs_are_never_handed_ahead(broker: Brokerage) -> None:
    jobs = [broker.enqueue() for _ in range(5)]
    short_run(broker, jobs[0], took_us=int(2 * relay.SHORT_S * 1e6))
    assert not broker.state.handed


def test_an_end_passes_the_units_to_the_follower(broker: Brokerage) -> None:
    follower = with_followers(broker)[0]
    leader = broker.state.attempts[follower].after
    assert leader is not None
    broker.exit(leader)
    assert broker.state.attempts[follower].after is None
    assert follower in broker.state.scheduler.holders("worker-1")


def test_who_waits_too_long_is_recalled_and_queued_again(broker: Brokerage) -> None:
    handed = with_followers(broker)
    broker.now_us += int(2 * relay.PATIENCE_S * 1e6)
    broker.flush()
    (recall,) = broker.said(Recall)
    assert recall.attempts == [broker.name(job) for job in handed]
    for name in recall.attempts:
        broker.step_hear(Returned(name, "recalled"))
    broker.flush()
    assert all(broker.job_state(job) is JobState.QUEUED for job in handed[1:])
    assert all(not broker.job(job).attempts for job in handed[1:])


def test_a_pause_recalls_what_was_handed_ahead(broker: Brokerage) -> None:
    handed = with_followers(broker)
    broker.pause()
    (recall,) = broker.said(Recall)
    assert recall.attempts == [broker.name(job) for job in handed]


def test_cancelling_a_follower_lets_the_next_move_up(broker: Brokerage) -> None:
    first, second, *_ = with_followers(broker)
    leader = broker.state.attempts[first].after
    broker.cancel(first)
    broker.hear(Exited(broker.name(first), broker.now_us, reason="cancelled"))
    assert broker.job_state(first) is JobState.CANCELLED
    assert broker.state.attempts[second].after == leader


def test_after_a_restart_followers_are_recalled_or_taken_back(
    broker: Brokerage,
) -> None:
    handed = with_followers(broker)
    running = [job for job in broker.state.attempts if job not in handed]
    reports = [broker.report(job) for job in running]
    kept = broker.report(handed[0], running=False, pid=None, started_at=None)
    broker.restart()
    broker.hello([*reports, kept])
    (recall,) = broker.said(Recall)
    assert recall.attempts == [broker.name(handed[0])]
    assert all(broker.job_state(job) is JobState.QUEUED for job in handed[1:])


def test_a_follower_that_started_while_the_broker_was_down_is_adopted(
    broker: Brokerage,
) -> None:
    handed = with_followers(broker)
    leader = broker.state.attempts[handed[0]].after
    assert leader is not None
    others = [j for j in broker.state.attempts if j not in handed and j != leader]
    reports = [broker.report(job) for job in [*others, handed[0]]]
    ended = Exited(broker.name(leader), broker.now_us, 3)
    broker.restart()
    broker.hello(reports, [ended])
    assert broker.job(leader).job.exit_code == 3
    assert broker.state.attempts[handed[0]].after is None
    assert broker.job_state(handed[0]) is JobState.RUNNING
