"""A start waits for its blobs: it holds its units, and can be stopped or recalled."""

from typing import Any

from grass.keeper.protocol import StartVerb
from grass.link.messages import RECALLED, Exited, Recall, Returned, Stop
from grass.worker.core.usage.samples import Sample
from tests.worker.lab import FIRST, SECOND, THIRD, Lab, ready, verbs_of


def waiting(lab: Lab, name: str = FIRST, **more: Any) -> None:
    """Have the start of an attempt whose blobs are not here yet."""
    lab.core.fetching.add(name)
    effects = lab.start(name, **more)
    assert (effects.to_keeper, effects.to_broker) == ([], [])


def sent(lab: Lab) -> list[StartVerb]:
    """Take the starts that the keeper is sent."""
    verbs = lab.core.take().to_keeper
    return [verb for verb in verbs if isinstance(verb, StartVerb)]


def test_it_begins_when_they_are_here_and_holds_its_units_until_then() -> None:
    lab = ready()
    waiting(lab)
    (refused,) = lab.start(SECOND).to_broker
    assert isinstance(refused, Returned)
    assert "is given out already" in refused.reason
    assert [one.attempt for one in lab.reported().running] == [FIRST]
    lab.core.fetched(FIRST)
    assert verbs_of(lab.core.take().to_keeper) == ["start"]
    lab.core.fetched(FIRST)
    assert lab.core.take().to_keeper == []


def test_it_is_returned_when_it_is_stopped_or_recalled() -> None:
    for message in (Stop(FIRST, 1.0), Recall([FIRST])):
        lab = ready()
        waiting(lab, placed_at=5)
        assert lab.broker(message).to_broker == [Returned(FIRST, RECALLED, 5)]
        lab.core.fetched(FIRST)
        assert lab.core.take().to_keeper == []
        assert verbs_of(lab.start(SECOND).to_keeper) == ["start"]


def test_one_that_cannot_have_them_fails_and_says_why() -> None:
    lab = ready()
    waiting(lab)
    lab.core.fetched(FIRST, "blob abc is gone from the broker")
    (ended,) = lab.core.take().to_broker
    assert isinstance(ended, Exited)
    assert ended.reason == "could not start: blob abc is gone from the broker"
    assert verbs_of(lab.start(SECOND).to_keeper) == ["start"]


def test_its_follower_is_sent_after_it() -> None:
    lab = ready()
    waiting(lab)
    effects = lab.start(SECOND, after=FIRST)
    assert effects.to_keeper == []
    waiting(lab, THIRD, after=SECOND)
    lab.core.fetched(FIRST)
    assert [verb.id for verb in sent(lab)] == [FIRST, SECOND]
    lab.core.fetched(THIRD)
    assert [verb.id for verb in sent(lab)] == [THIRD]


def test_its_follower_begins_with_a_look_when_it_cannot_begin() -> None:
    lab = ready()
    waiting(lab)
    lab.start(SECOND, after=FIRST)
    lab.core.fetched(FIRST, "blob abc is gone from the broker")
    assert lab.core.take().look
    lab.core.sampled(Sample(lab.core.now_s, (), {}))
    (verb,) = sent(lab)
    assert (verb.id, verb.after) == (SECOND, None)


def test_a_follower_that_waits_begins_on_the_units_of_one_that_has_ended() -> None:
    lab = ready()
    lab.start(FIRST)
    waiting(lab, SECOND, after=FIRST)
    lab.keeper("exited", id=FIRST, at=2, code=0)
    lab.core.fetched(SECOND)
    (verb,) = sent(lab)
    assert (verb.id, verb.after) == (SECOND, None)


def test_a_new_keeper_gets_no_start_that_still_waits() -> None:
    lab = ready()
    waiting(lab)
    lab.core.keeper_lost()
    assert "start" not in verbs_of(lab.keeper("hello", attempts=[]).to_keeper)
    lab.core.fetched(FIRST)
    assert verbs_of(lab.core.take().to_keeper) == ["start"]
