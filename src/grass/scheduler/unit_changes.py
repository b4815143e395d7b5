"""Changes of one worker's units: other amounts, units that come and go.

A unit that is made smaller than what is held of it is *withdrawn*: it keeps its amount
and takes nothing new until enough of it was released.
"""

from grass.model.resources import Allocation, Capacity
from grass.scheduler.worker_units import KindUnits, WorkerUnits, ordered


def set_capacity(worker: WorkerUnits, wanted: Capacity) -> None:
    """Give a worker other units and amounts; what is held of them stays held."""
    held = {
        (kind, unit): held_of(worker, kind, unit)
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
                resize(worker, kind, unit, amount)
    worker.capacity = ordered(worker.capacity)
    worker.free = ordered(worker.free)


def resize(worker: WorkerUnits, kind: str, unit: str, amount: int) -> None:
    """Set the amount of one unit; 0 removes it."""
    held = held_of(worker, kind, unit)
    if amount:
        worker.capacity.setdefault(kind, {})[unit] = amount
        worker.free.setdefault(kind, {})[unit] = amount - held
        return
    for units in (worker.capacity, worker.free):
        units.get(kind, {}).pop(unit, None)
        if not units.get(kind, {"": 0}):
            del units[kind]


def add_missing(worker: WorkerUnits, allocation: Allocation) -> None:
    """Assume that a worker which is away has what a holder holds."""
    for kind, units in allocation.items():
        for unit, amount in units.items():
            free = worker.free.setdefault(kind, {})
            has = worker.capacity.setdefault(kind, {})
            missing = amount - free.get(unit, 0)
            if missing > 0:
                worker.withdrawn.setdefault((kind, unit), has.get(unit, 0))
                has[unit] = has.get(unit, 0) + missing
                free[unit] = amount
    recompute(worker)


def held_of(worker: WorkerUnits, kind: str, unit: str) -> int:
    """Return how much of a unit is held."""
    has = worker.capacity.get(kind, {}).get(unit, 0)
    return has - worker.free.get(kind, {}).get(unit, 0)


def recompute(worker: WorkerUnits) -> None:
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
    worker.choices.clear()
    worker.free_version += 1
    worker.kinds_version += 1
