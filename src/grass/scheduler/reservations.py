"""No starvation: heads that were overtaken too often get units drained for them.

Counts how often each blocked head was overtaken. After `overtakes` times, or
`patience_s` after the first, the head is due: it claims concrete units on the worker
that has most of them free already. Jobs of worse order then leave these units alone. A
worker carries one claim at a time; heads that are due wait for one to end.
"""

from collections.abc import Callable

from grass.model.resources import Allocation
from grass.scheduler.placement import drainable
from grass.scheduler.shapes import Order, Shape, Standing, job_of
from grass.scheduler.worker import Claim, Worker


class Overtaken:
    """How often a head was overtaken, and when first."""

    __slots__ = ("first_at", "shape", "times")

    def __init__(self, shape: Shape, first_at: float) -> None:
        self.shape = shape
        self.first_at = first_at
        self.times = 0


class Claims:
    """Overtaken heads on their way from counted, over due, to a claim."""

    def __init__(self, overtakes: int, patience_s: float) -> None:
        self._overtakes = overtakes
        self._patience_s = patience_s
        self.overtaken: dict[Order, Overtaken] = {}
        self.due: dict[Order, Shape] = {}
        self.held: dict[Order, tuple[Worker, Shape]] = {}

    def count(self, shape: Shape, now: float) -> None:
        """Count one overtaking of a shape's head."""
        assert shape.head is not None
        head = shape.head
        if head in self.held or head in self.due:
            return
        record = self.overtaken.get(head)
        if record is None:
            record = self.overtaken[head] = Overtaken(shape, now)
        record.times += 1
        if record.times >= self._overtakes:
            del self.overtaken[head]
            self.due[head] = shape
            self.settle()

    def expire(self, now: float) -> None:
        """Make every head due whose patience has run out."""
        # First overtakings are recorded in the order of time, so the dict is sorted.
        while self.overtaken:
            order, record = next(iter(self.overtaken.items()))
            if record.first_at + self._patience_s > now:
                return
            del self.overtaken[order]
            self.due[order] = record.shape

    def deadline(self) -> float | None:
        """Return when the next head loses its patience."""
        for record in self.overtaken.values():
            return record.first_at + self._patience_s
        return None

    def settle(self) -> None:
        """Turn due heads into claims, best order first, where a worker is left."""
        for order, shape in sorted(self.due.items()):
            blocked = shape.standing is Standing.BLOCKED and not is_paused(shape)
            if shape.head != order or (blocked and self._claim(shape)):
                del self.due[order]

    def forget(self, order: Order) -> Worker | None:
        """Forget a job that starts or leaves; return the worker its claim was on."""
        if not self.overtaken and not self.due and not self.held:
            return None
        self.overtaken.pop(order, None)
        self.due.pop(order, None)
        worker, _ = self.held.pop(order, (None, None))
        if worker is not None:
            worker.claim = None
        return worker

    def suspend(self, which: Callable[[Shape], bool]) -> list[tuple[Worker, Claim]]:
        """End the claims of some shapes' heads, which stay due."""
        ended = []
        for order, (worker, shape) in list(self.held.items()):
            if not which(shape):
                continue
            assert worker.claim is not None
            ended.append((worker, worker.claim))
            del self.held[order]
            worker.claim = None
            self.due[order] = shape
        return ended

    def _claim(self, shape: Shape) -> bool:
        order, queue = shape.head, shape.key.queue
        assert order is not None
        nearest: tuple[float, Worker, Allocation] | None = None
        for worker in shape.eligible or ():
            if worker.claim is not None:
                continue
            allocation = drainable(worker, queue, shape.request)
            if allocation is None:
                continue
            missing = _missing_share(worker, queue, allocation)
            if nearest is None or missing < nearest[0]:
                nearest = missing, worker, allocation
        if nearest is None:
            return False
        _, worker, allocation = nearest
        worker.claim = Claim(job_of(order), order, queue, worker.name, allocation)
        self.held[order] = (worker, shape)
        return True


def claimed_units(worker: Worker, order: Order) -> Allocation | None:
    """Return what a job claimed on this worker, once all of it is free."""
    claim = worker.claim
    if claim is None or claim.order != order:
        return None
    free = _missing_share(worker, claim.queue, claim.allocation) == 0
    return claim.allocation if free else None


def is_paused(shape: Shape) -> bool:
    """Tell whether a shape is behind a paused gate.

    A full gate opens when a job ends, as units do, so draining goes on for it.
    """
    gate = shape.gate()
    return gate is not None and gate.is_paused()


def _missing_share(worker: Worker, queue: str, allocation: Allocation) -> float:
    """Return how much must still be freed, as a sum of shares of each kind asked."""
    share = 0.0
    for kind, units in allocation.items():
        free = worker.units_for(kind, queue, None)
        missing = sum(
            max(0, amount - free.get(unit, 0)) for unit, amount in units.items()
        )
        share += missing / sum(units.values())
    return share
