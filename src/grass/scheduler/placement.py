"""Which units of one worker meet a request, and what is missing where none do.

An amount that fits on one unit goes on one unit: the tightest fit, or with `spread` the
one with most free. A larger one takes wholly free units, largest first, and the rest
from one more: see `unit_choice`. A GPU comes with memory of the same device: see
`device_memory`; several are near each other, and cores near them: see `nearness`.
Where a shape names a model, the units of other GPUs do not exist for it. One whose
memory is learned is placed by the first of its choices: see `learned_memory`.
"""

from grass.model.resources import GPU_KINDS, Allocation, Request, Units
from grass.scheduler.device_memory import (
    Offer,
    brings_memory,
    largest_tied,
    least_memory,
    most_memory,
    take_gpus,
    take_shares,
    take_tied,
)
from grass.scheduler.learned_memory import (
    choices,
    idle_choices,
    least_needed,
    open_choices,
    without_gpus,
)
from grass.scheduler.nearness import near_cores_first, nearest_first
from grass.scheduler.shapes import ShapeKey, StartOrder, spreads
from grass.scheduler.unit_choice import (
    largest_on_one,
    largest_on_several,
    loosest,
    take_kind,
    tightest,
)
from grass.scheduler.worker_units import (
    NO_UNITS,
    KindUnits,
    WorkerUnits,
    only_of,
)

TIED = "gpu/vram"
"""Stands for both kinds where neither is lacking alone but no unit has both."""
LEARNED = "gpu/learned"
"""Stands for both kinds where the amount of memory depends on the GPU."""
PAIRED = (TIED, LEARNED)
"""What is indexed under these may not fit though the amount does."""


def allocate(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder | None
) -> Allocation | None:
    """Choose units for a job from what is free for its order, or None."""
    if key.learned is not None:
        return _allocate_learned(worker, key, order)
    return fill(key.request, offer_now(worker, key, order))


def _allocate_learned(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder | None
) -> Allocation | None:
    """Choose units by the memory that is known of a type, or else a whole GPU."""
    chosen, best = None, (False, 0)
    sign = -1 if spreads(key) else 1
    for choice in idle_choices(worker, key):
        allocation = allocate(worker, choice.key, order)
        if allocation is not None:
            free = worker.free["vram"]
            left = sum(free[unit] for unit in allocation.get("vram", NO_UNITS))
            rank = choice.profiles is not None, sign * left
            if chosen is None or rank < best:
                chosen, best = allocation, rank
    return chosen


def offer_now(worker: WorkerUnits, key: ShapeKey, order: StartOrder | None) -> Offer:
    """Return what a worker offers to a job of this order."""
    queue, model = key.queue, key.model
    if model is None:
        kinds = worker.kinds_for(queue)
    else:
        worker = worker.seen_by(key.process, queue)
        kinds = kinds_of(worker, key)
    names = _names(key.request, kinds)
    units = {kind: worker.units_for(kind, queue, order) for kind in names}
    whole = {
        kind: worker.whole_sizes(kind, queue) if worker.withheld else kinds[kind].sizes
        for kind in names
    }
    if "gpu" not in units and "vram" not in units:
        pick = tightest if key.policy != "spread" else loosest
        return Offer(kinds, units, whole, pick)
    pick = loosest if spreads(key) else tightest
    if model is not None:
        units = {kind: free_units(worker, key, kind, order) for kind in names}
    shares = worker.units_for("gpu", "", order)
    return Offer(
        kinds, units, whole, pick, _gpus(worker), shares, worker.least, worker.gpus
    )


def kinds_of(worker: WorkerUnits, key: ShapeKey) -> dict[str, KindUnits]:
    """Return what jobs of a shape could get of a worker if no unit was held."""
    if key.model is None:
        return worker.kinds_for(key.queue)
    return worker.kinds_with(key.queue, worker.gpus_of(key.model))


def free_units(
    worker: WorkerUnits, key: ShapeKey, kind: str, order: StartOrder | None
) -> Units:
    """Return what is free of a kind for a job; without an order, also if reserved."""
    if key.model is None or kind not in GPU_KINDS:
        return worker.units_for(kind, key.queue, order)
    worker = worker.seen_by(key.process, key.queue)
    units = worker.units_for(kind, key.queue, order)
    gpus = worker.gpus_of(key.model)
    return units if gpus is None else only_of(units, gpus)


def fits_when_empty(worker: WorkerUnits, key: ShapeKey) -> bool:
    """Return whether the worker could meet the request if no unit was held."""
    if key.learned is not None:
        return any(fits_when_empty(worker, one.key) for one in choices(worker, key))
    kinds = kinds_of(worker, key)
    units = {kind: kinds[kind].sizes for kind in _names(key.request, kinds)}
    gpus = _gpus(worker)
    offer = Offer(kinds, units, units, gpus=gpus, shares=gpus)
    return fill(key.request, offer) is not None


def drainable(worker: WorkerUnits, key: ShapeKey) -> Allocation | None:
    """Choose units as if all were free, those first of which the least is held.

    Of several GPUs, those first that no job holds, and then those that are nearest.
    """
    if key.learned is not None:
        found = (drainable(worker, one.key) for one in open_choices(worker, key))
        return next(filter(None, found), None)
    worker = worker.seen_by(key.process, key.queue)
    kinds = kinds_of(worker, key)
    units = {}
    for kind in _names(key.request, kinds):
        whole = worker.whole_sizes(kind, key.queue)
        free = free_units(worker, key, kind, None)
        nearest = sorted(free, key=lambda unit: whole.get(unit, 0) - free[unit])
        units[kind] = {unit: whole[unit] for unit in nearest if unit in whole}
        if kind == "gpu":
            held = [unit for unit in units[kind] if free[unit] < whole[unit]]
            asked = dict(key.request)[kind]
            near = nearest_first(units[kind], whole, asked, worker.gpus, held)
            units[kind] = near | units[kind]
    shares = worker.whole_sizes("gpu", "")
    gpus, least = _gpus(worker), worker.least
    offer = Offer(kinds, units, units, gpus=gpus, shares=shares, least=least)
    return fill(key.request, offer)


def fill(request: Request, offer: Offer) -> Allocation | None:
    """Meet every kind of a request from what is offered, or none of it."""
    allocation: Allocation = {}
    details = offer.details
    # Which cores are near depends on the GPUs, so those are chosen first.
    for kind, amount in reversed(request) if details else request:
        if kind not in offer.kinds:
            return None
        if kind == "vram" and "gpu" in offer.units:
            continue
        if details and kind == "cpu":
            offer = _near_cores(offer, allocation)
        taken = _fill_kind(request, offer, kind, amount)
        if taken is None:
            return None
        allocation.update(taken)
    return allocation


def _near_cores(offer: Offer, allocation: Allocation) -> Offer:
    cores = near_cores_first(offer.units["cpu"], allocation, offer.details)
    return offer._replace(units={**offer.units, "cpu": cores})


def _fill_kind(
    request: Request, offer: Offer, kind: str, amount: int
) -> Allocation | None:
    """Meet one kind of a request; a GPU with the memory that goes with it."""
    units = offer.units[kind]
    if kind == "gpu":
        if "vram" not in offer.units:
            taken = take_gpus(offer, units, amount)
        elif brings_memory(request, offer.kinds):
            return take_shares(offer, amount)
        else:
            return take_tied(request, offer)
    elif kind == "vram":
        # Without a GPU it is memory of one device.
        unit = offer.pick(units, amount)
        taken = None if unit is None else {unit: amount}
    else:
        whole = offer.whole[kind]
        taken = take_kind(units, offer.kinds[kind], whole, amount, offer.pick)
    return None if taken is None else {kind: taken}


def _gpus(worker: WorkerUnits) -> Units:
    kind_units = worker.kinds.get("gpu")
    return NO_UNITS if kind_units is None else kind_units.sizes


def _names(request: Request, kinds: dict[str, KindUnits]) -> list[str]:
    """Return the kinds that are looked at for a request, as far as there are any."""
    names = [kind for kind, _ in request if kind in kinds]
    return [*names, "vram"] if brings_memory(request, kinds) else names


def lacking(worker: WorkerUnits, key: ShapeKey, order: StartOrder) -> tuple[str, int]:
    """Return the scarcest kind that a request lacks, and the amount it asks of it."""
    if key.learned is not None:
        return _lacking_learned(worker, key, order)
    asked = amounts_needed(worker, key)
    missing = shortage(worker, key, order)
    if not missing:
        return TIED, asked["vram"]
    kind = max(missing, key=lambda each: missing[each] / asked[each])
    if kind == "vram" and "gpu" in asked:
        return TIED, asked["vram"]
    return kind, asked[kind]


def _lacking_learned(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder
) -> tuple[str, int]:
    others = without_gpus(key)
    if shortage(worker, others, order):
        return lacking(worker, others, order)
    return LEARNED, least_needed(worker, key)


def amounts_needed(worker: WorkerUnits, key: ShapeKey) -> dict[str, int]:
    """Return what a request needs of each kind, the memory of its shares included."""
    asked = dict(key.request)
    if "gpu" not in asked:
        return asked
    kinds = kinds_of(worker, key)
    if brings_memory(key.request, kinds):
        offer = Offer(kinds, {}, {}, gpus=_gpus(worker), least=worker.least)
        asked["vram"] = least_memory(offer, asked["gpu"])
    return asked


def shortage(worker: WorkerUnits, key: ShapeKey, order: StartOrder) -> dict[str, int]:
    """Return how much is missing of each kind that is short on its own."""
    request, offer = key.request, offer_now(worker, key, order)
    kinds, units = offer.kinds, offer.units
    missing = {}
    for kind, amount in request:
        if kind == "vram" and "gpu" in units:
            largest_fit = largest_tied(units["gpu"], units["vram"])
        elif amount <= kinds[kind].largest:
            largest_fit = largest_on_one(units[kind])
        else:
            largest_fit = largest_on_several(units[kind], offer.whole[kind])
        if amount > largest_fit:
            missing[kind] = amount - largest_fit
    if "gpu" not in missing and brings_memory(request, kinds):
        missing.update(_memory_shortage(request, offer))
    return missing


def _memory_shortage(request: Request, offer: Offer) -> dict[str, int]:
    """Return how much memory is missing for shares that are free by themselves."""
    amount = dict(request)["gpu"]
    if take_shares(offer, amount) is not None:
        return {}
    needed, has = least_memory(offer, amount), most_memory(offer, amount)
    return {"vram": max(1, needed - has)}


def slack(worker: WorkerUnits, key: ShapeKey) -> float:
    """Return what would be left free of the asked kinds, as a share of capacity."""
    queue, model = key.queue, key.model
    kinds = worker.kinds_for(queue) if model is None else kinds_of(worker, key)
    request = key.request if key.learned is None else (*key.request, ("vram", 0))
    left = 0.0
    for kind, amount in request:
        units = worker.units_for(kind, queue, None)
        if model is not None:
            units = free_units(worker, key, kind, None)
        left += (sum(units.values()) - amount) / kinds[kind].total
    return left
