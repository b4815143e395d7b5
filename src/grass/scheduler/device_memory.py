"""GPUs and their memory: units of `gpu` and `vram` with one name are one device.

A request for both takes both from the same units. A share of a GPU that names no memory
brings its part of it, fixed when it is placed: what is on offer of the unit's memory,
times the share, over the share that is still free. So memory that is withheld makes
every share a little smaller and blocks none, until too little is left: then the share
does not fit there. A whole GPU has no job beside it. A unit of `gpu` without `vram`,
such as a declared one, brings none.
"""

from collections.abc import Mapping
from typing import NamedTuple

from grass.model.amount_text import WHOLE
from grass.model.gpu_details import GpuDetails
from grass.model.resources import Allocation, Request, Units
from grass.scheduler.nearness import nearest_first
from grass.scheduler.unit_choice import Pick, largest_whole, take_kind, tightest
from grass.scheduler.worker_units import NO_UNITS, KindUnits


class Offer(NamedTuple):
    """What one worker offers to a job."""

    kinds: dict[str, KindUnits]
    """All units of the job's queue, as if no job held any."""
    units: dict[str, Units]
    """What is on offer of each kind."""
    whole: dict[str, Units]
    """What units offer while no job holds any of them."""
    pick: Pick = tightest
    """Chooses one of the units that fit."""
    gpus: Units = NO_UNITS
    """The size of each GPU, for all queues."""
    shares: Units = NO_UNITS
    """What is free of that."""
    least: int = WHOLE
    """The part of its memory that a share of a GPU has at least."""
    details: Mapping[str, GpuDetails] = {}
    """What is known of found GPUs."""


def brings_memory(request: Request, kinds: dict[str, KindUnits]) -> bool:
    """Return whether a request is for shares of GPUs that bring their memory."""
    if "vram" not in kinds:
        return False
    asked = {kind for kind, _ in request}
    return "gpu" in asked and "vram" not in asked


def take_shares(offer: Offer, amount: int) -> Allocation | None:
    """Choose GPUs that give an amount with the memory it brings, or None."""
    left, taken = dict(offer.units["gpu"]), Units()
    whole = offer.whole["gpu"]
    on_one = amount <= offer.kinds["gpu"].largest
    if on_one:
        left = _least_withheld_first(offer, left)
    else:
        ready = _with_memory(offer, left)
        left = nearest_first(ready, whole, amount, offer.details) | left
    while True:
        unit = offer.pick(_with_memory(offer, left, amount), amount)
        if unit is not None:
            taken[unit] = amount
            return _with_their_memory(offer, taken)
        unit = None if on_one else largest_whole(_with_memory(offer, left), whole)
        if unit is None:
            return None
        taken[unit] = left.pop(unit)
        amount -= taken[unit]


def _least_withheld_first(offer: Offer, units: Units) -> Units:
    """Order GPUs so that of several alike one without strangers is taken."""
    sizes, offered = offer.kinds["vram"].sizes, offer.whole["vram"]
    if sizes == offered:
        return units
    return dict(
        sorted(
            units.items(), key=lambda one: sizes.get(one[0], 0) - offered.get(one[0], 0)
        )
    )


def least_memory(offer: Offer, amount: int) -> int:
    """Return the least memory with which some GPU could give an amount."""
    vram = offer.kinds["vram"].sizes
    needed = [
        _least(offer, unit, vram[unit], min(amount, size))
        for unit, size in offer.kinds["gpu"].sizes.items()
        if unit in vram
    ]
    return max(1, min(needed, default=1))


def most_memory(offer: Offer, amount: int) -> int:
    """Return the most memory that an amount of one GPU would bring now."""
    found = (
        _brought(offer, unit, min(amount, free))
        for unit, free in offer.units["gpu"].items()
        if free >= min(amount, offer.kinds["gpu"].largest)
    )
    return max(found, default=0)


def take_tied(request: Request, offer: Offer) -> Allocation | None:
    """Choose GPUs that give both kinds as asked, memory in equal parts, or None."""
    asked = dict(request)
    gpu, vram = _least_withheld_first(offer, offer.units["gpu"]), offer.units["vram"]
    most = 1 if asked["gpu"] <= offer.kinds["gpu"].largest else len(gpu)
    for count in range(1, most + 1):
        share, rest = divmod(asked["vram"], count)
        fit = {unit: free for unit, free in gpu.items() if vram.get(unit, 0) >= share}
        taken = take_gpus(offer, fit, asked["gpu"])
        if taken is not None and len(taken) == count:
            split = _split_evenly(taken, vram, share, rest)
            if split is not None:
                return {"gpu": taken, "vram": split}
    return None


def take_gpus(offer: Offer, units: Units, amount: int) -> Units | None:
    """Choose from these GPUs alone, whatever memory they have, or None."""
    kind_units, whole = offer.kinds["gpu"], offer.whole["gpu"]
    if amount > kind_units.largest:
        units = nearest_first(units, whole, amount, offer.details) | units
    return take_kind(units, kind_units, whole, amount, offer.pick)


def largest_tied(gpu: Units, vram: Units) -> int:
    """Return the vram of all gpus with a free share: an upper bound for both kinds."""
    return sum(vram.get(unit, 0) for unit, free in gpu.items() if free > 0)


def _with_memory(offer: Offer, units: Units, amount: int | None = None) -> Units:
    """Return the GPUs that have memory enough for an amount, or for all they offer."""
    return {
        unit: free
        for unit, free in units.items()
        if _has_memory(offer, unit, free if amount is None else amount)
    }


def _has_memory(offer: Offer, unit: str, share: int) -> bool:
    memory = offer.kinds["vram"].sizes.get(unit)
    if memory is None:
        return True
    if share == offer.gpus[unit] and _is_shared(offer, unit):
        return False
    return _brought(offer, unit, share) >= _least(offer, unit, memory, share)


def _is_shared(offer: Offer, unit: str) -> bool:
    """Return whether a job holds memory of a GPU that another would have whole."""
    return offer.units["vram"].get(unit) != offer.whole["vram"][unit]


def _brought(offer: Offer, unit: str, share: int) -> int:
    free = offer.shares.get(unit, 0)
    return offer.units["vram"].get(unit, 0) * share // free if free else 0


def _least(offer: Offer, unit: str, memory: int, share: int) -> int:
    return memory * share // offer.gpus[unit] * offer.least // WHOLE


def _with_their_memory(offer: Offer, taken: Units) -> Allocation:
    brought = {unit: _brought(offer, unit, share) for unit, share in taken.items()}
    memory = {unit: amount for unit, amount in brought.items() if amount}
    return {"gpu": taken, "vram": memory} if memory else {"gpu": taken}


def _split_evenly(taken: Units, vram: Units, share: int, rest: int) -> Units | None:
    for first in taken:
        if vram.get(first, 0) >= share + rest:
            return {unit: share + (rest if unit == first else 0) for unit in taken}
    return None
