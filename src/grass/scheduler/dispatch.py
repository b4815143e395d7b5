"""The decision: which waiting jobs start now, and where.

Two sources compete by order: shapes that are ready (new, or their gate opened), and,
for each worker that has freed units, the best blocked shape that fits there now. A
shape that fits nowhere becomes blocked; one that meets a closed gate is parked. A
decision examines only what has changed since the last one.
"""

from collections.abc import Callable, Collection
from heapq import heappop, heappush
from typing import NamedTuple

from grass.model.resources import GPU_KINDS, Allocation
from grass.scheduler.blocked.blocked_index import BlockedIndex, Freed
from grass.scheduler.fleet import Fleet
from grass.scheduler.learned_memory import closed_type, profiling_cost, uses_busy
from grass.scheduler.pilot_terms import LateShapes
from grass.scheduler.placement import PAIRED, allocate, lacking, slack
from grass.scheduler.reservations import Reservations, is_paused, reserved_units
from grass.scheduler.shapes import (
    Gate,
    QueueGate,
    Shape,
    ShapeKey,
    ShapeState,
    StartOrder,
    job_of,
    order_of,
    spreads,
)
from grass.scheduler.worker_units import HeldUnits, WorkerUnits, gpus_in


class Placement(NamedTuple):
    """A job that starts, and the units it was given."""

    job: int
    worker: str
    allocation: Allocation


class Candidate(NamedTuple):
    """The best blocked shape that a worker may start; stale in a later generation."""

    order: StartOrder
    worker_name: str
    generation: int
    shape: Shape
    worker: WorkerUnits


class Dispatch:
    """All waiting shapes, each in one `ShapeState`, and the loop that starts jobs."""

    def __init__(self, fleet: Fleet, reservations: Reservations) -> None:
        self.fleet = fleet
        self.reservations = reservations
        self.index = BlockedIndex()
        self._late_shapes = LateShapes(self.index)
        self.queues: dict[str, QueueGate] = {}
        self.shapes: dict[ShapeKey, Shape] = {}
        self.shape_of: dict[int, Shape] = {}
        self.priorities: dict[int, int] = {}
        """Of waiting jobs, where it is not 0."""
        self.ready: list[tuple[StartOrder, Shape]] = []
        self._freed: dict[WorkerUnits, dict[str, set[str]]] = {}
        self._opened_gates: dict[Gate, None] = {}
        self._blocked_late: list[tuple[Shape, WorkerUnits, str, int]] = []
        """Indexed after the decision: that they fit the index does not say enough."""
        self._candidates: list[Candidate] = []
        self._placements: list[Placement] = []
        self._generation = 0
        self._version = fleet.version

    def wake(self, shape: Shape) -> None:
        """Make a shape ready: the next decision tries it on every worker."""
        assert shape.head is not None
        if shape.entries:
            self.index.remove(shape)
        shape.state = ShapeState.READY
        heappush(self.ready, (shape.head, shape))

    def add_freed(self, worker: WorkerUnits, freed: Freed) -> None:
        """Record that some of these units may have become free on a worker."""
        by_kind = self._freed.setdefault(worker, {})
        for kind, units in freed.items():
            by_kind.setdefault(kind, set()).update(units)

    def add_freed_gpus(self, worker: WorkerUnits, units: Collection[str]) -> None:
        """Record that shares and memory of these GPUs may be had again."""
        self.add_freed(worker, dict.fromkeys(GPU_KINDS, units))

    def reconsider_guests(self, worker: str) -> None:
        """Try guests again, as what their processes have themselves has changed."""
        for shape in self.shapes.values():
            key, blocked = shape.key, shape.state is ShapeState.BLOCKED
            if blocked and key.process is not None and key.worker == worker:
                self.wake(shape)

    def freed(self, held: HeldUnits) -> None:
        """Record that units are free which a holder had."""
        self.add_freed(held.worker, held.allocation)
        if held.worker.gpu_jobs is not None:
            self.add_freed_gpus(held.worker, gpus_in(held.allocation))
        queue = held.gates.queue
        if queue is not None:
            self.index.queue_released(held.worker, queue.name, held.allocation)

    def released(self, held: HeldUnits) -> None:
        """Record that a holder is gone, and what it had is free."""
        self.freed(held)
        queue, limiters, _ = held.gates
        if queue is not None:
            self.opened(queue)
        for limiter in limiters:
            self.opened(limiter)

    def opened(self, gate: Gate) -> None:
        """Record that a gate may have opened."""
        if gate.parked:
            self._opened_gates[gate] = None

    def order_of(self, job: int) -> StartOrder:
        """Return the order of a waiting job."""
        return order_of(job, self.priorities.get(job, 0))

    def leave(self, shape: Shape, job: int) -> WorkerUnits | None:
        """Remove a job from its shape; return the worker it had reserved, if any."""
        order = self.order_of(job)
        shape.discard(order)
        shape.queue.waiting -= 1
        del self.shape_of[job]
        self.priorities.pop(job, None)
        if shape.head is None:
            if shape.entries:
                self.index.remove(shape)
            del self.shapes[shape.key]
            del shape.queue.shapes[shape]
            if shape.gates.learned is not None:
                del shape.gates.learned.shapes[shape]
                self.fleet.drop_unused(shape.gates.learned)
        worker = self.reservations.forget(order)
        if worker is not None:
            self.add_freed(worker, worker.free)
        return worker

    def is_outdated(self) -> bool:
        """Return whether units, views or labels changed since the last decision."""
        return self._version != self.fleet.version or bool(self.fleet.changed_queues)

    def run(self, now: float) -> list[Placement]:
        """Start every job that may start, best order first."""
        self._prepare(now)
        self._candidates.clear()
        placements = self._placements = list[Placement]()
        for worker in list(self._freed):
            self._add_candidate(worker)
        while True:
            shape = self._best_ready()
            candidates = self._candidates
            if candidates and (shape is None or candidates[0].order < self.ready[0][0]):
                self._serve_candidate(heappop(candidates), now)
            elif shape is not None:
                heappop(self.ready)
                self._serve_ready(shape, now)
            else:
                break
        self._finish()
        return placements

    def _prepare(self, now: float) -> None:
        self.fleet.now = now
        if self._version != self.fleet.version:
            self._reindex_all()
        elif self.fleet.changed_queues:
            self._reindex_queues(list(self.fleet.changed_queues))
        self.fleet.changed_queues.clear()
        if self.fleet.timed:
            self._suspend(
                self._late_shapes.drop(self.shapes.values(), now).__contains__
            )
        if self.fleet.changed_types:
            self._reindex_types()
        if self.reservations.active:
            self._suspend(is_paused)
        self.reservations.expire(now)
        if self.reservations.due:
            self.reservations.reserve_due()
        for gate in self._opened_gates:
            self._admit(gate)
        self._opened_gates.clear()

    def _reindex_all(self) -> None:
        """Drop the index of blocked shapes: units or labels have changed."""
        self._version = self.fleet.version
        self.reservations.suspend(lambda _: True)
        self.index.clear()
        self._freed.clear()
        for shape in self.shapes.values():
            shape.entries.clear()
            self._reconsider(shape)

    def _reindex_queues(self, queues: list[str]) -> None:
        """Drop the blocked shapes of some queues: their views have changed."""
        concerned = [one for one in map(self.queues.get, queues) if one is not None]
        self._suspend(lambda shape: shape.queue in concerned)
        for queue in concerned:
            for shape in queue.shapes:
                self.index.remove(shape)
                self._reconsider(shape)
        for name in queues:
            self.index.drop_queue(name)

    def _reindex_types(self) -> None:
        """Drop the blocked shapes of some job types: their choices have changed."""
        for job_type in self.fleet.changed_types:
            self._suspend(job_type.shapes.__contains__)
            for shape in job_type.shapes:
                self.index.remove(shape)
                self._reconsider(shape)
        self.fleet.changed_types.clear()

    def _suspend(self, which: Callable[[Shape], bool]) -> list[WorkerUnits]:
        """End the reservations of some shapes; return the workers."""
        ended = self.reservations.suspend(which)
        for worker, reservation in ended:
            self.add_freed(worker, reservation.allocation)
        return [worker for worker, _ in ended]

    def _reconsider(self, shape: Shape) -> None:
        shape.eligible = None
        parked_at = shape.parked_at if shape.state is ShapeState.PARKED else None
        at_type = parked_at is not None and parked_at is shape.gates.learned
        if shape.state is ShapeState.BLOCKED or at_type:
            self.wake(shape)

    def _finish(self) -> None:
        for shape, worker, kind, amount in self._blocked_late:
            blocked = shape.state is ShapeState.BLOCKED and shape.head is not None
            if blocked and worker.name not in shape.entries:
                self.index.insert(shape, worker, kind, amount)
        self._blocked_late.clear()
        self._freed.clear()
        if self.reservations.due:
            self.reservations.reserve_due()

    def _best_ready(self) -> Shape | None:
        ready = self.ready
        while ready:
            order, shape = ready[0]
            if order == shape.head and shape.state is ShapeState.READY:
                return shape
            heappop(ready)
            stale = shape.head is not None and order < shape.head
            if stale and shape.state is ShapeState.READY:
                self.wake(shape)
        return None

    def _add_candidate(self, worker: WorkerUnits) -> None:
        best = self.index.best_startable(worker, self._freed[worker])
        if best is not None:
            order, entry = best
            found = order, worker.name, self._generation, entry.shape, worker
            heappush(self._candidates, Candidate(*found))

    def _serve_candidate(self, candidate: Candidate, now: float) -> None:
        worker = candidate.worker
        if candidate.generation == self._generation:
            self._generation += 1
            self._serve_blocked(candidate.shape, worker, now)
        self._add_candidate(worker)

    def _serve_blocked(self, shape: Shape, woken_by: WorkerUnits, now: float) -> None:
        if self._parked(shape):
            return
        places = [worker for worker in self._freed if worker.name in shape.entries]
        if self._start_head(shape, places, now):
            return
        self.index.remove_entry(shape, woken_by.name)
        self._block(shape, woken_by)

    def _serve_ready(self, shape: Shape, now: float) -> None:
        self._generation += 1
        if not self._parked(shape):
            eligible = self.eligible(shape)
            if not self._start_head(shape, eligible, now):
                shape.state = ShapeState.BLOCKED
                for worker in eligible:
                    self._block(shape, worker)
            elif shape.head is not None:
                heappush(self.ready, (shape.head, shape))
        self._admit(shape.queue)
        for limiter in shape.gates.limiters:
            self._admit(limiter)

    def _parked(self, shape: Shape) -> bool:
        gate = shape.gate()
        if gate is None and shape.gates.learned is not None:
            gate = closed_type(shape, self.eligible(shape))
        if gate is None:
            return False
        if shape.entries:
            self.index.remove(shape)
        gate.park(shape)
        return True

    def eligible(self, shape: Shape) -> list[WorkerUnits]:
        """Return the workers that could run a job of a shape when empty."""
        if shape.eligible is None:
            shape.eligible = self.fleet.eligible(shape)
        return shape.eligible

    def _admit(self, gate: Gate) -> None:
        """Make the best parked shape ready; the next one once that was served."""
        if gate.parked and gate.is_open():
            shape = gate.next_parked()
            if shape is not None:
                self.wake(shape)

    def _block(self, shape: Shape, worker: WorkerUnits) -> None:
        assert shape.head is not None
        kind, amount = lacking(worker, shape.key, shape.head)
        if shape.key.process is not None and kind in ("vram", *PAIRED):
            # The index counts what the guest has itself as withheld.
            own = worker.processes.get(shape.key.process, {})
            amount = max(0, amount - sum(own.values()))
            self._blocked_late.append((shape, worker, kind, amount))
        elif kind in PAIRED:
            self._blocked_late.append((shape, worker, kind, amount))
        else:
            self.index.insert(shape, worker, kind, amount)

    def _start_head(self, shape: Shape, places: list[WorkerUnits], now: float) -> bool:
        order, key = shape.head, shape.key
        assert order is not None
        chosen: tuple[float, WorkerUnits, Allocation] | None = None
        learned = shape.gates.learned
        several = len(places) > 1
        sign = -1.0 if several and spreads(key) else 1.0
        for worker in places:
            allocation = reserved_units(worker, order)
            if allocation is None or (learned and uses_busy(worker, allocation)):
                allocation = allocate(worker, key, order)
            if allocation is None:
                continue
            left = sign * slack(worker, key) if several else 0.0
            if learned:
                left += profiling_cost(worker, key, allocation)
            if chosen is None or (left, worker.name) < (chosen[0], chosen[1].name):
                chosen = left, worker, allocation
        if chosen is None:
            return False
        self._start(shape, order, chosen[1], chosen[2], now)
        return True

    def _start(
        self,
        shape: Shape,
        order: StartOrder,
        worker: WorkerUnits,
        allocation: Allocation,
        now: float,
    ) -> None:
        job = job_of(order)
        # Counted before the start can close a gate, or a head of the same queue would
        # be parked each time it is overtaken.
        self._count_overtaken(worker, allocation, shape, now)
        self.fleet.take(job, worker, allocation, shape.gates)
        self._placements.append(Placement(job, worker.name, allocation))
        reserved = self.leave(shape, job)
        if reserved is not None:
            self._add_candidate(reserved)
        learned = shape.gates.learned
        if learned is not None and job in learned.profilers.values():
            # Other shapes of the type may have reserved a GPU to profile it.
            for other in self._suspend(learned.shapes.__contains__):
                self._add_candidate(other)

    def _count_overtaken(
        self, worker: WorkerUnits, allocation: Allocation, by: Shape, now: float
    ) -> None:
        """Count the best heads of better order that wait for units a head takes.

        A head that waits for its own queue's limits is overtaken by that queue alone.
        """
        order, heads = by.head, dict[Shape, None]()
        assert order is not None
        buckets = self.index.affected_by(worker, allocation)
        buckets += self.index.unlisted_buckets(worker, by.key.queue, allocation)
        for bucket in buckets:
            entry = bucket.best_live(order)
            while entry is not None and self._parked(entry.shape):
                entry = bucket.best_live(order)
            if entry is not None:
                heads[entry.shape] = None
        for shape in heads:
            self.reservations.count(shape, now)
