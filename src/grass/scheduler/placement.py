"""Which units of one worker meet a request, and why none could.

An amount that fits on one unit goes on one unit, the tightest fit. A larger one takes
wholly free units, largest first, and the rest from one more. `vram` asked together with
`gpu` comes from the same units. Functions of sizes and free amounts; ties go to the
first unit, so a caller chooses by the order of the units it passes.
"""

from grass.model.amount_text import amount_texts
from grass.model.resources import Allocation, Request, Units, request_text
from grass.scheduler.shapes import StartOrder
from grass.scheduler.worker_units import NO_UNITS, KindUnits, WorkerUnits

TIED = "gpu/vram"
"""Stands for both kinds where neither is lacking alone but no unit has both."""


def allocate(
    worker: WorkerUnits, queue: str, request: Request, order: StartOrder | None
) -> Allocation | None:
    """Choose units for a job from what is free for its order, or None."""
    kinds = worker.kinds_for(queue)
    units = {kind: worker.units_for(kind, queue, order) for kind, _ in request}
    return fill(request, kinds, units)


def fits_when_empty(worker: WorkerUnits, queue: str, request: Request) -> bool:
    """Return whether the worker could meet the request if no unit was held."""
    kinds = worker.kinds_for(queue)
    units = {kind: kinds[kind].sizes for kind, _ in request if kind in kinds}
    return fill(request, kinds, units) is not None


def drainable(worker: WorkerUnits, queue: str, request: Request) -> Allocation | None:
    """Choose units as if all were free, those first of which the least is held."""
    kinds = worker.kinds_for(queue)
    units = {}
    for kind, _ in request:
        sizes = kinds[kind].sizes if kind in kinds else NO_UNITS
        free = worker.units_for(kind, queue, None)
        nearest = sorted(free, key=lambda unit: sizes.get(unit, 0) - free[unit])
        units[kind] = {unit: sizes[unit] for unit in nearest if unit in sizes}
    return fill(request, kinds, units)


def fill(
    request: Request, kinds: dict[str, KindUnits], units: dict[str, Units]
) -> Allocation | None:
    """Meet every kind of a request from these units, or none of it."""
    allocation = {}
    for kind, amount in request:
        kind_units = kinds.get(kind)
        if kind_units is None:
            return None
        if kind == "vram" and "gpu" in units:
            continue
        if kind == "gpu" and "vram" in units:
            pair = _fill_tied(request, kinds, units)
            if pair is None:
                return None
            allocation.update(pair)
            continue
        taken = take_kind(units[kind], kind_units, amount)
        if taken is None:
            return None
        allocation[kind] = taken
    return allocation


def take_kind(units: Units, kind_units: KindUnits, amount: int) -> Units | None:
    """Choose units of one kind, or None."""
    if amount <= kind_units.largest:
        unit = _tightest(units, amount)
        return None if unit is None else {unit: amount}
    return _take_several(units, kind_units.sizes, amount)


def largest_on_one(units: Units) -> int:
    """Return the largest amount that one unit can give."""
    return max(units.values(), default=0)


def largest_on_several(units: Units, sizes: Units) -> int:
    """Return the largest amount that whole units and a part of one more can give."""
    whole = partial = 0
    for unit, free in units.items():
        if free == sizes.get(unit):
            whole += free
        elif free > partial:
            partial = free
    return whole + partial


def largest_tied(gpu: Units, vram: Units) -> int:
    """Return the vram of all gpus with a free share: an upper bound for both kinds."""
    return sum(vram.get(unit, 0) for unit, free in gpu.items() if free > 0)


def lacking(
    worker: WorkerUnits, queue: str, request: Request, order: StartOrder
) -> tuple[str, int]:
    """Return the scarcest kind that a request lacks, and the amount it asks of it."""
    asked = dict(request)
    missing = shortage(worker, queue, request, order)
    if not missing:
        return TIED, asked["vram"]
    kind = max(missing, key=lambda each: missing[each] / asked[each])
    if kind == "vram" and "gpu" in asked:
        return TIED, asked["vram"]
    return kind, asked[kind]


def shortage(
    worker: WorkerUnits, queue: str, request: Request, order: StartOrder
) -> dict[str, int]:
    """Return how much is missing of each kind that is short on its own."""
    kinds = worker.kinds_for(queue)
    units = {kind: worker.units_for(kind, queue, order) for kind, _ in request}
    missing = {}
    for kind, amount in request:
        if kind == "vram" and "gpu" in units:
            largest_fit = largest_tied(units["gpu"], units["vram"])
        elif amount <= kinds[kind].largest:
            largest_fit = largest_on_one(units[kind])
        else:
            largest_fit = largest_on_several(units[kind], kinds[kind].sizes)
        if amount > largest_fit:
            missing[kind] = amount - largest_fit
    return missing


def slack(worker: WorkerUnits, queue: str, request: Request) -> float:
    """Return what would be left free of the asked kinds, as a share of capacity."""
    kinds = worker.kinds_for(queue)
    left = 0.0
    for kind, amount in request:
        free = sum(worker.units_for(kind, queue, None).values())
        left += (free - amount) / kinds[kind].total
    return left


def never_fits(
    serving: list[WorkerUnits],
    queue: str,
    request: Request,
    labels: frozenset[str],
    *,
    pinned: bool = False,
) -> str | None:
    """Say with numbers why none of these workers could meet a request when empty.

    Held and drained units and workers that are away do not count: that passes.
    """
    if not serving:
        return None
    labelled = [worker for worker in serving if labels <= worker.labels]
    if not labelled:
        wanted = ", ".join(f"`{label}`" for label in sorted(labels))
        lacking = f"no worker of queue `{queue}` has"
        if pinned:
            lacking = "the worker that it is pinned to does not have"
        return f"{lacking} {wanted}"
    if any(fits_when_empty(worker, queue, request) for worker in labelled):
        return None
    for kind, asked in request:
        most = max(_total(worker, queue, kind) for worker in labelled)
        if not most:
            return f"queue `{queue}` has no {kind}; {_kinds(labelled, queue)}"
        if asked > most:
            wanted, has = amount_texts(kind, asked, most)
            text = f"{kind}: asked {wanted}, the most any worker of queue"
            return f"{text} `{queue}` has is {has}"
    return f"no worker of queue `{queue}` has {request_text(request)} together"


def too_small(worker: WorkerUnits, queue: str, request: Request) -> str:
    """Say with numbers why a worker could not meet a request, even when empty."""
    for kind, asked in request:
        total = _total(worker, queue, kind)
        if asked > total:
            wanted, has = amount_texts(kind, asked, total)
            return f"needs {kind} {wanted}, has {has if total else 'none'}"
    return f"does not have {request_text(request)} together"


def _kinds(workers: list[WorkerUnits], queue: str) -> str:
    kinds = sorted(
        {
            kind
            for each in workers
            for kind, kind_units in each.kinds_for(queue).items()
            if kind_units.total
        }
    )
    return f"it has {', '.join(kinds)}" if kinds else "it has nothing"


def _total(worker: WorkerUnits, queue: str, kind: str) -> int:
    kind_units = worker.kinds_for(queue).get(kind)
    return 0 if kind_units is None else kind_units.total


def _tightest(units: Units, amount: int) -> str | None:
    chosen, least = None, 0
    for unit, free in units.items():
        if free == amount:
            return unit
        if free > amount and (chosen is None or free < least):
            chosen, least = unit, free
    return chosen


def _take_several(units: Units, sizes: Units, amount: int) -> Units | None:
    left = dict(units)
    taken: Units = {}
    while True:
        unit = _tightest(left, amount)
        if unit is not None:
            taken[unit] = amount
            return taken
        unit = _largest_whole(left, sizes)
        if unit is None:
            return None
        taken[unit] = left.pop(unit)
        amount -= taken[unit]


def _largest_whole(units: Units, sizes: Units) -> str | None:
    chosen, most = None, 0
    for unit, free in units.items():
        if free > most and free == sizes.get(unit):
            chosen, most = unit, free
    return chosen


def _fill_tied(
    request: Request, kinds: dict[str, KindUnits], units: dict[str, Units]
) -> Allocation | None:
    asked = dict(request)
    gpu, vram = units["gpu"], units["vram"]
    if "vram" not in kinds:
        return None
    most = 1 if asked["gpu"] <= kinds["gpu"].largest else len(gpu)
    for count in range(1, most + 1):
        share, rest = divmod(asked["vram"], count)
        near = {unit: free for unit, free in gpu.items() if vram.get(unit, 0) >= share}
        taken = take_kind(near, kinds["gpu"], asked["gpu"])
        if taken is not None and len(taken) == count:
            split = _split_evenly(taken, vram, share, rest)
            if split is not None:
                return {"gpu": taken, "vram": split}
    return None


def _split_evenly(taken: Units, vram: Units, share: int, rest: int) -> Units | None:
    for first in taken:
        if vram.get(first, 0) >= share + rest:
            return {unit: share + (rest if unit == first else 0) for unit in taken}
    return None
