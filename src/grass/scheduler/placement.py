"""Which units of one worker meet a request, and why none could.

An amount that fits on one unit goes on one unit, the tightest fit. A larger one takes
wholly free units, largest first, and the rest from one more: see `unit_choice`. A GPU
comes with memory of the same device: see `device_memory`.
"""

from grass.model.amount_text import amount_texts
from grass.model.resources import Allocation, Request, Units, request_text
from grass.scheduler.device_memory import (
    Offer,
    brings_memory,
    largest_tied,
    least_memory,
    most_memory,
    take_shares,
    take_tied,
)
from grass.scheduler.shapes import StartOrder
from grass.scheduler.unit_choice import largest_on_one, largest_on_several, take_kind
from grass.scheduler.worker_units import NO_UNITS, KindUnits, WorkerUnits

TIED = "gpu/vram"
"""Stands for both kinds where neither is lacking alone but no unit has both."""


def allocate(
    worker: WorkerUnits, queue: str, request: Request, order: StartOrder | None
) -> Allocation | None:
    """Choose units for a job from what is free for its order, or None."""
    return fill(request, offer_now(worker, queue, request, order))


def offer_now(
    worker: WorkerUnits, queue: str, request: Request, order: StartOrder | None
) -> Offer:
    """Return what a worker offers to a job of this order."""
    kinds = worker.kinds_for(queue)
    names = _names(request, kinds)
    units = {kind: worker.units_for(kind, queue, order) for kind in names}
    whole = {
        kind: worker.whole_sizes(kind, queue) if worker.withheld else kinds[kind].sizes
        for kind in names
    }
    if "gpu" not in units:
        return Offer(kinds, units, whole)
    shares = worker.units_for("gpu", "", order)
    return Offer(kinds, units, whole, _gpus(worker), shares, least=worker.least)


def fits_when_empty(worker: WorkerUnits, queue: str, request: Request) -> bool:
    """Return whether the worker could meet the request if no unit was held."""
    kinds = worker.kinds_for(queue)
    units = {kind: kinds[kind].sizes for kind in _names(request, kinds)}
    gpus = _gpus(worker)
    return fill(request, Offer(kinds, units, units, gpus, gpus)) is not None


def drainable(worker: WorkerUnits, queue: str, request: Request) -> Allocation | None:
    """Choose units as if all were free, those first of which the least is held."""
    kinds = worker.kinds_for(queue)
    units = {}
    for kind in _names(request, kinds):
        whole = worker.whole_sizes(kind, queue)
        free = worker.units_for(kind, queue, None)
        nearest = sorted(free, key=lambda unit: whole.get(unit, 0) - free[unit])
        units[kind] = {unit: whole[unit] for unit in nearest if unit in whole}
    shares = worker.whole_sizes("gpu", "")
    offer = Offer(kinds, units, units, _gpus(worker), shares, least=worker.least)
    return fill(request, offer)


def fill(request: Request, offer: Offer) -> Allocation | None:
    """Meet every kind of a request from what is offered, or none of it."""
    allocation = {}
    for kind, amount in request:
        if kind not in offer.kinds:
            return None
        if kind == "vram" and "gpu" in offer.units:
            continue
        taken = _fill_kind(request, offer, kind, amount)
        if taken is None:
            return None
        allocation.update(taken)
    return allocation


def _fill_kind(
    request: Request, offer: Offer, kind: str, amount: int
) -> Allocation | None:
    """Meet one kind of a request; a GPU with the memory that goes with it."""
    if kind == "gpu" and "vram" in offer.units:
        if brings_memory(request, offer.kinds):
            return take_shares(offer, amount)
        return take_tied(request, offer)
    units, whole = offer.units[kind], offer.whole[kind]
    taken = take_kind(units, offer.kinds[kind], whole, amount)
    return None if taken is None else {kind: taken}


def _gpus(worker: WorkerUnits) -> Units:
    kind_units = worker.kinds.get("gpu")
    return NO_UNITS if kind_units is None else kind_units.sizes


def _names(request: Request, kinds: dict[str, KindUnits]) -> list[str]:
    """Return the kinds that are looked at for a request, as far as there are any."""
    names = [kind for kind, _ in request if kind in kinds]
    return [*names, "vram"] if brings_memory(request, kinds) else names


def lacking(
    worker: WorkerUnits, queue: str, request: Request, order: StartOrder
) -> tuple[str, int]:
    """Return the scarcest kind that a request lacks, and the amount it asks of it."""
    asked = amounts_needed(worker, queue, request)
    missing = shortage(worker, queue, request, order)
    if not missing:
        return TIED, asked["vram"]
    kind = max(missing, key=lambda each: missing[each] / asked[each])
    if kind == "vram" and "gpu" in asked:
        return TIED, asked["vram"]
    return kind, asked[kind]


def amounts_needed(worker: WorkerUnits, queue: str, request: Request) -> dict[str, int]:
    """Return what a request needs of each kind, the memory of its shares included."""
    kinds, asked = worker.kinds_for(queue), dict(request)
    if brings_memory(request, kinds):
        offer = Offer(kinds, {}, {}, _gpus(worker), least=worker.least)
        asked["vram"] = least_memory(offer, asked["gpu"])
    return asked


def shortage(
    worker: WorkerUnits, queue: str, request: Request, order: StartOrder
) -> dict[str, int]:
    """Return how much is missing of each kind that is short on its own."""
    offer = offer_now(worker, queue, request, order)
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
