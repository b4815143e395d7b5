"""Blocked shapes, found by what a worker must free before they can start.

A blocked shape has one entry per eligible worker, in the bucket of a kind that this
worker lacks for it. So no wake-up is lost, and a release asks only the buckets of the
kinds and units it freed for the best shape whose amount fits now.

Buckets of queues with the same limits on a kind form a group (`buckets`). So a release
asks one group, however many queues wait.
"""

from collections.abc import Iterable, Iterator, Mapping

from grass.model.resources import GPU_KINDS, Capacity
from grass.scheduler.blocked.buckets import BlockedEntry, Bucket, BucketGroup
from grass.scheduler.blocked.ranked_amounts import BlockedSet
from grass.scheduler.placement import LEARNED, PAIRED, TIED
from grass.scheduler.shapes import Shape, StartOrder
from grass.scheduler.worker_units import Gpus, ViewUsage, WorkerUnits, gpus_in

Freed = Mapping[str, Iterable[str]]
"""Units by kind."""


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
