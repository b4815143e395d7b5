"""All workers: which are connected, which holder has what, which may serve a shape.

`version` grows whenever units or labels change: then all that is known about blocked
shapes is void. A change of one queue's views concerns its own shapes alone
(`changed_queues`). What is held of a worker that went away stays held until released,
and units of a worker that was never seen can be held: after a restart the broker knows
jobs before their workers connect.
"""

from collections.abc import Mapping
from typing import NamedTuple

from grass.errors import NotFound, Refused
from grass.model.gpu_details import GpuDetails
from grass.model.resources import Allocation, Capacity
from grass.scheduler.job_types import JobType
from grass.scheduler.learned_memory import whole_models
from grass.scheduler.pilot_terms import PilotTerms, admits
from grass.scheduler.placement import fits_when_empty
from grass.scheduler.shapes import Gates, QueueGate, Shape, ShapeKey
from grass.scheduler.unit_changes import (
    add_missing,
    held_of,
    recompute,
    resize,
    set_capacity,
)
from grass.scheduler.worker_units import (
    LEAST_MEMORY,
    HeldUnits,
    Holder,
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
        self.most_jobs: int | None = None
        """How many holders a GPU may have."""
        self.timed = False
        """Whether there was ever a worker with terms."""
        self.now = 0.0
        """The time of the last decision."""
        self.version = 0
        self.changed_queues: dict[str, None] = {}
        """Queues whose views changed since the last decision."""
        self.types: dict[str, JobType] = {}
        self.changed_types: dict[JobType, None] = {}
        """Types that have a new profile, or one profiler less, since then."""

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
        worker.withheld, worker.processes, worker.busy = {}, {}, frozenset()
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

    def set_terms(self, name: str, terms: PilotTerms) -> None:
        """Set on which terms a worker is there."""
        worker = self._get_or_add(name)
        before, worker.terms, self.timed = worker.terms, terms, True
        if before is None or terms.bound != before.bound or terms > before:
            self._changed(worker)

    def set_least(self, least: int) -> None:
        """Set which part of its memory a share of a GPU has at least."""
        self.least = least
        for worker in self.workers.values():
            worker.least = least
            self._changed(worker)

    def set_most_jobs(self, most: int | None) -> None:
        """Set how many holders a GPU may have."""
        self.most_jobs = most
        for worker in self.workers.values():
            worker.limit_jobs(most)
            self._changed(worker)

    def set_busy(self, name: str, units: frozenset[str]) -> frozenset[str]:
        """Set which GPUs of a worker are busy; return those that no longer are."""
        worker = self._get_or_add(name)
        before, worker.busy = worker.busy, units
        if before != units:
            worker.with_gpus.clear()
        return before - units

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

    def set_avoided(self, name: str, kind: str, queue: str, *, on: bool) -> None:
        """Set whether jobs of a kind, all of one queue, are not placed on a worker."""
        kinds = self._get_or_add(name).avoided_by
        (kinds.add if on else kinds.discard)(kind)
        self.changed_queues[queue] = None

    def set_view(self, queue: str, name: str, limits: Capacity | None) -> None:
        """Set or remove a queue's view on a worker, which may not be known yet."""
        if limits is None and name not in self.workers:
            return
        worker = self._get_or_add(name)
        if limits is None:
            worker.views.pop(queue, None)
        else:
            worker.views[queue] = self._new_view(worker, queue, limits)
        worker.choices.clear()
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
        gates: Gates,
    ) -> None:
        """Give units to a holder without a decision."""
        if holder in self.holds:
            raise Refused(f"{holder} holds units already")
        worker = self._get_or_add(name)
        short = worker.lacks(allocation)
        if short is not None:
            if not worker.away:
                raise Refused(f"{short} of worker `{name}` has too little free")
            add_missing(worker, allocation)
        self.take(holder, worker, allocation, gates)
        if gates.learned is not None:
            self.changed_types[gates.learned] = None
        queue = gates.queue
        view = None if queue is None else worker.views.get(queue.name)
        if view is not None:
            view.exceeded_when_set = view.exceeded_when_set or view.exceeded()

    def take(
        self,
        holder: Holder,
        worker: WorkerUnits,
        allocation: Allocation,
        gates: Gates,
    ) -> None:
        """Record a holder and subtract what it holds."""
        queue, limiters, learned = gates
        worker.shift(allocation, -1, None if queue is None else queue.name)
        worker.holders[holder] = allocation
        if worker.gpu_jobs is not None:
            worker.gpu_jobs.count(allocation, 1)
        self.holds[holder] = HeldUnits(worker, allocation, gates)
        if queue is not None:
            queue.running += 1
        for limiter in limiters:
            limiter.running += 1
        if learned is not None:
            name = None if queue is None else queue.name
            learned.note_profiler(holder, whole_models(worker, name, allocation))

    def release(self, holder: Holder) -> HeldUnits | None:
        """Remove a holder and free what it held; None if it held nothing."""
        held = self.holds.pop(holder, None)
        if held is None:
            return None
        worker, allocation, (queue, limiters, learned) = held
        worker.shift(allocation, 1, None if queue is None else queue.name)
        del worker.holders[holder]
        if worker.gpu_jobs is not None:
            worker.gpu_jobs.count(allocation, -1)
        if queue is not None:
            queue.running -= 1
        for limiter in limiters:
            limiter.running -= 1
        if learned is not None and learned.remove_profiler(holder):
            self.changed_types[learned] = None
            self.drop_unused(learned)
        if worker.withdrawn:
            self._drop_unused_withdrawn(worker)
        if worker.away:
            self._forget_if_unused(worker)
        return held

    def shrink(self, holder: Holder, allocation: Allocation) -> HeldUnits:
        """Let a holder keep a part of what it has; return what is free now."""
        held = self.holds[holder]
        worker, queue = held.worker, held.gates.queue
        freed = _beyond(held.allocation, allocation)
        worker.shift(freed, 1, None if queue is None else queue.name)
        if worker.gpu_jobs is not None:
            worker.gpu_jobs.count(held.allocation, -1)
            worker.gpu_jobs.count(allocation, 1)
        worker.holders[holder] = allocation
        self.holds[holder] = held._replace(allocation=allocation)
        if worker.withdrawn:
            self._drop_unused_withdrawn(worker)
        return HeldUnits(worker, freed, held.gates)

    def transfer(self, holder: Holder, follower: Holder) -> None:
        """Pass a holder's units to another, without freeing them in between."""
        held = self.holds.pop(holder)
        self.holds[follower] = held
        held.worker.holders[follower] = held.worker.holders.pop(holder)

    def set_profile(self, job_type: JobType, amounts: Mapping[str, int]) -> None:
        """Set what is known of a type's memory, by model of GPU."""
        if job_type.amounts == amounts:
            self.drop_unused(job_type)
            return
        job_type.set_amounts(amounts)
        for worker in self.workers.values():
            worker.choices.clear()
        self.changed_types[job_type] = None
        self.drop_unused(job_type)

    def drop_unused(self, job_type: JobType) -> None:
        """Forget a type of which nothing is known and that no job needs."""
        if job_type.is_unused():
            self.types.pop(job_type.name, None)

    def job_type(self, name: str) -> JobType:
        """Return the record of a type."""
        found = self.types.get(name)
        if found is None:
            found = self.types[name] = JobType(name)
        return found

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
        serving, key = self.serving(shape.queue), shape.key
        return [worker for worker in serving if self.suits(worker, key)]

    def suits(self, worker: WorkerUnits, key: ShapeKey) -> bool:
        """Return whether a worker could run a job when empty, be it here or away."""
        may_be_there = admits(worker, key, self.now) and key.labels <= worker.labels
        return may_be_there and fits_when_empty(worker, key)

    def _get_or_add(self, name: str) -> WorkerUnits:
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = WorkerUnits(name, self.least, self.types)
            worker.limit_jobs(self.most_jobs)
        return worker

    def _set(self, worker: WorkerUnits, has: WorkerTraits) -> None:
        worker.labels = has.labels
        worker.gpus = has.gpus
        set_capacity(worker, ordered(has.capacity))
        self._changed(worker)

    def _new_view(self, worker: WorkerUnits, queue: str, limits: Capacity) -> ViewUsage:
        view = ViewUsage(limits)
        for holder, allocation in worker.holders.items():
            reserved_for = self.holds[holder].gates.queue
            if reserved_for is not None and reserved_for.name == queue:
                view.shift(allocation, 1)
        view.exceeded_when_set = view.exceeded()
        return view

    def _changed(self, worker: WorkerUnits) -> None:
        recompute(worker)
        self.version += 1

    def _drop_unused_withdrawn(self, worker: WorkerUnits) -> None:
        done = [
            (kind, unit)
            for kind, unit in worker.withdrawn
            if held_of(worker, kind, unit) <= worker.withdrawn[kind, unit]
        ]
        for kind, unit in done:
            resize(worker, kind, unit, worker.withdrawn.pop((kind, unit)))
        if done:
            self._changed(worker)

    def _forget_if_unused(self, worker: WorkerUnits) -> None:
        if worker.known or worker.holders or worker.views:
            return
        if worker.away:
            del self.workers[worker.name]


def _beyond(held: Allocation, kept: Allocation) -> Allocation:
    """Return what is held besides what is kept."""
    for kind, units in kept.items():
        for unit, amount in units.items():
            if not 0 < amount <= held.get(kind, {}).get(unit, 0):
                raise Refused(f"{kind} {unit} cannot grow")
    rest = {
        kind: {
            unit: amount - kept.get(kind, {}).get(unit, 0)
            for unit, amount in units.items()
            if amount > kept.get(kind, {}).get(unit, 0)
        }
        for kind, units in held.items()
    }
    return {kind: units for kind, units in rest.items() if units}


def _unchanged(worker: WorkerUnits, has: WorkerTraits) -> bool:
    same = worker.capacity == has.capacity and worker.labels == has.labels
    return same and worker.gpus == has.gpus and not worker.withdrawn
