"""What attempts of pruned jobs held, from every store."""

import pytest
from tests.support.building import a_job, an_attempt

from grass.model.amount_text import WHOLE
from grass.model.usage.held_sums import (
    DAY_US,
    HOUR_US,
    KEPT_US,
    RECENT_US,
    HeldSum,
    SumKey,
    held_by,
)
from grass.store.changes import Changes
from grass.store.interface import Store

NOW = 10_000 * DAY_US
KEY = SumKey(NOW, NOW - HOUR_US, "uid:1", "thesis", "box", '{"gpu":{"0":10000}}')


def held(began: int, ended: int, attempts: int = 1) -> HeldSum:
    return HeldSum(began, ended, ended - began, attempts)


def test_sums_of_one_key_are_added_up_and_others_stay_apart(store: Store) -> None:
    other = KEY._replace(project="other")
    store.commit(Changes(held_sums={KEY: held(10, 30), other: held(5, 6)}))
    store.commit(Changes(held_sums={KEY: held(8, 20, 2)}))
    assert store.held_since(0) == {KEY: HeldSum(8, 30, 32, 3), other: held(5, 6)}


def test_only_those_that_ended_since_are_read(store: Store) -> None:
    old = KEY._replace(ended_in=NOW - DAY_US)
    kept = {KEY: held(NOW, NOW + 9), old: held(NOW - DAY_US, NOW - 1)}
    store.commit(Changes(held_sums=kept))
    assert store.held_since(NOW - 1) == kept
    assert store.held_since(NOW) == {KEY: kept[KEY]}


def test_sums_of_long_ago_are_forgotten_with_the_next(store: Store) -> None:
    old = KEY._replace(ended_in=NOW - KEPT_US - 1)
    store.commit(Changes(held_sums={old: held(1, 2)}))
    assert list(store.held_since(0)) == [old]
    store.commit(Changes(held_sums={KEY: held(3, 4)}))
    assert list(store.held_since(0)) == [KEY]


@pytest.mark.parametrize(("ago", "slot"), [(1, HOUR_US), (RECENT_US + 1, DAY_US)])
def test_a_thousand_short_attempts_are_few_sums(ago: int, slot: int) -> None:
    job = a_job(1, owner="uid:1", project="thesis")
    first = NOW - ago - 1000
    units = {"gpu": {"0": WHOLE}, "vram": {"0": 5}, "ram": {"ram": 1}}
    attempts = [
        an_attempt(
            1,
            number,
            worker="box",
            started_at=first + number,
            finished_at=first + number + 1,
            allocation={**units, "cpu": {str(number % 8): WHOLE}},
        )
        for number in range(1000)
    ]
    sums = held_by(job, attempts, NOW)
    assert len(sums) <= 2
    assert sum(one.attempts for one in sums.values()) == 1000
    assert sum(one.held_us for one in sums.values()) == 1000
    assert {key.ended_in % slot for key in sums} == {0}
    assert {key.allocation for key in sums} == {
        '{"cpu":{"":10000},"gpu":{"0":10000}}',
    }
