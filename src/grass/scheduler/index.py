"""Blocked shapes, found by what a worker must free before they can start.

A blocked shape has one entry per eligible worker, in the pool of a kind that this
worker lacks for it. So no wake-up is lost, and a release asks only about the kinds and
units it freed for the best shape whose amount is now within reach.

A pool belongs to one queue whose view limits the kind, or to all queues without such a
view. Pools of queues with the same limits form a group, which knows each of them by
lanes: the best entry of one amount. So a release asks one group, however many queues
wait. What a queue itself uses up of its limits keeps its lanes out of the group until
the queue gives something back.
"""

from collections.abc import Iterable, Iterator, Mapping

from grass.model.resources import Capacity, Units
from grass.scheduler.placement import TIED
from grass.scheduler.ranks import Item, Ranked, Ranks, Reach, tied
from grass.scheduler.shapes import Order, Shape
from grass.scheduler.worker import View, Worker

TIED_KINDS = frozenset({"gpu", "vram"})
Freed = Mapping[str, Iterable[str]]
"""Units by kind."""


class Entry(Item):
    """One blocked shape in one worker's pool."""

    __slots__ = ("pool", "shape")

    def __init__(self, shape: Shape, amount: int, pool: "Pool") -> None:
        super().__init__(amount)
        self.shape = shape
        self.pool = pool

    @property
    def head(self) -> Order | None:
        """The order of the shape's first job."""
        return self.shape.head


class Lane(Item):
    """The entries of one pool that ask for one amount, as their group sees them."""

    __slots__ = ("pool",)

    def __init__(self, pool: "Pool", amount: int) -> None:
        super().__init__(amount)
        self.pool = pool

    @property
    def head(self) -> Order | None:
        """The order of the best entry."""
        best = self.pool.best_of(self.amount)
        return None if best is None else best[0]


class Pool(Ranks):
    """Shapes that lack one kind of one worker, as all queues or one view sees it."""

    __slots__ = ("group", "hidden", "lanes", "queue")

    def __init__(self, worker: Worker, kind: str, queue: str) -> None:
        """Start empty; `queue` is empty where no view limits the kind."""
        super().__init__(worker, kind)
        self.queue = queue
        self.group: Group | None = None
        self.lanes: dict[int, Lane] = {}
        self.hidden: set[int] = set()
        """Amounts of which the group does not know: the queue holds too much."""

    def push(self, shape: Shape, amount: int) -> None:
        """Add a blocked shape that asks for this amount of the kind."""
        assert shape.head is not None
        entry = shape.entries[self.worker.name] = Entry(shape, amount, self)
        if self.add(shape.head, entry) and self.group is not None:
            self.offer(amount)

    def reach(self, order: Order | None) -> Reach:
        """Tell what the queue may have now."""
        worker, queue = self.worker, self.queue
        if self.kind is TIED:
            gpu = worker.units_for("gpu", queue, order)
            return tied(gpu, worker.units_for("vram", queue, order))
        stock = worker.stocks_for(queue).get(self.kind)
        return self._reach_of(stock, worker.units_for(self.kind, queue, order))

    def best_startable(self) -> tuple[Order, Entry] | None:
        """Return the best entry within reach."""
        return _as_entry(self.best_within_reach())

    def best_live(self, better_than: Order) -> Entry | None:
        """Return the best entry of all, if it beats this order."""
        best = self.best(better_than)
        assert best is None or isinstance(best, Entry)
        return best

    def offer(self, amount: int) -> None:
        """Let the group know the best entry of an amount."""
        best = self.best_of(amount)
        assert self.group is not None
        self.withdraw(amount)
        self.hidden.discard(amount)
        if best is not None:
            lane = self.lanes[amount] = Lane(self, amount)
            self.group.add(best[0], lane)

    def withdraw(self, amount: int) -> None:
        """Let the group not know an amount any more."""
        lane = self.lanes.pop(amount, None)
        if lane is not None and lane.live and self.group is not None:
            self.group.forget(lane)

    def offer_hidden(self) -> None:
        """Let the group know what it was kept from: the queue holds less now."""
        for amount in list(self.hidden):
            self.offer(amount)

    def ever(self) -> Reach:
        """Tell what the queue could have if other queues held nothing."""
        view = self.worker.views.get(self.queue)
        if self.kind is TIED:
            gpu, vram = (self._left(view, kind) for kind in ("gpu", "vram"))
            return tied(gpu, vram)
        units = self._left(view, self.kind)
        largest = max(units.values(), default=0)
        return Reach(largest, largest, sum(units.values()))

    def _left(self, view: View | None, kind: str) -> Units:
        if view is not None and kind in view.limits:
            return view.headroom(kind)
        stock = self.worker.stocks.get(kind)
        return {} if stock is None else stock.sizes


class Group(Ranks):
    """Pools of queues with the same limits on a kind of one worker."""

    __slots__ = ("limits", "pools")

    def __init__(self, worker: Worker, kind: str, limits: Capacity) -> None:
        super().__init__(worker, kind)
        self.limits = limits
        self.pools: dict[str, Pool] = {}

    @property
    def units(self) -> set[str]:
        """The units whose release may concern it."""
        return {unit for units in self.limits.values() for unit in units}

    def reach(self, order: Order | None) -> Reach:
        """Tell what any of the queues may have, as far as others leave it."""
        if self.kind is TIED:
            return tied(self._seen("gpu", order), self._seen("vram", order))
        queue = next(iter(self.pools))
        stock = self.worker.stocks_for(queue).get(self.kind)
        return self._reach_of(stock, self._seen(self.kind, order))

    def best_startable(self) -> tuple[Order, Entry] | None:
        """Return the best entry of any pool that is within its own queue's reach."""
        passed_over: list[Lane] = []
        found: Ranked | None = None
        while found is None and (best := self.best_within_reach()) is not None:
            lane = best[1]
            assert isinstance(lane, Lane)
            if lane.pool.reach(best[0]).holds(lane.amount):
                found = lane.pool.best_of(lane.amount)
                continue
            lane.pool.withdraw(lane.amount)
            if lane.pool.ever().holds(lane.amount):
                passed_over.append(lane)
            else:
                lane.pool.hidden.add(lane.amount)
        for lane in passed_over:
            lane.pool.offer(lane.amount)
        return _as_entry(found)

    def best_live(self, better_than: Order) -> Entry | None:
        """Return the best entry of all, if it beats this order."""
        lane = self.best(better_than)
        if lane is None:
            return None
        assert isinstance(lane, Lane)
        best = _as_entry(lane.pool.best_of(lane.amount))
        return None if best is None else best[1]

    def _seen(self, kind: str, order: Order | None) -> Units:
        units = self.worker.units_for(kind, "", order)
        limits = self.limits.get(kind)
        if limits is None:
            return units
        return {
            unit: min(units[unit], limit)
            for unit, limit in limits.items()
            if unit in units
        }


class _Shelf:
    """All pools of one kind of one worker."""

    __slots__ = ("by_unit", "groups", "pools")

    def __init__(self) -> None:
        self.pools: dict[str, Pool] = {}
        self.groups: dict[object, Group] = {}
        self.by_unit: dict[str, dict[Group, None]] = {}

    def pool(self, worker: Worker, kind: str, queue: str) -> Pool:
        """Return a queue's pool, in the group it belongs to."""
        view = worker.views.get(queue)
        limits = {} if view is None else _limits(view, kind)
        pool = self.pools.get(queue if limits else "")
        if pool is None:
            pool = Pool(worker, kind, queue if limits else "")
            self.pools[pool.queue] = pool
            if limits:
                self._join(pool, limits)
        return pool

    def fed_by(self, units: Iterable[str]) -> Iterator[Pool | Group]:
        """Yield what a release of these units may concern."""
        if "" in self.pools:
            yield self.pools[""]
        if self.by_unit:
            groups: dict[Group, None] = {}
            for unit in units:
                groups.update(self.by_unit.get(unit, {}))
            yield from groups

    def drop(self, queue: str) -> None:
        """Forget a queue's pool, which has no entries any more."""
        pool = self.pools.pop(queue, None)
        group = None if pool is None else pool.group
        if pool is None or group is None:
            return
        for amount in list(pool.lanes):
            pool.withdraw(amount)
        del group.pools[queue]
        if not group.pools:
            self.groups = {k: one for k, one in self.groups.items() if one is not group}
            for unit in group.units:
                del self.by_unit[unit][group]

    def _join(self, pool: Pool, limits: Capacity) -> None:
        key = tuple((kind, tuple(units.items())) for kind, units in limits.items())
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(pool.worker, pool.kind, limits)
            for unit in group.units:
                self.by_unit.setdefault(unit, {})[group] = None
        group.pools[pool.queue] = pool
        pool.group = group


class BlockedIndex:
    """The pools of every worker."""

    def __init__(self) -> None:
        self._shelves: dict[str, dict[str, _Shelf]] = {}

    def insert(self, shape: Shape, worker: Worker, kind: str, amount: int) -> None:
        """Enter a shape for one worker under the kind it lacks there."""
        shelves = self._shelves.setdefault(worker.name, {})
        shelf = shelves.get(kind)
        if shelf is None:
            shelf = shelves[kind] = _Shelf()
        shelf.pool(worker, kind, shape.key.queue).push(shape, amount)

    def withdraw(self, shape: Shape, worker: str) -> None:
        """Take out a shape's entry for one worker."""
        entry = shape.entries.pop(worker, None)
        if entry is not None:
            entry.pool.forget(entry)

    def forget(self, shape: Shape) -> None:
        """Take out all entries of a shape."""
        entries = list(shape.entries.values())
        shape.entries.clear()
        for entry in entries:
            entry.pool.forget(entry)

    def given_back(self, worker: Worker, queue: str, kinds: Iterable[str]) -> None:
        """Note that a queue itself holds less of these kinds."""
        shelves = self._shelves.get(worker.name)
        if shelves is None:
            return
        for kind in _feeding(kinds):
            shelf = shelves.get(kind)
            pool = None if shelf is None else shelf.pools.get(queue)
            if pool is not None:
                pool.offer_hidden()

    def best_startable(
        self, worker: Worker, freed: Freed
    ) -> tuple[Order, Entry] | None:
        """Return the best shape that a release of these units may have unblocked."""
        found: tuple[Order, Entry] | None = None
        for pool in self.fed_by(worker, freed):
            best = pool.best_startable()
            if best is not None and (found is None or best[0] < found[0]):
                found = best
        return found

    def fed_by(self, worker: Worker, freed: Freed) -> list[Pool | Group]:
        """Return what waits for any of these units of a worker."""
        shelves = self._shelves.get(worker.name)
        if shelves is None:
            return []
        found: list[Pool | Group] = []
        for kind, units in freed.items():
            if kind in shelves:
                found += shelves[kind].fed_by(units)
        if TIED in shelves and not TIED_KINDS.isdisjoint(freed):
            both = {unit for kind in TIED_KINDS for unit in freed.get(kind, ())}
            found += shelves[TIED].fed_by(both)
        return found

    def own(self, worker: Worker, queue: str, kinds: Iterable[str]) -> list[Pool]:
        """Return a queue's pools of which the groups do not know all."""
        shelves = self._shelves.get(worker.name, {})
        pools = [
            shelves[kind].pools.get(queue)
            for kind in _feeding(kinds)
            if kind in shelves
        ]
        return [pool for pool in pools if pool is not None and pool.hidden]

    def every_pool(self) -> Iterator[Ranks]:
        """Yield all pools and groups."""
        for kinds in self._shelves.values():
            for shelf in kinds.values():
                yield from shelf.pools.values()
                yield from shelf.groups.values()

    def drop(self, queue: str) -> None:
        """Forget the pools of a queue whose views changed; its shapes have left."""
        for kinds in self._shelves.values():
            for shelf in kinds.values():
                shelf.drop(queue)

    def clear(self) -> None:
        """Forget everything; the shapes' own entries are the caller's to clear."""
        self._shelves.clear()


def _feeding(kinds: Iterable[str]) -> list[str]:
    feeding = list(kinds)
    return feeding if TIED_KINDS.isdisjoint(feeding) else [*feeding, TIED]


def _limits(view: View, kind: str) -> Capacity:
    kinds = TIED_KINDS if kind is TIED else (kind,)
    return {one: view.limits[one] for one in sorted(kinds) if one in view.limits}


def _as_entry(ranked: Ranked | None) -> tuple[Order, Entry] | None:
    if ranked is None:
        return None
    order, entry = ranked
    assert isinstance(entry, Entry)
    return order, entry
