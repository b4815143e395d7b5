"""Attempts that use more of a GPU's memory than they have reserved.

A context and a library's own buffers come on top of what a program counts, so an
attempt overruns only when it is above its reservation by more than a margin.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from grass.model.amounts import bytes_of_amount
from grass.model.resources import Allocation
from grass.worker.core.usage.gpu_attribution import holders_by_unit
from grass.worker.core.usage.samples import Sample

MARGIN_PART = 20
"""The margin is this part of a reservation, a twentieth, and at least the least."""
LEAST_MARGIN = 256 * 2**20
STOPPED = "out of GPU memory: stopped, as it"
"""How the reason of an attempt begins that was stopped because of it."""


class Overrun(NamedTuple):
    """One attempt that uses more than it has reserved; sizes are bytes."""

    attempt: str
    unit: str
    used: int
    reserved: int


def reserved_of(unit: str, allocation: Allocation) -> int | None:
    """Return what is reserved of a GPU's memory; None: its memory is not counted."""
    amount = allocation.get("vram", {}).get(unit)
    return None if amount is None else bytes_of_amount(amount)


def overruns(
    sample: Sample, allocations: Mapping[str, Allocation]
) -> Iterator[Overrun]:
    """Yield the attempts that use more than they may, and where."""
    for name, use in sample.attempts.items():
        for unit, used in use.gpu_memory.items():
            reserved = reserved_of(unit, allocations.get(name, {}))
            if reserved is not None and used > reserved + margin(reserved):
                yield Overrun(name, unit, used, reserved)


def margin(reserved: int) -> int:
    """Return by how much a reservation may be exceeded."""
    return max(reserved // MARGIN_PART, LEAST_MARGIN)


def shares(unit: str, allocations: Mapping[str, Allocation]) -> bool:
    """Tell whether several attempts hold a GPU."""
    return len(holders_by_unit(allocations).get(unit, ())) > 1
