"""Blocked shapes, found by what a worker must free before they can start.

A blocked shape has one entry per eligible worker, in the pool of a kind that this
worker lacks for it. So no wake-up is lost, and a release asks only the pools of the
kinds and units it freed for the best shape whose amount fits now.

A pool belongs to one queue whose view limits the kind, or to all queues without such a
view. Pools of queues with the same limits form a group, in which each lists its best
entry per amount. So a release asks one group, however many queues wait. An amount that
its own queue's usage keeps from fitting is not listed until the queue releases units.
"""

from collections.abc import Iterable, Iterator, Mapping

from grass.model.resources import GPU_KINDS, Capacity, Units
from grass.scheduler.placement import LEARNED, PAIRED, TIED
from grass.scheduler.ranked_amounts import (
    BlockedItem,
    BlockedSet,
    LargestFit,
    Ranked,
    learned_fit,
    tied_fit,
)
from grass.scheduler.shapes import Shape, StartOrder
from grass.scheduler.worker_units import Gpus, ViewUsage, WorkerUnits, gpus_in

Freed = Mapping[str, Iterable[str]]
"""Units by kind."""


class Entry(BlockedItem):
    """One blocked shape in one worker's pool."""

    __slots__ = ("pool", "shape")

    def __init__(self, shape: Shape, amount: int, pool: "Pool") -> None:
        super().__init__(amount)
        self.shape = shape
        self.pool = pool

    @property
    def head(self) -> StartOrder | None:
        """The order of the shape's first job."""
        return self.shape.head


class PoolAmount(BlockedItem):
    """The entries of one pool that ask for one amount, listed in its group."""

    __slots__ = ("pool",)

    def __init__(self, pool: "Pool", amount: int) -> None:
        super().__init__(amount)
        self.pool = pool

    @property
    def head(self) -> StartOrder | None:
        """The order of the best entry."""
        best = self.pool.best_of(self.amount)
        return None if best is None else best[0]


class Pool(BlockedSet):
    """Shapes that lack one kind of one worker, of one view or of all queues."""

    __slots__ = ("group", "listed", "queue", "unlisted")

    def __init__(self, worker: WorkerUnits, kind: str, queue: str, gpus: Gpus) -> None:
        """Start empty; `queue` is empty where no view limits the kind."""
        super().__init__(worker, kind, gpus)
        self.queue = queue
        self.group: PoolGroup | None = None
        self.listed: dict[int, PoolAmount] = {}
        self.unlisted: set[int] = set()
        """Amounts not in the group, because the queue itself holds too much."""

    def push(self, shape: Shape, amount: int) -> None:
        """Add a blocked shape that asks for this amount of the kind."""
        assert shape.head is not None
        entry = shape.entries[self.worker.name] = Entry(shape, amount, self)
        if self.add(shape.head, entry) and self.group is not None:
            self.list_amount(amount)

    def largest_fit(self, order: StartOrder | None) -> LargestFit:
        """Return what fits for the queue now."""
        worker, queue = self.worker, self.queue
        if self.kind in PAIRED:
            gpu = self._only(worker.units_for("gpu", queue, order))
            vram = self._only(worker.units_for("vram", queue, order))
            return _paired_fit(self.kind, gpu, vram)
        units = worker.units_for(self.kind, queue, order)
        return self._fit_on(queue, units if self.gpus is None else self._only(units))

    def best_startable(self) -> tuple[StartOrder, Entry] | None:
        """Return the best entry that fits."""
        return _as_entry(self.best_that_fits())

    def best_live(self, better_than: StartOrder) -> Entry | None:
        """Return the best entry of all, if it beats this order."""
        best = self.best(better_than)
        assert best is None or isinstance(best, Entry)
        return best

    def list_amount(self, amount: int) -> None:
        """List the best entry of an amount in the group."""
        best = self.best_of(amount)
        assert self.group is not None
        self.unlist(amount)
        self.unlisted.discard(amount)
        if best is not None:
            item = self.listed[amount] = PoolAmount(self, amount)
            self.group.add(best[0], item)

    def unlist(self, amount: int) -> None:
        """Remove an amount from the group."""
        item = self.listed.pop(amount, None)
        if item is not None and item.live and self.group is not None:
            self.group.discard(item)

    def list_all(self) -> None:
        """List all amounts again, because the queue holds less now."""
        for amount in list(self.unlisted):
            self.list_amount(amount)

    def fit_without_others(self) -> LargestFit:
        """Return what would fit for the queue if other queues held nothing."""
        view = self.worker.views.get(self.queue)
        if self.kind in PAIRED:
            gpu, vram = (self._left(view, kind) for kind in ("gpu", "vram"))
            return _paired_fit(self.kind, gpu, vram)
        units = self._left(view, self.kind)
        largest = max(units.values(), default=0)
        return LargestFit(largest, largest, sum(units.values()))

    def _left(self, view: ViewUsage | None, kind: str) -> Units:
        if view is not None and kind in view.limits:
            return self._only(view.headroom(kind))
        kind_units = self.worker.kinds.get(kind)
        return {} if kind_units is None else self._only(kind_units.sizes)


class PoolGroup(BlockedSet):
    """Pools of queues with the same limits on a kind of one worker."""

    __slots__ = ("limits", "pools")

    def __init__(
        self, worker: WorkerUnits, kind: str, limits: Capacity, gpus: Gpus
    ) -> None:
        super().__init__(worker, kind, gpus)
        self.limits = limits
        self.pools: dict[str, Pool] = {}

    @property
    def units(self) -> set[str]:
        """The units whose release may concern it."""
        return {unit for units in self.limits.values() for unit in units}

    def largest_fit(self, order: StartOrder | None) -> LargestFit:
        """Return what fits for any of the queues, before its own usage."""
        if self.kind in PAIRED:
            gpu, vram = self._seen("gpu", order), self._seen("vram", order)
            return _paired_fit(self.kind, gpu, vram)
        return self._fit_on(next(iter(self.pools)), self._seen(self.kind, order))

    def best_startable(self) -> tuple[StartOrder, Entry] | None:
        """Return the best entry of any pool that also fits its own queue's usage."""
        passed_over: list[PoolAmount] = []
        found: Ranked | None = None
        while found is None and (best := self.best_that_fits()) is not None:
            item = best[1]
            assert isinstance(item, PoolAmount)
            if item.pool.largest_fit(best[0]).fits(item.amount):
                found = item.pool.best_of(item.amount)
                continue
            item.pool.unlist(item.amount)
            if item.pool.fit_without_others().fits(item.amount):
                passed_over.append(item)
            else:
                item.pool.unlisted.add(item.amount)
        for item in passed_over:
            item.pool.list_amount(item.amount)
        return _as_entry(found)

    def best_live(self, better_than: StartOrder) -> Entry | None:
        """Return the best entry of all, if it beats this order."""
        item = self.best(better_than)
        if item is None:
            return None
        assert isinstance(item, PoolAmount)
        best = _as_entry(item.pool.best_of(item.amount))
        return None if best is None else best[1]

    def _seen(self, kind: str, order: StartOrder | None) -> Units:
        units = self._only(self.worker.units_for(kind, "", order))
        limits = self.limits.get(kind)
        if limits is None:
            return units
        return {
            unit: min(units[unit], limit)
            for unit, limit in limits.items()
            if unit in units
        }


class _KindPools:
    """All pools of one kind of one worker, for the same GPUs."""

    __slots__ = ("by_unit", "gpus", "groups", "pools")

    def __init__(self, gpus: Gpus) -> None:
        self.gpus = gpus
        self.pools: dict[str, Pool] = {}
        self.groups: dict[object, PoolGroup] = {}
        self.by_unit: dict[str, dict[PoolGroup, None]] = {}

    def pool(self, worker: WorkerUnits, kind: str, queue: str) -> Pool:
        """Return a queue's pool, in the group it belongs to."""
        view = worker.views.get(queue)
        limits = {} if view is None else _limits(view, kind)
        pool = self.pools.get(queue if limits else "")
        if pool is None:
            pool = Pool(worker, kind, queue if limits else "", self.gpus)
            self.pools[pool.queue] = pool
            if limits:
                self._join(pool, limits)
        return pool

    def affected_by(self, units: Iterable[str]) -> Iterator[Pool | PoolGroup]:
        """Yield the pools and groups that a release of these units may concern."""
        if "" in self.pools:
            yield self.pools[""]
        if self.by_unit:
            groups: dict[PoolGroup, None] = {}
            for unit in units:
                groups.update(self.by_unit.get(unit, {}))
            yield from groups

    def drop(self, queue: str) -> None:
        """Remove a queue's pool, which has no entries any more."""
        pool = self.pools.pop(queue, None)
        group = None if pool is None else pool.group
        if pool is None or group is None:
            return
        for amount in list(pool.listed):
            pool.unlist(amount)
        del group.pools[queue]
        if not group.pools:
            self.groups = {k: one for k, one in self.groups.items() if one is not group}
            for unit in group.units:
                del self.by_unit[unit][group]

    def _join(self, pool: Pool, limits: Capacity) -> None:
        key = tuple((kind, tuple(units.items())) for kind, units in limits.items())
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = PoolGroup(
                pool.worker, pool.kind, limits, self.gpus
            )
            for unit in group.units:
                self.by_unit.setdefault(unit, {})[group] = None
        group.pools[pool.queue] = pool
        pool.group = group


_ByKind = dict[str, _KindPools]
_NO_POOLS: dict[Gpus, _ByKind] = {}


class BlockedIndex:
    """The pools of every worker, by the GPUs that their shapes can use."""

    def __init__(self) -> None:
        self._workers: dict[str, dict[Gpus, _ByKind]] = {}

    def insert(self, shape: Shape, worker: WorkerUnits, kind: str, amount: int) -> None:
        """Add a shape for one worker under the kind it lacks there."""
        gpus = None if shape.key.model is None else worker.gpus_of(shape.key.model)
        if gpus is not None and kind not in (*GPU_KINDS, *PAIRED):
            gpus = None
        by_kind = self._workers.setdefault(worker.name, {}).setdefault(gpus, {})
        pools = by_kind.get(kind)
        if pools is None:
            pools = by_kind[kind] = _KindPools(gpus)
        pools.pool(worker, kind, shape.key.queue).push(shape, amount)

    def remove_entry(self, shape: Shape, worker: str) -> None:
        """Remove a shape's entry for one worker."""
        entry = shape.entries.pop(worker, None)
        if entry is not None:
            entry.pool.discard(entry)

    def remove(self, shape: Shape) -> None:
        """Remove all entries of a shape."""
        entries = list(shape.entries.values())
        shape.entries.clear()
        for entry in entries:
            entry.pool.discard(entry)

    def queue_released(
        self, worker: WorkerUnits, queue: str, kinds: Iterable[str]
    ) -> None:
        """Record that a queue itself holds less of these kinds."""
        by_gpus = self._workers.get(worker.name)
        if by_gpus is None:
            return
        names = _with_paired(kinds)
        for by_kind in by_gpus.values():
            for kind in names:
                pools = by_kind.get(kind)
                pool = None if pools is None else pools.pools.get(queue)
                if pool is not None:
                    pool.list_all()

    def best_startable(
        self, worker: WorkerUnits, freed: Freed
    ) -> tuple[StartOrder, Entry] | None:
        """Return the best shape that a release of these units may have unblocked."""
        found: tuple[StartOrder, Entry] | None = None
        for pool in self.affected_by(worker, freed):
            best = pool.best_startable()
            if best is not None and (found is None or best[0] < found[0]):
                found = best
        return found

    def affected_by(self, worker: WorkerUnits, freed: Freed) -> list[Pool | PoolGroup]:
        """Return the pools and groups that wait for any of these units."""
        found: list[Pool | PoolGroup] = []
        both = () if GPU_KINDS.isdisjoint(freed) else gpus_in(freed)
        for by_kind in self._workers.get(worker.name, _NO_POOLS).values():
            for kind, units in freed.items():
                if kind in by_kind:
                    found += by_kind[kind].affected_by(units)
            if both:
                for kind in PAIRED:
                    if kind in by_kind:
                        found += by_kind[kind].affected_by(both)
        return found

    def unlisted_pools(
        self, worker: WorkerUnits, queue: str, kinds: Iterable[str]
    ) -> list[Pool]:
        """Return a queue's pools that have unlisted amounts."""
        found: list[Pool] = []
        names = _with_paired(kinds)
        for by_kind in self._workers.get(worker.name, _NO_POOLS).values():
            for kind in names:
                pools = by_kind.get(kind)
                pool = None if pools is None else pools.pools.get(queue)
                if pool is not None and pool.unlisted:
                    found.append(pool)
        return found

    def every_pool(self) -> Iterator[BlockedSet]:
        """Yield all pools and groups."""
        for pools in self._every_kind():
            yield from pools.pools.values()
            yield from pools.groups.values()

    def drop_queue(self, queue: str) -> None:
        """Remove the pools of a queue, whose shapes were removed before."""
        for pools in self._every_kind():
            pools.drop(queue)

    def _every_kind(self) -> Iterator[_KindPools]:
        for by_gpus in self._workers.values():
            for by_kind in by_gpus.values():
                yield from by_kind.values()

    def clear(self) -> None:
        """Remove all pools; the caller clears the `entries` of the shapes."""
        self._workers.clear()


def _with_paired(kinds: Iterable[str]) -> list[str]:
    names = list(kinds)
    return names if GPU_KINDS.isdisjoint(names) else [*names, *PAIRED]


def _limits(view: ViewUsage, kind: str) -> Capacity:
    # Memory that is looked up may be had of GPUs of which the view gives no share.
    kinds = {TIED: ("gpu", "vram"), LEARNED: ("vram",)}.get(kind, (kind,))
    return {one: view.limits[one] for one in kinds if one in view.limits}


def _paired_fit(kind: str, gpu: Units, vram: Units) -> LargestFit:
    """Return what fits of a request for both kinds: an upper bound."""
    return tied_fit(gpu, vram) if kind is TIED else learned_fit(vram)


def _as_entry(ranked: Ranked | None) -> tuple[StartOrder, Entry] | None:
    if ranked is None:
        return None
    order, entry = ranked
    assert isinstance(entry, Entry)
    return order, entry
