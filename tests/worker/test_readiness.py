"""A worker that cannot start jobs says so, and gives back what has not begun."""

from typing import Any

import pytest

from grass.keeper.protocol import RecallVerb
from grass.link.messages import RECALLED, Exited, Readiness, Returned, Welcome
from grass.worker.core.readiness import LONGEST_UNABLE
from tests.support.building import typed

from .lab import FIRST, SECOND, THIRD, Lab, listed, ready

FULL = "no space left on device"
CLUSTER = "a" * 16


def welcomed(cores: int = 3, *, heeds: bool = True) -> Lab:
    lab = ready(cores)
    lab.broker(Welcome(CLUSTER, heeds_readiness=heeds))
    return lab


def on(unit: int) -> dict[str, dict[str, int]]:
    return {"cpu": {str(unit): 10_000}}


def test_the_broker_is_told_once_that_jobs_cannot_be_started_and_why() -> None:
    lab = welcomed()
    assert lab.keeper("unable", reason=FULL).to_broker == [Readiness(FULL)]
    assert lab.keeper("unable", reason=FULL).to_broker == []
    assert lab.reported().unable == FULL
    assert lab.keeper("able").to_broker == [Readiness("")]
    assert lab.reported().unable == ""


def test_what_has_not_begun_is_asked_back_and_returned() -> None:
    lab = welcomed()
    for name, unit in ((FIRST, 0), (SECOND, 1), (THIRD, 2)):
        lab.start(name, on(unit), placed_at=5)
    lab.keeper("started", id=FIRST, pid=1, at=1)
    asked = lab.keeper("unable", reason=FULL).to_keeper
    assert typed(asked) == typed([RecallVerb([SECOND, THIRD])])
    answer = lab.keeper("recalled", id=SECOND).to_broker
    assert answer == [Returned(SECOND, RECALLED, 5)]
    # The keeper had begun with the other by then.
    assert lab.keeper("started", id=THIRD, pid=2, at=1).to_broker


def test_a_start_that_was_under_way_is_returned_at_once() -> None:
    lab = welcomed()
    lab.keeper("unable", reason=FULL)
    effects = lab.start(FIRST, placed_at=5)
    assert effects.to_broker == [Returned(FIRST, RECALLED, 5)]
    assert effects.to_keeper == []
    lab.keeper("able")
    assert lab.start(SECOND).to_keeper[0].id


def test_a_broker_that_does_not_heed_it_is_given_nothing_back() -> None:
    """An older one would place it here again at once, and again."""
    lab = welcomed(heeds=False)
    lab.start(FIRST)
    effects = lab.keeper("unable", reason=FULL)
    assert (effects.to_broker, effects.to_keeper) == ([], [])
    assert lab.start(SECOND, on(1)).to_keeper[0].id


def test_a_broker_that_is_met_later_is_given_back_what_has_not_begun() -> None:
    lab = ready(2)
    lab.start(FIRST)
    assert lab.keeper("unable", reason=FULL).to_broker == []
    effects = lab.broker(Welcome(CLUSTER, heeds_readiness=True))
    assert typed(effects.to_keeper) == typed([RecallVerb([FIRST])])


def test_what_changed_between_hello_and_welcome_is_told() -> None:
    lab = ready(2)
    lab.keeper("unable", reason=FULL)
    said = lab.broker(Welcome(CLUSTER, heeds_readiness=True)).to_broker
    assert said == [Readiness(FULL)]
    assert lab.reported().unable == FULL
    assert lab.broker(Welcome(CLUSTER, heeds_readiness=True)).to_broker == []


def test_that_jobs_can_be_started_since_the_hello_is_told() -> None:
    lab = ready(2)
    lab.keeper("unable", reason=FULL)
    assert lab.reported().unable == FULL
    lab.keeper("able")
    said = lab.broker(Welcome(CLUSTER, heeds_readiness=True)).to_broker
    assert said == [Readiness("")]


def test_a_keeper_that_says_so_when_it_is_met_is_believed() -> None:
    lab = Lab(2)
    lab.broker(Welcome(CLUSTER, heeds_readiness=True))
    waits = listed(FIRST, "running", started_at=None, pid=None, begun=False)
    effects = lab.keeper("hello", attempts=[waits], unable=FULL)
    assert effects.to_broker[-1] == Readiness(FULL)
    assert RecallVerb([FIRST]) in effects.to_keeper
    assert lab.keeper("hello", attempts=[]).to_broker[-1] == Readiness("")


def test_a_worker_without_a_keeper_says_so_in_few_words() -> None:
    lab = welcomed()
    lab.start(FIRST, placed_at=5)
    lab.core.keeper_lost()
    lab.start(SECOND, on(1), placed_at=6)
    lab.core.keeper_fails("x" * 1000)
    # Of the first one the keeper that died may have heard.
    said, returned = lab.core.take().to_broker
    assert returned == Returned(SECOND, RECALLED, 6)
    assert isinstance(said, Readiness)
    assert said.unable.startswith("no keeper: x")
    assert len(said.unable) == LONGEST_UNABLE
    assert isinstance(lab.start(THIRD).to_broker[0], Returned)


@pytest.mark.parametrize(
    ("told", "lost"), [({"begun": False}, False), ({"begun": True}, True), ({}, True)]
)
def test_what_a_dead_keeper_left_no_trace_of_is_lost_only_if_it_may_have_begun(
    told: dict[str, Any], lost: bool
) -> None:
    """A daemon before this one started it; older keepers do not tell."""
    lab = Lab()
    waits = listed(FIRST, "running", started_at=None, pid=None, **told)
    lab.keeper("hello", attempts=[waits])
    lab.core.keeper_lost()
    [answer, *_] = lab.keeper("hello", attempts=[]).to_broker
    if lost:
        [ended] = answer.exited
        assert isinstance(ended, Exited)
        assert ended.lost
    else:
        assert answer == Returned(FIRST, RECALLED)


def test_what_has_begun_since_it_was_listed_is_lost_without_a_trace() -> None:
    lab = Lab()
    waits = listed(FIRST, "running", started_at=None, pid=None, begun=False)
    lab.keeper("hello", attempts=[waits])
    lab.keeper("started", id=FIRST, pid=7, at=1, meta=waits["meta"])
    lab.core.keeper_lost()
    [hello] = lab.keeper("hello", attempts=[]).to_broker
    assert hello.exited[0].lost
