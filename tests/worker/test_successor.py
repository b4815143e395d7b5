"""What a worker tells the keeper that comes after one that died."""

from grass.link.messages import Continue, Hello, Recall, Returned, Stop, Suspend
from tests.worker.lab import FIRST, SECOND, THIRD, Lab, listed, ready, verbs_of


def waiting() -> Lab:
    """Have one attempt that runs, one behind it, and one behind that."""
    lab = ready()
    lab.start(FIRST)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=1)
    lab.start(SECOND, after=FIRST, placed_at=6)
    lab.start(THIRD, after=SECOND, placed_at=7)
    return lab


def test_a_suspend_that_died_with_the_keeper_is_sent_again() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.broker(Suspend(FIRST))
    lab.core.keeper_lost()
    effects = lab.keeper("hello", attempts=[])
    assert verbs_of(effects.to_keeper) == ["start", "suspend"]
    (hello,) = effects.to_broker
    assert isinstance(hello, Hello)
    assert hello.running[0].suspended


def test_what_was_continued_is_not_suspended_again() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.broker(Suspend(FIRST))
    lab.core.keeper_lost()
    lab.broker(Continue(FIRST))
    assert verbs_of(lab.keeper("hello", attempts=[]).to_keeper) == ["start"]


def test_a_suspended_attempt_that_was_stopped_is_told_both_again() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.broker(Suspend(FIRST))
    lab.broker(Stop(FIRST, 5.0))
    lab.core.keeper_lost()
    again = lab.keeper("hello", attempts=[]).to_keeper
    assert verbs_of(again) == ["start", "suspend", "stop"]


def test_what_was_asked_back_and_is_nowhere_is_given_back() -> None:
    lab = waiting()
    lab.broker(Recall([SECOND], [6]))
    lab.core.keeper_lost()
    effects = lab.keeper("hello", attempts=[listed(FIRST, "running")])
    assert verbs_of(effects.to_keeper) == ["start"]
    assert effects.to_keeper[0].id == THIRD
    assert effects.to_keeper[0].after == FIRST
    returned, hello = effects.to_broker
    assert returned == Returned(SECOND, "recalled", 6)
    assert isinstance(hello, Hello)
    assert [one.attempt for one in hello.running] == [FIRST, THIRD]


def test_a_recall_that_no_keeper_heard_is_answered_by_the_next() -> None:
    lab = waiting()
    lab.core.keeper_lost()
    lab.broker(Recall([THIRD], [7]))
    effects = lab.keeper("hello", attempts=[listed(FIRST, "running")])
    assert [verb.id for verb in effects.to_keeper] == [SECOND]
    assert effects.to_broker[0] == Returned(THIRD, "recalled", 7)


def test_units_of_what_was_given_back_are_free() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.core.keeper_lost()
    lab.broker(Recall([FIRST]))
    assert lab.keeper("hello", attempts=[]).to_keeper == []
    assert lab.start(SECOND).to_keeper


def test_what_was_asked_back_and_runs_runs_on() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.broker(Recall([FIRST]))
    lab.core.keeper_lost()
    effects = lab.keeper("hello", attempts=[listed(FIRST, "running")])
    assert effects.to_keeper == []
    assert [type(message) for message in effects.to_broker] == [Hello]


def test_the_output_of_an_attempt_that_another_daemon_asked_for_is_known() -> None:
    lab = Lab()
    waits = listed(FIRST, "running", started_at=None, pid=None, begun=False)
    lab.keeper("hello", attempts=[waits])
    (started,) = lab.keeper("started", id=FIRST, pid=7, at=1).to_broker
    assert (started.output, started.stderr) == ("/o", None)
