"""Which units meet a request: the arithmetic of one worker.

An amount that fits on one unit goes on one unit, the tightest. A larger one takes
wholly free units, largest first, and the rest from one more. `vram` asked together with
`gpu` comes from the same units. Pure functions of sizes and free amounts; ties go to
the unit that comes first, so callers choose by the order of the units they pass.
"""

from grass.model.resources import Allocation, Request, Units
from grass.scheduler.shapes import Order
from grass.scheduler.worker import NO_UNITS, Stock, Worker

TIED = "gpu/vram"
"""Stands for both kinds where neither is lacking alone but no unit has both."""


def allocate(
    worker: Worker, queue: str, request: Request, order: Order | None
) -> Allocation | None:
    """Choose units for a job from what is free for its order, or None."""
    stocks = worker.stocks_for(queue)
    units = {kind: worker.units_for(kind, queue, order) for kind, _ in request}
    return fill(request, stocks, units)


def fits_when_empty(worker: Worker, queue: str, request: Request) -> bool:
    """Tell whether the worker could meet the request if nobody held anything."""
    stocks = worker.stocks_for(queue)
    units = {kind: stocks[kind].sizes for kind, _ in request if kind in stocks}
    return fill(request, stocks, units) is not None


def drainable(worker: Worker, queue: str, request: Request) -> Allocation | None:
    """Choose units as if all were free, preferring those with the least to wait for."""
    stocks = worker.stocks_for(queue)
    units = {}
    for kind, _ in request:
        sizes = stocks[kind].sizes if kind in stocks else NO_UNITS
        free = worker.units_for(kind, queue, None)
        nearest = sorted(free, key=lambda unit: sizes.get(unit, 0) - free[unit])
        units[kind] = {unit: sizes[unit] for unit in nearest if unit in sizes}
    return fill(request, stocks, units)


def fill(
    request: Request, stocks: dict[str, Stock], units: dict[str, Units]
) -> Allocation | None:
    """Meet every kind of a request from these units, or none of it."""
    allocation = {}
    for kind, amount in request:
        stock = stocks.get(kind)
        if stock is None:
            return None
        if kind == "vram" and "gpu" in units:
            continue
        if kind == "gpu" and "vram" in units:
            pair = _fill_tied(request, stocks, units)
            if pair is None:
                return None
            allocation.update(pair)
            continue
        taken = take_kind(units[kind], stock, amount)
        if taken is None:
            return None
        allocation[kind] = taken
    return allocation


def take_kind(units: Units, stock: Stock, amount: int) -> Units | None:
    """Choose units of one kind, or None."""
    if amount <= stock.largest:
        unit = _tightest(units, amount)
        return None if unit is None else {unit: amount}
    return _take_several(units, stock.sizes, amount)


def reach_one(units: Units) -> int:
    """Return the largest amount that one unit can give."""
    return max(units.values(), default=0)


def reach_several(units: Units, sizes: Units) -> int:
    """Return the largest amount that whole units and a rest can give: exact."""
    whole = partial = 0
    for unit, free in units.items():
        if free == sizes.get(unit):
            whole += free
        elif free > partial:
            partial = free
    return whole + partial


def tied_reach(gpu: Units, vram: Units) -> int:
    """Return the vram next to any free share of a gpu: no tied request gets more."""
    return sum(vram.get(unit, 0) for unit, free in gpu.items() if free > 0)


def lacking(
    worker: Worker, queue: str, request: Request, order: Order
) -> tuple[str, int]:
    """Name the scarcest kind a request that does not fit lacks, and what it asks."""
    asked = dict(request)
    missing = shortage(worker, queue, request, order)
    if not missing:
        return TIED, asked["vram"]
    kind = max(missing, key=lambda each: missing[each] / asked[each])
    if kind == "vram" and "gpu" in asked:
        return TIED, asked["vram"]
    return kind, asked[kind]


def shortage(
    worker: Worker, queue: str, request: Request, order: Order
) -> dict[str, int]:
    """Return how much is missing of each kind that is short on its own."""
    stocks = worker.stocks_for(queue)
    units = {kind: worker.units_for(kind, queue, order) for kind, _ in request}
    missing = {}
    for kind, amount in request:
        if kind == "vram" and "gpu" in units:
            reach = tied_reach(units["gpu"], units["vram"])
        elif amount <= stocks[kind].largest:
            reach = reach_one(units[kind])
        else:
            reach = reach_several(units[kind], stocks[kind].sizes)
        if amount > reach:
            missing[kind] = amount - reach
    return missing


def slack(worker: Worker, queue: str, request: Request) -> float:
    """Return what would be left free of the asked kinds, as a share of capacity."""
    stocks = worker.stocks_for(queue)
    left = 0.0
    for kind, amount in request:
        free = sum(worker.units_for(kind, queue, None).values())
        left += (free - amount) / stocks[kind].total
    return left


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
    request: Request, stocks: dict[str, Stock], units: dict[str, Units]
) -> Allocation | None:
    asked = dict(request)
    gpu, vram = units["gpu"], units["vram"]
    if "vram" not in stocks:
        return None
    most = 1 if asked["gpu"] <= stocks["gpu"].largest else len(gpu)
    for count in range(1, most + 1):
        share, rest = divmod(asked["vram"], count)
        near = {unit: free for unit, free in gpu.items() if vram.get(unit, 0) >= share}
        taken = take_kind(near, stocks["gpu"], asked["gpu"])
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
