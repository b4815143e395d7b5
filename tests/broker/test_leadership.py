"""Never two leaders: whatever hangs, is lost or late, and however clocks are set."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.broker.leading import FLAGS, Broker, Database, leaders, run

from grass.broker.core.leadership import (
    ABSTAINS_S,
    CUT_OFF_S,
    MARGIN_S,
    MOMENT_S,
    RENEW_S,
    TERM_S,
    AskForLease,
    Leadership,
    LeadPhase,
    Load,
    Release,
    StepDown,
    is_cut_off,
)
from grass.model.brokers import BrokerPresence, Lease, SeenBroker

HOUR_S = 3600.0
SUDDEN = (
    *("lose_write", "forget_write", "lose_reply", "restart", "begin_write"),
    *("yield_lead", "set_database_back"),
)
PAUSES = (0.0, 0.3, 1.0, 3.0, 4.1, 5.1, 8.0)
EVENTS = some.lists(
    some.tuples(
        some.sampled_from((*FLAGS, *FLAGS, *SUDDEN)),
        some.integers(0, 2),
        some.sampled_from(PAUSES),
    ),
    max_size=40,
)
CLOCKS = some.lists(
    some.sampled_from((0.0, HOUR_S, -HOUR_S, 17.0)), min_size=2, max_size=3
)
Events = list[tuple[str, int, float]]


def cluster(clocks: list[float]) -> tuple[Database, list[Broker]]:
    database = Database()
    return database, [Broker(f"b{n}", database, at) for n, at in enumerate(clocks)]


def happen(database: Database, brokers: list[Broker], events: Events) -> None:
    for event, who, then_s in events:
        one = brokers[who % len(brokers)]
        if event in FLAGS:
            setattr(one, event, not getattr(one, event))
        else:
            getattr(one, event)()
        run(database, brokers, then_s)


@given(CLOCKS, EVENTS)
def test_no_write_is_lost_and_no_two_brokers_speak_as_the_leader(
    clocks: list[float], events: Events
) -> None:
    database, brokers = cluster(clocks)
    happen(database, brokers, events)
    taken = [epoch for one in brokers for epoch in one.led]
    assert len(taken) == len(set(taken)), "two brokers led in one epoch"


@given(CLOCKS, EVENTS)
def test_somebody_leads_soon_after_all_faults_are_over(
    clocks: list[float], events: Events
) -> None:
    database, brokers = cluster(clocks)
    happen(database, brokers, events)
    for one in brokers:
        for flag in FLAGS:
            setattr(one, flag, False)
    run(database, brokers, 2 * TERM_S + 2 * RENEW_S)
    before = database.number
    run(database, brokers, 1.0)
    assert database.number > before
    (leader,) = leaders(brokers)
    assert leader.memory is not None


@pytest.mark.parametrize("fault", ["hangs", "cut"])
@pytest.mark.parametrize("set_back_s", [0.0, HOUR_S])
def test_a_standby_leads_within_six_seconds_of_a_leader_that(
    fault: str, set_back_s: float
) -> None:
    database, brokers = cluster([0.0, HOUR_S])
    run(database, brokers, 3.0)
    (old,) = leaders(brokers)
    setattr(old, fault, True)
    database.clock_s -= set_back_s
    began = database.now_s
    while old in leaders(brokers) or not list(leaders(brokers)):
        run(database, brokers, 0.1)
        assert database.now_s - began < TERM_S + RENEW_S + 1.0
    setattr(old, fault, False)
    run(database, brokers, 3.0)
    assert old not in leaders(brokers)
    assert old.leadership.lease.holder != old.name


def mine(epoch: int = 1, remaining_s: float = TERM_S) -> Lease:
    return Lease(holder="me", address="h1:1", epoch=epoch, remaining_s=remaining_s)


OTHER = Lease(holder="you", address="h2:1", epoch=4, remaining_s=3.0)


def leading() -> Leadership:
    one = Leadership("me", 10.0)
    assert one.step(10.0) == [AskForLease(1, 0)]
    assert one.answered(1, mine(), 10.2) == [Load(1)]
    assert [one.phase, one.loaded(1, 10.4), one.phase] == [
        LeadPhase.LOADING,
        [],
        LeadPhase.LEADING,
    ]
    return one


def test_a_term_counts_from_the_request_and_is_trusted_for_less() -> None:
    one = leading()
    assert one.trusts(10.0 + TERM_S - MARGIN_S - 0.01)
    assert not one.trusts(10.0 + TERM_S - MARGIN_S)


def test_no_term_is_trusted_for_longer_than_one_lasts() -> None:
    one = Leadership("me", 10.0)
    one.step(10.0)
    one.answered(1, mine(remaining_s=HOUR_S), 10.2)
    assert not one.trusts(10.0 + TERM_S - MARGIN_S)


def test_a_leader_renews_its_epoch_every_second() -> None:
    one = leading()
    assert one.wake_at() == 11.0
    assert not one.step(10.9)
    assert one.step(11.0) == [AskForLease(2, 1)]
    assert not one.answered(2, mine(), 11.1)
    assert one.trusts(11.0 + TERM_S - MARGIN_S - 0.01)


def test_without_a_reply_a_leader_steps_down_in_time_and_asks_for_the_next_epoch() -> (
    None
):
    one = leading()
    one.step(11.0)
    assert one.wake_at() == 10.0 + TERM_S - MARGIN_S
    (decided,) = one.step(14.0)
    assert isinstance(decided, StepDown)
    assert one.step(16.0) == [AskForLease(3, 0)]


def test_a_reply_that_renews_an_epoch_that_was_given_up_is_not_used() -> None:
    one = leading()
    one.step(11.0)
    one.lost("a commit was refused", 11.5)
    assert one.answered(2, mine(), 11.6) == [AskForLease(3, 0)]
    assert one.answered(3, mine(2), 11.7) == [Load(2)]


def test_a_reply_that_comes_when_its_term_is_over_tells_nothing() -> None:
    one = Leadership("me", 0.0)
    one.step(0.0)
    assert not [d for d in one.answered(1, mine(), 4.1) if isinstance(d, Load)]
    assert not one.leads


def test_a_request_that_hangs_is_given_up_after_a_term() -> None:
    one = Leadership("me", 0.0)
    assert one.step(0.0) == [AskForLease(1, 0)]
    assert not one.step(4.9)
    assert one.step(5.0) == [AskForLease(2, 0)]
    assert not one.answered(1, mine(), 5.1)
    assert one.answered(2, mine(), 5.2) == [Load(1)]


def test_a_standby_knows_who_leads_for_as_long_as_that_lasts() -> None:
    one = Leadership("me", 0.0)
    one.step(0.0)
    assert not one.answered(1, OTHER, 0.1)
    assert one.leader(2.9) == OTHER
    assert one.leader(3.1) is None


def test_a_leader_that_is_told_of_another_one_steps_down_and_knows_it() -> None:
    one = leading()
    one.step(11.0)
    assert one.answered(2, OTHER, 11.1) == [StepDown("h2:1 leads")]
    assert one.leader(12.0) == OTHER
    assert not one.trusts(11.2)


def test_in_doubt_about_a_commit_a_leader_takes_the_next_epoch_before_it_loads() -> (
    None
):
    one = leading()
    assert one.doubt(10.5) == [AskForLease(2, 0)]
    assert not one.loaded(1, 10.55)
    assert one.answered(2, mine(2), 10.6) == [Load(2)]
    assert [one.phase, one.loaded(2, 10.7), one.phase] == [
        LeadPhase.LOADING,
        [],
        LeadPhase.LEADING,
    ]


def test_the_state_of_an_epoch_that_has_ended_leads_nowhere() -> None:
    one = leading()
    one.doubt(10.5)
    one.answered(2, mine(2), 10.6)
    one.loaded(1, 10.7)
    assert one.phase is LeadPhase.LOADING


def test_a_leader_that_yields_ends_its_term_and_abstains_for_a_while() -> None:
    one = leading()
    stepped, release = one.yield_lead(10.5)
    assert isinstance(stepped, StepDown)
    assert release == Release(1)
    assert not one.trusts(10.5)
    assert not one.step(10.4 + ABSTAINS_S)
    assert one.wake_at() == 10.5 + ABSTAINS_S
    assert one.step(10.5 + ABSTAINS_S) == [AskForLease(2, 0)]


def test_the_reply_to_what_was_asked_before_it_yielded_changes_nothing() -> None:
    one = leading()
    assert one.step(11.0) == [AskForLease(2, 1)]
    one.yield_lead(11.1)
    assert not one.answered(2, mine(), 11.2)
    assert not one.leads


def test_a_broker_that_leaves_never_asks_again() -> None:
    one = leading()
    assert one.leave("the daemon stops") == [StepDown("the daemon stops")]
    assert not one.trusts(10.5)
    assert not one.step(10.5 + HOUR_S)
    assert one.wake_at() == math.inf
    assert not one.leave("the daemon stops")


def test_what_a_broker_that_leaves_has_asked_for_before_is_not_taken() -> None:
    one = Leadership("me", 0.0)
    one.step(0.0)
    assert not one.leave("the daemon stops")
    assert not one.answered(1, mine(), 0.1)
    assert not one.leads


def test_a_broker_without_an_epoch_has_nothing_to_yield() -> None:
    one = Leadership("me", 0.0)
    assert one.yield_lead(0.0) == [AskForLease(1, 0)]


def standby(asks: int, seen_s: float = 0.0, id: str = "other") -> SeenBroker:
    return SeenBroker(broker=BrokerPresence(id=id, asks=asks), seen_s=seen_s)


@pytest.mark.parametrize(
    ("quiet_s", "seen", "cut_off"),
    [
        (CUT_OFF_S, [standby(2)], True),
        (CUT_OFF_S, [standby(1), standby(1, id="third")], True),
        (CUT_OFF_S - 0.1, [standby(9)], False),
        (1e9, [standby(1)], False),
        (1e9, [], False),
        (1e9, [standby(9, id="me")], False),
        (1e9, [standby(9, seen_s=CUT_OFF_S)], False),
    ],
)
def test_a_leader_is_cut_off_where_workers_dial_a_standby_and_not_it(
    quiet_s: float, seen: list[SeenBroker], cut_off: bool
) -> None:
    assert is_cut_off(quiet_s, seen, "me") is cut_off


def test_a_standby_asks_again_as_soon_as_the_term_of_another_is_over() -> None:
    one = Leadership("me", 0.0)
    one.step(0.0)
    one.answered(1, Lease(holder="other", epoch=1, remaining_s=0.3), 0.1)
    assert one.wake_at() == pytest.approx(0.4 + MOMENT_S)
    assert one.step(one.wake_at()) == [AskForLease(2, 0)]
