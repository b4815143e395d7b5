"""Attempts of one name, and exits of other brokers: nothing is mixed up or lost."""

from grass.keeper.protocol import ForgetVerb, RecallVerb
from grass.link.messages import Exited, Forget, Recall, Returned, Started, Welcome
from grass.worker.core import attempt_table
from grass.worker.core.attempt_table import NAME_IS_TAKEN
from tests.support.building import typed
from tests.worker.lab import FIRST, SECOND, Lab, listed, ready, verbs_of

OWN, OTHER = "a" * 16, "b" * 16
FOREIGN = f"{OTHER}.1.1"


def ran(lab: Lab, name: str, at: int = 1) -> Exited:
    """Have an attempt start and end, and return what the broker is told."""
    lab.start(name, allocation={})
    (ended,) = lab.keeper("exited", id=name, at=at, code=0).to_broker
    assert isinstance(ended, Exited)
    return ended


def test_all_that_is_told_of_an_attempt_says_when_it_was_placed() -> None:
    lab = ready()
    lab.start(placed_at=5)
    assert [one.placed_at for one in lab.reported().running] == [5]
    (started,) = lab.keeper("started", id=FIRST, pid=7, ticks=9, at=1).to_broker
    assert isinstance(started, Started)
    assert [one.placed_at for one in lab.reported().running] == [5]
    (ended,) = lab.keeper("exited", id=FIRST, at=2, code=0).to_broker
    assert isinstance(ended, Exited)
    assert (started.placed_at, ended.placed_at) == (5, 5)


def test_a_new_daemon_knows_from_the_keeper_when_an_attempt_was_placed() -> None:
    lab = Lab()
    line = listed(FIRST, "running")
    line["meta"]["placed_at"] = 5
    lab.keeper("hello", attempts=[line])
    assert [one.placed_at for one in lab.reported().running] == [5]
    assert lab.start(placed_at=5).to_broker == []
    assert lab.start(placed_at=6).to_broker == [Returned(FIRST, NAME_IS_TAKEN, 6)]


def test_a_start_is_given_back_while_another_attempt_has_its_name() -> None:
    lab = ready()
    lab.start(placed_at=5)
    refused = lab.start(placed_at=6)
    assert refused.to_broker == [Returned(FIRST, NAME_IS_TAKEN, 6)]
    assert refused.to_keeper == []
    lab.keeper("exited", id=FIRST, at=2, code=0)
    assert lab.start(placed_at=7).to_broker == [Returned(FIRST, NAME_IS_TAKEN, 7)]
    lab.broker(Forget([FIRST]))
    assert verbs_of(lab.start(placed_at=8).to_keeper) == ["start"]


def test_a_start_that_was_given_back_is_never_taken_later() -> None:
    lab = ready()
    lab.start(SECOND, placed_at=5)
    assert lab.start(placed_at=6).to_broker
    lab.keeper("exited", id=SECOND, at=2, code=0)
    again = lab.start(placed_at=6)
    assert again.to_keeper == []
    assert again.to_broker == [Returned(FIRST, "recalled", 6)]
    assert lab.start(placed_at=7).to_keeper


def test_a_recall_of_one_attempt_does_not_take_its_namesake_back() -> None:
    lab = ready()
    lab.start(placed_at=5)
    effects = lab.broker(Recall([FIRST], [6]))
    assert effects.to_broker == [Returned(FIRST, "recalled", 6)]
    assert typed(effects.to_keeper) == typed([RecallVerb([])])


def test_an_exit_that_the_keeper_did_not_hear_was_forgotten_is_no_news() -> None:
    lab = ready()
    lab.start(placed_at=5)
    lab.keeper("exited", id=FIRST, at=2, code=1)
    lab.core.keeper_lost()
    lab.broker(Forget([FIRST]))
    lab.start(placed_at=6)
    line = listed(FIRST, "exited", at=2, code=1)
    line["meta"]["placed_at"] = 5
    effects = lab.keeper("hello", attempts=[line])
    assert verbs_of(effects.to_keeper) == ["forget", "start"]
    told = lab.reported()
    assert told.exited == []
    assert [one.placed_at for one in told.running] == [6]


def test_a_broker_cannot_have_the_exits_of_another_forgotten() -> None:
    lab = ready()
    ended = ran(lab, FOREIGN)
    lab.broker(Welcome(OWN))
    own = ran(lab, FIRST)
    assert typed(lab.broker(Forget([FOREIGN, FIRST])).to_keeper) == typed(
        [ForgetVerb([FIRST])]
    )
    assert own not in lab.reported().exited
    assert lab.reported().exited == [ended]
    lab.broker(Welcome(OTHER))
    lab.broker(Forget([FOREIGN]))
    assert lab.reported().exited == []


def test_exits_of_other_brokers_are_not_kept_without_end() -> None:
    lab = ready()
    lab.broker(Welcome(OWN))
    names = [f"{OTHER}.{job}.1" for job in range(1, attempt_table.MOST_KEPT + 2)]
    for at, name in enumerate(names[:-1], 1):
        ran(lab, name, at)
    ran(lab, FIRST)
    lab.start(names[-1], allocation={})
    effects = lab.keeper("exited", id=names[-1], at=9999, code=0)
    assert typed(effects.to_keeper) == typed([ForgetVerb([names[0]])])
    (event,) = effects.log_events
    assert str(event).startswith(f"exits.dropped exits=1 attempt={names[0]} ")
    kept = [one.attempt for one in lab.reported().exited]
    assert sorted(kept) == sorted([*names[1:], FIRST])


def test_too_many_exits_of_another_broker_are_dropped_when_it_is_known_whose() -> None:
    lab = ready()
    for at in range(1, attempt_table.MOST_KEPT + 3):
        ran(lab, f"{OTHER}.{at}.1", at)
    assert lab.broker(Welcome(OTHER)).log_events == []
    (event,) = lab.broker(Welcome(OWN)).log_events
    assert event.fields["exits"] == 2
