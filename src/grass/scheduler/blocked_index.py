"""Blocked shapes, found by what a worker must free before they can start.

A blocked shape has one entry per eligible worker, in the bucket of a kind that this
worker lacks for it. So no wake-up is lost, and a release asks only the buckets of the
kinds and units it freed for the best shape whose amount fits now.

A bucket belongs to one queue whose view limits the kind, or to all queues without such
a view. Buckets of queues with the same limits form a group, in which each lists its
best entry per amount. So a release asks one group, however many queues wait. An amount
that its own queue's usage keeps from fitting is not listed until the queue releases
units.
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


class BlockedEntry(BlockedItem):
    """One blocked shape in one worker's bucket."""

    __slots__ = ("bucket", "shape")

    def __init__(self, shape: Shape, amount: int, bucket: "Bucket") -> None:
        super().__init__(amount)
        self.shape = shape
        self.bucket = bucket

    @property
    def head(self) -> StartOrder | None:
        """The order of the shape's first job."""
        return self.shape.head


class BucketAmount(BlockedItem):
    """The entries of one bucket that ask for one amount, listed in its group."""

    __slots__ = ("bucket",)

    def __init__(self, bucket: "Bucket", amount: int) -> None:
        super().__init__(amount)
        self.bucket = bucket

    @property
    def head(self) -> StartOrder | None:
        """The order of the best entry."""
        best = self.bucket.best_of(self.amount)
        return None if best is None else best[0]


class Bucket(BlockedSet):
    """Shapes that lack one kind of one worker, of one view or of all queues."""

    __slots__ = ("group", "listed", "queue", "unlisted")

    def __init__(self, worker: WorkerUnits, kind: str, queue: str, gpus: Gpus) -> None:
        """Start empty; `queue` is empty where no view limits the kind."""
        super().__init__(worker, kind, gpus)
        self.queue = queue
        self.group: BucketGroup | None = None
        self.listed: dict[int, BucketAmount] = {}
        self.unlisted: set[int] = set()
        """Amounts not in the group, because the queue itself holds too much."""

    def push(self, shape: Shape, amount: int) -> None:
        """Add a blocked shape that asks for this amount of the kind."""
        assert shape.head is not None
        entry = shape.entries[self.worker.name] = BlockedEntry(shape, amount, self)
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

    def best_startable(self) -> tuple[StartOrder, BlockedEntry] | None:
        """Return the best entry that fits."""
        return _as_entry(self.best_that_fits())

    def best_live(self, better_than: StartOrder) -> BlockedEntry | None:
        """Return the best entry of all, if it beats this order."""
        best = self.best(better_than)
        assert best is None or isinstance(best, BlockedEntry)
        return best

    def list_amount(self, amount: int) -> None:
        """List the best entry of an amount in the group."""
        best = self.best_of(amount)
        assert self.group is not None
        self.unlist(amount)
        self.unlisted.discard(amount)
        if best is not None:
            item = self.listed[amount] = BucketAmount(self, amount)
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


class BucketGroup(BlockedSet):
    """Buckets of queues with the same limits on a kind of one worker."""

    __slots__ = ("buckets", "limits")

    def __init__(
        self, worker: WorkerUnits, kind: str, limits: Capacity, gpus: Gpus
    ) -> None:
        super().__init__(worker, kind, gpus)
        self.limits = limits
        self.buckets: dict[str, Bucket] = {}

    @property
    def units(self) -> set[str]:
        """The units whose release may concern it."""
        return {unit for units in self.limits.values() for unit in units}

    def largest_fit(self, order: StartOrder | None) -> LargestFit:
        """Return what fits for any of the queues, before its own usage."""
        if self.kind in PAIRED:
            gpu, vram = self._seen("gpu", order), self._seen("vram", order)
            return _paired_fit(self.kind, gpu, vram)
        return self._fit_on(next(iter(self.buckets)), self._seen(self.kind, order))

    def best_startable(self) -> tuple[StartOrder, BlockedEntry] | None:
        """Return the best entry of any bucket that also fits its own queue's usage."""
        passed_over: list[BucketAmount] = []
        found: Ranked | None = None
        while found is None and (best := self.best_that_fits()) is not None:
            item = best[1]
            assert isinstance(item, BucketAmount)
            if item.bucket.largest_fit(best[0]).fits(item.amount):
                found = item.bucket.best_of(item.amount)
                continue
            item.bucket.unlist(item.amount)
            if item.bucket.fit_without_others().fits(item.amount):
                passed_over.append(item)
            else:
                item.bucket.unlisted.add(item.amount)
        for item in passed_over:
            item.bucket.list_amount(item.amount)
        return _as_entry(found)

    def best_live(self, better_than: StartOrder) -> BlockedEntry | None:
        """Return the best entry of all, if it beats this order."""
        item = self.best(better_than)
        if item is None:
            return None
        assert isinstance(item, BucketAmount)
        best = _as_entry(item.bucket.best_of(item.amount))
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


class _KindBuckets:
    """All buckets of one kind of one worker, for the same GPUs."""

    __slots__ = ("buckets", "by_unit", "gpus", "groups")

    def __init__(self, gpus: Gpus) -> None:
        self.gpus = gpus
        self.buckets: dict[str, Bucket] = {}
        self.groups: dict[object, BucketGroup] = {}
        self.by_unit: dict[str, dict[BucketGroup, None]] = {}

    def bucket(self, worker: WorkerUnits, kind: str, queue: str) -> Bucket:
        """Return a queue's bucket, in the group it belongs to."""
        view = worker.views.get(queue)
        limits = {} if view is None else _limits(view, kind)
        bucket = self.buckets.get(queue if limits else "")
        if bucket is None:
            bucket = Bucket(worker, kind, queue if limits else "", self.gpus)
            self.buckets[bucket.queue] = bucket
            if limits:
                self._join(bucket, limits)
        return bucket

    def affected_by(self, units: Iterable[str]) -> Iterator[Bucket | BucketGroup]:
        """Yield the buckets and groups that a release of these units may concern."""
        if "" in self.buckets:
            yield self.buckets[""]
        if self.by_unit:
            groups: dict[BucketGroup, None] = {}
            for unit in units:
                groups.update(self.by_unit.get(unit, {}))
            yield from groups

    def drop(self, queue: str) -> None:
        """Remove a queue's bucket, which has no entries any more."""
        bucket = self.buckets.pop(queue, None)
        group = None if bucket is None else bucket.group
        if bucket is None or group is None:
            return
        for amount in list(bucket.listed):
            bucket.unlist(amount)
        del group.buckets[queue]
        if not group.buckets:
            self.groups = {k: one for k, one in self.groups.items() if one is not group}
            for unit in group.units:
                del self.by_unit[unit][group]

    def _join(self, bucket: Bucket, limits: Capacity) -> None:
        key = tuple((kind, tuple(units.items())) for kind, units in limits.items())
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = BucketGroup(
                bucket.worker, bucket.kind, limits, self.gpus
            )
            for unit in group.units:
                self.by_unit.setdefault(unit, {})[group] = None
        group.buckets[bucket.queue] = bucket
        bucket.group = group


_ByKind = dict[str, _KindBuckets]
_NO_POOLS: dict[Gpus, _ByKind] = {}


class BlockedIndex:
    """The buckets of every worker, by the GPUs that their shapes can use."""

    def __init__(self) -> None:
        self._workers: dict[str, dict[Gpus, _ByKind]] = {}

    def insert(self, shape: Shape, worker: WorkerUnits, kind: str, amount: int) -> None:
        """Add a shape for one worker under the kind it lacks there."""
        gpus = None if shape.key.model is None else worker.gpus_of(shape.key.model)
        if gpus is not None and kind not in (*GPU_KINDS, *PAIRED):
            gpus = None
        by_kind = self._workers.setdefault(worker.name, {}).setdefault(gpus, {})
        buckets = by_kind.get(kind)
        if buckets is None:
            buckets = by_kind[kind] = _KindBuckets(gpus)
        buckets.bucket(worker, kind, shape.key.queue).push(shape, amount)

    def remove_entry(self, shape: Shape, worker: str) -> None:
        """Remove a shape's entry for one worker."""
        entry = shape.entries.pop(worker, None)
        if entry is not None:
            entry.bucket.discard(entry)

    def remove(self, shape: Shape) -> None:
        """Remove all entries of a shape."""
        entries = list(shape.entries.values())
        shape.entries.clear()
        for entry in entries:
            entry.bucket.discard(entry)

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
                buckets = by_kind.get(kind)
                bucket = None if buckets is None else buckets.buckets.get(queue)
                if bucket is not None:
                    bucket.list_all()

    def best_startable(
        self, worker: WorkerUnits, freed: Freed
    ) -> tuple[StartOrder, BlockedEntry] | None:
        """Return the best shape that a release of these units may have unblocked."""
        found: tuple[StartOrder, BlockedEntry] | None = None
        for bucket in self.affected_by(worker, freed):
            best = bucket.best_startable()
            if best is not None and (found is None or best[0] < found[0]):
                found = best
        return found

    def affected_by(
        self, worker: WorkerUnits, freed: Freed
    ) -> list[Bucket | BucketGroup]:
        """Return the buckets and groups that wait for any of these units."""
        found: list[Bucket | BucketGroup] = []
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

    def unlisted_buckets(
        self, worker: WorkerUnits, queue: str, kinds: Iterable[str]
    ) -> list[Bucket]:
        """Return a queue's buckets that have unlisted amounts."""
        found: list[Bucket] = []
        names = _with_paired(kinds)
        for by_kind in self._workers.get(worker.name, _NO_POOLS).values():
            for kind in names:
                buckets = by_kind.get(kind)
                bucket = None if buckets is None else buckets.buckets.get(queue)
                if bucket is not None and bucket.unlisted:
                    found.append(bucket)
        return found

    def every_bucket(self) -> Iterator[BlockedSet]:
        """Yield all buckets and groups."""
        for buckets in self._every_kind():
            yield from buckets.buckets.values()
            yield from buckets.groups.values()

    def drop_queue(self, queue: str) -> None:
        """Remove the buckets of a queue, whose shapes were removed before."""
        for buckets in self._every_kind():
            buckets.drop(queue)

    def _every_kind(self) -> Iterator[_KindBuckets]:
        for by_gpus in self._workers.values():
            for by_kind in by_gpus.values():
                yield from by_kind.values()

    def clear(self) -> None:
        """Remove all buckets; the caller clears the `entries` of the shapes."""
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


def _as_entry(ranked: Ranked | None) -> tuple[StartOrder, BlockedEntry] | None:
    if ranked is None:
        return None
    order, entry = ranked
    assert isinstance(entry, BlockedEntry)
    return order, entry
