"""What the broker's memory holds for the features of workers.

`State` holds one of each; the modules beside this one work on them.
"""

from collections.abc import Iterable, Iterator

import msgspec

from grass.model.queue import Queue
from grass.model.resources import Capacity, Units

GPU_KINDS = ("gpu", "vram")
"""Kinds whose units of one name are one device."""
_Amounts = dict[int, int]
"""How many views name each amount of one unit."""


class Absence(msgspec.Struct):
    """A worker with a lease that is not connected."""

    lease_s: float
    since_s: float | None = None
    """When that was noticed, by the clock of decisions; None: just now."""
    next_s: float | None = None
    """When the next of its attempts must be over."""


class ReadinessNotes(msgspec.Struct):
    """What the journal tells of workers that cannot start jobs."""

    unable: set[str] = set()
    """Workers of which it tells last that they cannot."""
    noted_at: dict[str, int] = {}
    """When it was last told that a worker cannot."""
    due: dict[str, int] = {}
    """When the line of a worker is written that had one lately."""


class UnitNotes(msgspec.Struct):
    """What a worker says of its GPUs beside what they are."""

    withheld: Capacity = {}
    """What no job can have of a unit."""
    strangers: dict[str, list[str]] = {}
    """By unit, the processes of no job."""
    processes: dict[int, Units] = {}
    """By pid, what a process has of what is withheld."""
    noted: dict[str, int] = {}
    """By unit, when a fault was last written into the journal."""
    faulty: frozenset[str] = frozenset()
    """Units that the scheduler does not offer because of a fault."""
    busy: frozenset[str] = frozenset()
    """Units that take no job whose memory is learned."""


class Declared:
    """The units that the views of all queues name, by worker.

    Thousands of queues may name the same units. What they come to together is asked
    with every enqueue and every change of a queue, so it is counted as views come and
    go, not collected each time.
    """

    def __init__(self, queues: Iterable[Queue]) -> None:
        self._of: dict[str, dict[str, dict[str, _Amounts]]] = {}
        for queue in queues:
            for worker, view in queue.views.items():
                self.add(worker, view.capacity)

    def add(self, worker: str, capacity: Capacity) -> None:
        """Count a view."""
        kinds = self._of.setdefault(worker, {})
        for kind, unit, amount in _each(capacity):
            amounts = kinds.setdefault(kind, {}).setdefault(unit, {})
            amounts[amount] = amounts.get(amount, 0) + 1

    def remove(self, worker: str, capacity: Capacity) -> None:
        """Count a view no more."""
        kinds = self._of[worker]
        for kind, unit, amount in _each(capacity):
            amounts = kinds[kind][unit]
            amounts[amount] -= 1
            if not amounts[amount]:
                del amounts[amount]
            if not amounts:
                del kinds[kind][unit]
            if not kinds[kind]:
                del kinds[kind]

    def kinds(self) -> set[str]:
        """Return every kind that a view names."""
        return {kind for kinds in self._of.values() for kind in kinds}

    def largest(self, worker: str, without: Capacity) -> Iterator[tuple[str, Units]]:
        """Return the largest amount named of each unit, leaving one view out."""
        for kind, units in self._of.get(worker, {}).items():
            left_out = without.get(kind, {})
            found = {
                unit: _largest(amounts, left_out.get(unit))
                for unit, amounts in units.items()
            }
            yield kind, {unit: most for unit, most in found.items() if most is not None}


def _largest(amounts: _Amounts, left_out: int | None) -> int | None:
    if left_out is None or amounts[left_out] > 1:
        return max(amounts)
    return max((one for one in amounts if one != left_out), default=None)


def _each(capacity: Capacity) -> Iterator[tuple[str, str, int]]:
    for kind, units in capacity.items():
        for unit, amount in units.items():
            yield kind, unit, amount
