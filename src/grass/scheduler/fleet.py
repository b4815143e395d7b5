"""All workers: which are connected, which holder has what, which may serve a shape.

`version` grows whenever units or labels change: then all that is known about blocked
shapes is void. A change of one queue's views concerns its own shapes alone
(`changed_queues`). What is held of a worker that went away stays held until released,
and units of a worker that was never seen can be held: after a restart the broker knows
jobs before their workers connect.
"""

from typing import NamedTuple

from grass.errors import NotFound, Refused
from grass.model.gpu_details import GpuDetails
from grass.model.resources import Allocation, Capacity
from grass.scheduler.placement import fits_when_empty
from grass.scheduler.shapes import Gate, QueueGate, Shape
from grass.scheduler.worker_units import (
    LEAST_MEMORY,
    HeldUnits,
    Holder,
    KindUnits,
    ViewUsage,
    WorkerUnits,
    ordered,
)


class WorkerTraits(NamedTuple):
    """What a worker has and says of itself."""

    capacity: Capacity
    labels: frozenset[str]
    gpus: dict[str, GpuDetails]


class Fleet:
    """Every worker by name, and every holder."""

    def __init__(self) -> None:
        self.workers: dict[str, WorkerUnits] = {}
        self.holds: dict[Holder, HeldUnits] = {}
        self.least = LEAST_MEMORY
        """The part of its memory that a share of a GPU has at least."""
        self.version = 0
        self.changed_queues: dict[str, None] = {}
        """Queues whose views changed since the last decision."""

    def add(self, name: str, has: WorkerTraits) -> None:
        """Add a worker, or give a known one a new capacity."""
        worker = self._get_or_add(name)
        if not worker.away and _unchanged(worker, has):
            return
        worker.away = False
        self._set(worker, has)

    def remember(self, name: str, has: WorkerTraits) -> None:
        """Remember what a worker has, connected or not."""
        worker = self._get_or_add(name)
        if worker.known and _unchanged(worker, has):
            return
        worker.known = True
        self._set(worker, has)

    def forget(self, name: str) -> None:
        """Remove a worker that will not come back, with its views."""
        worker = self.workers.get(name)
        if worker is None:
            return
        worker.away, worker.known = True, False
        worker.views.clear()
        self._changed(worker)
        self._forget_if_unused(worker)

    def remove(self, name: str) -> None:
        """Place nothing more on a worker; what is held of it stays held."""
        worker = self.workers.get(name)
        if worker is None or worker.away:
            return
        worker.away = True
        worker.withheld, worker.processes = {}, {}
        self._changed(worker)
        self._forget_if_unused(worker)

    def drain(self, name: str, kind: str, unit: str, *, on: bool) -> None:
        """Stop or resume placing on one unit."""
        worker = self.worker(name)
        units = worker.drained.setdefault(kind, set())
        if on:
            units.add(unit)
        else:
            units.discard(unit)
        self._changed(worker)

    def set_least(self, least: int) -> None:
        """Set which part of its memory a share of a GPU has at least."""
        self.least = least
        for worker in self.workers.values():
            worker.least = least
            self._changed(worker)

    def withhold(self, name: str, withheld: Capacity) -> Allocation:
        """Set what is not on offer of a worker; return what is offered again."""
        worker = self._get_or_add(name)
        before, worker.withheld = worker.withheld, withheld
        worker.free_version += 1
        less = {
            kind: {
                unit: amount - withheld.get(kind, {}).get(unit, 0)
                for unit, amount in units.items()
                if amount > withheld.get(kind, {}).get(unit, 0)
            }
            for kind, units in before.items()
        }
        return {kind: units for kind, units in less.items() if units}

    def set_view(self, queue: str, name: str, limits: Capacity | None) -> None:
        """Set or remove a queue's view on a worker, which may not be known yet."""
        if limits is None and name not in self.workers:
            return
        worker = self._get_or_add(name)
        if limits is None:
            worker.views.pop(queue, None)
        else:
            worker.views[queue] = self._new_view(worker, queue, limits)
        self.changed_queues[queue] = None
        self._forget_if_unused(worker)

    def remove_queue(self, queue: str) -> None:
        """Remove every view of a queue."""
        for worker in list(self.workers.values()):
            if queue in worker.views:
                self.set_view(queue, worker.name, None)

    def occupy(
        self,
        holder: Holder,
        name: str,
        allocation: Allocation,
        queue: QueueGate | None,
        limiter: Gate | None,
    ) -> None:
        """Give units to a holder without a decision."""
        if holder in self.holds:
            raise Refused(f"{holder} holds units already")
        worker = self._get_or_add(name)
        short = worker.lacks(allocation)
        if short is not None:
            if not worker.away:
                raise Refused(f"{short} of worker `{name}` has too little free")
            _add_missing(worker, allocation)
        self.take(holder, worker, allocation, queue, limiter)
        view = None if queue is None else worker.views.get(queue.name)
        if view is not None:
            view.exceeded_when_set = view.exceeded_when_set or view.exceeded()

    def take(
        self,
        holder: Holder,
        worker: WorkerUnits,
        allocation: Allocation,
        queue: QueueGate | None,
        limiter: Gate | None,
    ) -> None:
        """Record a holder and subtract what it holds."""
        worker.shift(allocation, -1, None if queue is None else queue.name)
        worker.holders[holder] = allocation
        self.holds[holder] = HeldUnits(worker, allocation, queue, limiter)
        if queue is not None:
            queue.running += 1
        if limiter is not None:
            limiter.running += 1

    def release(self, holder: Holder) -> HeldUnits | None:
        """Remove a holder and free what it held; None if it held nothing."""
        held = self.holds.pop(holder, None)
        if held is None:
            return None
        worker, allocation, queue, limiter = held
        worker.shift(allocation, 1, None if queue is None else queue.name)
        del worker.holders[holder]
        if queue is not None:
            queue.running -= 1
        if limiter is not None:
            limiter.running -= 1
        if worker.withdrawn:
            self._drop_unused_withdrawn(worker)
        if worker.away:
            self._forget_if_unused(worker)
        return held

    def transfer(self, holder: Holder, follower: Holder) -> None:
        """Pass a holder's units to another, without freeing them in between."""
        held = self.holds.pop(holder)
        self.holds[follower] = held
        held.worker.holders[follower] = held.worker.holders.pop(holder)

    def worker(self, name: str) -> WorkerUnits:
        """Return a worker that must be known."""
        worker = self.workers.get(name)
        if worker is None:
            raise NotFound(f"no worker `{name}`")
        return worker

    def serving(self, queue: QueueGate) -> list[WorkerUnits]:
        """Return the connected workers of a queue, by name."""
        return [worker for worker in self._of(queue) if not worker.away]

    def known(self, queue: QueueGate) -> list[WorkerUnits]:
        """Return the workers of a queue whose capacity is known, by name.

        One that is away and not known may turn out to have anything.
        """
        return [worker for worker in self._of(queue) if worker.known or not worker.away]

    def _of(self, queue: QueueGate) -> list[WorkerUnits]:
        return [
            worker
            for _, worker in sorted(self.workers.items())
            if queue.open_to_all or queue.name in worker.views
        ]

    def eligible(self, shape: Shape) -> list[WorkerUnits]:
        """Return the workers that could run a job of this shape when empty, by name."""
        key = shape.key
        return [
            worker
            for worker in self.serving(shape.queue)
            if (key.worker is None or key.worker == worker.name)
            and key.labels <= worker.labels
            and fits_when_empty(worker, key)
        ]

    def _get_or_add(self, name: str) -> WorkerUnits:
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = WorkerUnits(name, self.least)
        return worker

    def _set(self, worker: WorkerUnits, has: WorkerTraits) -> None:
        worker.labels = has.labels
        worker.gpus = has.gpus
        _set_capacity(worker, ordered(has.capacity))
        self._changed(worker)

    def _new_view(self, worker: WorkerUnits, queue: str, limits: Capacity) -> ViewUsage:
        view = ViewUsage(limits)
        for holder, allocation in worker.holders.items():
            reserved_for = self.holds[holder].queue
            if reserved_for is not None and reserved_for.name == queue:
                view.shift(allocation, 1)
        view.exceeded_when_set = view.exceeded()
        return view

    def _changed(self, worker: WorkerUnits) -> None:
        _recompute(worker)
        self.version += 1

    def _drop_unused_withdrawn(self, worker: WorkerUnits) -> None:
        done = [
            (kind, unit)
            for kind, unit in worker.withdrawn
            if _held(worker, kind, unit) <= worker.withdrawn[kind, unit]
        ]
        for kind, unit in done:
            _resize(worker, kind, unit, worker.withdrawn.pop((kind, unit)))
        if done:
            self._changed(worker)

    def _forget_if_unused(self, worker: WorkerUnits) -> None:
        if worker.known or worker.holders or worker.views:
            return
        if worker.away:
            del self.workers[worker.name]


def _unchanged(worker: WorkerUnits, has: WorkerTraits) -> bool:
    same = worker.capacity == has.capacity and worker.labels == has.labels
    return same and worker.gpus == has.gpus and not worker.withdrawn


def _set_capacity(worker: WorkerUnits, wanted: Capacity) -> None:
    held = {
        (kind, unit): _held(worker, kind, unit)
        for kind, units in worker.capacity.items()
        for unit in units
    }
    worker.withdrawn.clear()
    for kind, unit in held:
        wanted.setdefault(kind, {}).setdefault(unit, 0)
    for kind, units in wanted.items():
        for unit, amount in units.items():
            if held.get((kind, unit), 0) > amount:
                worker.withdrawn[kind, unit] = amount
            else:
                _resize(worker, kind, unit, amount)
    worker.capacity = ordered(worker.capacity)
    worker.free = ordered(worker.free)


def _resize(worker: WorkerUnits, kind: str, unit: str, amount: int) -> None:
    held = _held(worker, kind, unit)
    if amount:
        worker.capacity.setdefault(kind, {})[unit] = amount
        worker.free.setdefault(kind, {})[unit] = amount - held
        return
    for units in (worker.capacity, worker.free):
        units.get(kind, {}).pop(unit, None)
        if not units.get(kind, {"": 0}):
            del units[kind]


def _add_missing(worker: WorkerUnits, allocation: Allocation) -> None:
    for kind, units in allocation.items():
        for unit, amount in units.items():
            free = worker.free.setdefault(kind, {})
            has = worker.capacity.setdefault(kind, {})
            missing = amount - free.get(unit, 0)
            if missing > 0:
                worker.withdrawn.setdefault((kind, unit), has.get(unit, 0))
                has[unit] = has.get(unit, 0) + missing
                free[unit] = amount
    _recompute(worker)


def _held(worker: WorkerUnits, kind: str, unit: str) -> int:
    has = worker.capacity.get(kind, {}).get(unit, 0)
    return has - worker.free.get(kind, {}).get(unit, 0)


def _recompute(worker: WorkerUnits) -> None:
    """Compute `closed` and `kinds` from the capacity and the drained units."""
    worker.closed = {
        kind: set(units) for kind, units in worker.drained.items() if units
    }
    for kind, unit in worker.withdrawn:
        worker.closed.setdefault(kind, set()).add(unit)
    worker.kinds = {}
    for kind, units in worker.capacity.items():
        sizes = {
            unit: worker.withdrawn.get((kind, unit), amount)
            for unit, amount in units.items()
        }
        worker.kinds[kind] = KindUnits(
            {unit: has for unit, has in sizes.items() if has}
        )
    worker.matching.clear()
    worker.with_gpus.clear()
    worker.free_version += 1
    worker.kinds_version += 1
