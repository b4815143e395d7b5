"""Buckets of blocked shapes: what waits for one kind of one worker.

A bucket belongs to one queue whose view limits the kind, or to all queues without such
a view. Buckets of queues with the same limits form a group, in which each lists its
best entry per amount. An amount that its own queue's usage keeps from fitting is not
listed until the queue releases units.
"""

from grass.model.resources import Capacity, Units
from grass.scheduler.blocked.ranked_amounts import (
    BlockedItem,
    BlockedSet,
    LargestFit,
    Ranked,
    learned_fit,
    tied_fit,
)
from grass.scheduler.placement import PAIRED, TIED
from grass.scheduler.shapes import Shape, StartOrder
from grass.scheduler.worker_units import Gpus, ViewUsage, WorkerUnits


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


def _paired_fit(kind: str, gpu: Units, vram: Units) -> LargestFit:
    """Return what fits of a request for both kinds: an upper bound."""
    return tied_fit(gpu, vram) if kind is TIED else learned_fit(vram)


def _as_entry(ranked: Ranked | None) -> tuple[StartOrder, BlockedEntry] | None:
    if ranked is None:
        return None
    order, entry = ranked
    assert isinstance(entry, BlockedEntry)
    return order, entry
