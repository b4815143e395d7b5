"""Pools and pilots in any store: kept whole, replaced and removed."""

from collections.abc import Callable

from tests.support.building import a_pool

from grass.model.pools import Pilot, PilotReport, PilotStage, PilotState
from grass.store.changes import Changes
from grass.store.interface import Store

Reopen = Callable[[], Store]
WHOLE = Pilot(
    mark="m1",
    pool="uni",
    asked_at=5,
    stage=PilotStage.WORKING,
    unsure_since=6,
    report=PilotReport(mark="m1", state=PilotState.RUNNING, engine_id="7", place="gpu"),
    worker="w1",
    came_at=7,
)
BARE = Pilot(mark="m2", pool="uni", asked_at=5)


def test_a_new_store_has_no_pools(store: Store) -> None:
    assert (store.load(0).pools, store.load(0).pilots) == ([], [])


def test_they_read_back_as_they_were_committed(reopen: Reopen) -> None:
    pool = a_pool("uni", refusals=3, retry_at=9, words="no", options=("--qos=x",))
    reopen().commit(Changes(pools={"uni": pool}, pilots={"m1": WHOLE, "m2": BARE}))
    loaded = reopen().load(0)
    assert (loaded.pools, loaded.pilots) == ([pool], [WHOLE, BARE])


def test_removed_ones_are_gone_and_may_come_again(reopen: Reopen) -> None:
    store, pool = reopen(), a_pool("uni")
    store.commit(Changes(pools={"uni": pool}, pilots={"m1": WHOLE, "m2": BARE}))
    store.commit(Changes(removed_pools=["uni"], removed_pilots=["m1", "never"]))
    assert (reopen().load(0).pools, reopen().load(0).pilots) == ([], [BARE])
    again = Changes(removed_pools=["uni"], pools={"uni": pool})
    reopen().commit(again)
    assert reopen().load(0).pools == [pool]
