"""What attempts use of GPUs: readings, divided among those who hold them.

A process on a GPU counts for its attempt. What a library does not tell of a process is
taken from the whole GPU if one attempt alone is on it: its utilization, and the memory
that is used beyond what was used when no attempt held it. So it is in a container that
does not see the pids of the host.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from grass.devices.readings import GpuReading
from grass.model.resources import Allocation

KINDS = ("gpu", "vram")
BY_DIFFERENCE = "GPU memory by difference: its processes cannot be told apart here"
NOT_TOLD = "GPU memory not known: several jobs on a GPU whose processes are hidden"


class GpuUses(msgspec.Struct):
    """What one attempt uses of all GPUs."""

    memory: dict[str, int] = {}
    utilization: dict[str, float] = {}
    note: str = ""


class Holders(NamedTuple):
    """The attempts of a machine: their processes and their units."""

    pids: Mapping[str, Collection[int]]
    allocations: Mapping[str, Allocation]


def holders_by_unit(allocations: Mapping[str, Allocation]) -> dict[str, set[str]]:
    """Return the attempts that hold each GPU, or memory of it."""
    holding: dict[str, set[str]] = {}
    for name, held in allocations.items():
        for kind in KINDS:
            for unit in held.get(kind, ()):
                holding.setdefault(unit, set()).add(name)
    return holding


class GpuDivision:
    """Divides readings among attempts, and knows what GPUs use without any."""

    def __init__(self) -> None:
        self._unheld: dict[str, int] = {}
        """The memory that was used of each unit when no attempt held it."""

    def divide(
        self, readings: tuple[GpuReading, ...], holders: Holders
    ) -> dict[str, GpuUses]:
        """Return what each attempt uses."""
        owners = {pid: name for name, pids in holders.pids.items() for pid in pids}
        uses = {name: GpuUses() for name in holders.pids}
        holding = holders_by_unit(holders.allocations)
        for reading in readings:
            self._divide_one(reading, owners, holding.get(reading.unit, set()), uses)
        return uses

    def _divide_one(
        self,
        reading: GpuReading,
        owners: dict[int, str],
        holding: set[str],
        uses: dict[str, GpuUses],
    ) -> None:
        unit = reading.unit
        on_it = {owners.get(one.pid) for one in reading.processes}
        present = {*holding, *(name for name in on_it if name is not None)}
        if not present:
            if reading.fault is None:
                self._unheld[unit] = reading.used
            return
        untold = self._told(reading, owners, uses)
        alone = len(present) == 1 and (reading.pids_hidden or None not in on_it)
        for name in present & uses.keys():
            use = uses[name]
            if alone and unit not in use.utilization:
                _set(use.utilization, unit, reading.utilization)
            if name in untold or reading.pids_hidden:
                self._by_difference(reading, use, alone=alone)
            else:
                use.memory.setdefault(unit, 0)

    def _told(
        self, reading: GpuReading, owners: dict[int, str], uses: dict[str, GpuUses]
    ) -> set[str]:
        """Add what is told of each process; return the attempts with one untold."""
        untold, unit = set(), reading.unit
        for process in reading.processes:
            name = owners.get(process.pid)
            if name is None:
                continue
            use = uses[name]
            if process.memory is None:
                untold.add(name)
            else:
                use.memory[unit] = use.memory.get(unit, 0) + process.memory
            if process.utilization is not None:
                busy = use.utilization.get(unit, 0.0) + process.utilization
                use.utilization[unit] = min(100.0, busy)
        return untold

    def _by_difference(self, reading: GpuReading, use: GpuUses, *, alone: bool) -> None:
        if alone:
            before = self._unheld.get(reading.unit, 0)
            use.memory[reading.unit] = max(0, reading.used - before)
            use.note = BY_DIFFERENCE
        else:
            use.memory.pop(reading.unit, None)
            use.note = NOT_TOLD


def _set(values: dict[str, float], unit: str, value: float | None) -> None:
    if value is not None:
        values[unit] = float(value)
