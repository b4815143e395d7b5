"""What an engine lends a worker for: until when, and whether for one job alone.

A job is placed on such a worker only if it can end there in time. Time alone makes a
worker too short for a shape. That is looked at once a second, as the lists of eligible
workers are kept; so who sets the terms subtracts a second at least.
"""

from collections.abc import Iterable
from typing import NamedTuple

from grass.scheduler.blocked.blocked_index import BlockedIndex
from grass.scheduler.shapes import Shape, ShapeKey
from grass.scheduler.worker_units import WorkerUnits

LOOK_S = 1.0
"""How much later than it should a job may start."""
FOREVER = float("inf")


class PilotTerms(NamedTuple):
    """On which terms a worker is there; times are those of a monotonic clock."""

    ends_at: float = FOREVER
    """When it must be gone."""
    longest_s: float = FOREVER
    """How long a job may take at most on a worker that is to come."""
    unlimited_s: float = 0.0
    """How much time must be left for a job that has no limit."""
    bound: bool = False
    """Whether it takes only jobs that name it."""


def admits(worker: WorkerUnits, key: ShapeKey, now: float) -> bool:
    """Return whether jobs of a shape may be on a worker, whatever its units."""
    if key.kind in worker.avoided_by:
        return False
    terms = worker.terms
    if terms is not None and terms.bound:
        return key.worker == worker.name
    return key.worker in (None, worker.name) and has_time(worker, key, now)


def has_time(worker: WorkerUnits, key: ShapeKey, now: float) -> bool:
    """Return whether a job that starts now could end before its worker does."""
    terms = worker.terms
    if terms is None or terms.bound:
        return True
    needed = terms.unlimited_s if key.time_s is None else key.time_s
    return needed <= terms.longest_s and now + needed <= terms.ends_at


class LateShapes:
    """Takes workers from shapes that cannot end there any more."""

    def __init__(self, index: BlockedIndex) -> None:
        self._index = index
        self._look_at = -FOREVER

    def drop(self, shapes: Iterable[Shape], now: float) -> set[Shape]:
        """Look, unless that was just done; return the shapes that lost a worker."""
        found = set[Shape]()
        if now < self._look_at:
            return found
        self._look_at = now + LOOK_S
        for shape in shapes:
            eligible = shape.eligible or []
            late = [one for one in eligible if not has_time(one, shape.key, now)]
            for worker in late:
                eligible.remove(worker)
                self._index.remove_entry(shape, worker.name)
            if late:
                found.add(shape)
        return found
