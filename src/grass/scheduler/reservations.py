"""Reservations: units that are drained for a head job that was overtaken too often.

Counts how often each blocked head was overtaken. After `overtakes` times, or
`patience_s` after the first, the head is due: it reserves concrete units on the worker
that has most of them free already. Jobs of worse order then leave these units alone. A
worker has at most one reservation; further heads that are due wait until it ends.
"""

from collections.abc import Callable

from grass.model.resources import Allocation
from grass.scheduler.placement import drainable
from grass.scheduler.shapes import Shape, ShapeState, StartOrder, job_of
from grass.scheduler.worker_units import Reservation, WorkerUnits


class Overtaken:
    """How often a head was overtaken, and when first."""

    __slots__ = ("first_at", "shape", "times")

    def __init__(self, shape: Shape, first_at: float) -> None:
        self.shape = shape
        self.first_at = first_at
        self.times = 0


class Reservations:
    """Blocked heads: overtaken, then due, then with an active reservation."""

    def __init__(self, overtakes: int, patience_s: float) -> None:
        self._overtakes = overtakes
        self._patience_s = patience_s
        self.overtaken: dict[StartOrder, Overtaken] = {}
        self.due: dict[StartOrder, Shape] = {}
        self.active: dict[StartOrder, tuple[WorkerUnits, Shape]] = {}

    def count(self, shape: Shape, now: float) -> None:
        """Count that a shape's head was overtaken once more."""
        assert shape.head is not None
        head = shape.head
        if head in self.active or head in self.due:
            return
        record = self.overtaken.get(head)
        if record is None:
            record = self.overtaken[head] = Overtaken(shape, now)
        record.times += 1
        if record.times >= self._overtakes:
            del self.overtaken[head]
            self.due[head] = shape
            self.reserve_due()

    def expire(self, now: float) -> None:
        """Make every head due that was first overtaken `patience_s` ago."""
        # Heads are recorded in the order of time, so the dict is sorted by it.
        while self.overtaken:
            order, record = next(iter(self.overtaken.items()))
            if record.first_at + self._patience_s > now:
                return
            del self.overtaken[order]
            self.due[order] = record.shape

    def deadline(self) -> float | None:
        """Return when `expire` makes the next head due."""
        for record in self.overtaken.values():
            return record.first_at + self._patience_s
        return None

    def reserve_due(self) -> None:
        """Reserve units for due heads, best order first, where a worker is left."""
        for order, shape in sorted(self.due.items()):
            blocked = shape.state is ShapeState.BLOCKED and not is_paused(shape)
            if shape.head != order or (blocked and self._reserve(shape)):
                del self.due[order]

    def forget(self, order: StartOrder) -> WorkerUnits | None:
        """Forget a job that starts or leaves; return the worker it had reserved."""
        if not self.overtaken and not self.due and not self.active:
            return None
        self.overtaken.pop(order, None)
        self.due.pop(order, None)
        worker, _ = self.active.pop(order, (None, None))
        if worker is not None:
            worker.reservation = None
        return worker

    def suspend(
        self, which: Callable[[Shape], bool]
    ) -> list[tuple[WorkerUnits, Reservation]]:
        """End the reservations of some shapes' heads, which stay due."""
        ended = []
        for order, (worker, shape) in list(self.active.items()):
            if not which(shape):
                continue
            assert worker.reservation is not None
            ended.append((worker, worker.reservation))
            del self.active[order]
            worker.reservation = None
            self.due[order] = shape
        return ended

    def _reserve(self, shape: Shape) -> bool:
        order, queue = shape.head, shape.key.queue
        assert order is not None
        nearest: tuple[float, WorkerUnits, Allocation] | None = None
        for worker in shape.eligible or ():
            if worker.reservation is not None:
                continue
            allocation = drainable(worker, shape.key)
            if allocation is None:
                continue
            missing = _missing_share(worker, queue, allocation)
            if nearest is None or missing < nearest[0]:
                nearest = missing, worker, allocation
        if nearest is None:
            return False
        _, worker, allocation = nearest
        worker.reservation = Reservation(job_of(order), order, queue, allocation)
        self.active[order] = (worker, shape)
        return True


def reserved_units(worker: WorkerUnits, order: StartOrder) -> Allocation | None:
    """Return what a job reserved on this worker, once all of it is free."""
    reservation = worker.reservation
    if reservation is None or reservation.order != order:
        return None
    allocation = reservation.allocation
    missing = _missing_share(worker, reservation.queue, allocation)
    return allocation if missing == 0 else None


def is_paused(shape: Shape) -> bool:
    """Return whether a shape is behind a paused gate.

    A full gate opens when a job ends, as units do, so units still drain for it.
    """
    gate = shape.gate()
    return gate is not None and gate.is_paused()


def _missing_share(worker: WorkerUnits, queue: str, allocation: Allocation) -> float:
    """Return how much must still be freed, as a sum of shares of each kind asked."""
    share = 0.0
    for kind, units in allocation.items():
        free = worker.units_for(kind, queue, None)
        missing = sum(
            max(0, amount - free.get(unit, 0)) for unit, amount in units.items()
        )
        share += missing / sum(units.values())
    return share
