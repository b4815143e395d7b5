"""What is really free of the GPUs: the memory that no job may have.

The scheduler counts what jobs have reserved, in full, whether they use it yet or not.
From looks at the machine this adds what no job reserved: the memory of strangers, and
what jobs use beyond their reservation. More is told at once; less only when it has
lasted a little, so that a process that takes and returns memory all the time moves
nothing. A change too small to matter is not told at all. The guard of a GPU is no part
of its capacity; it covers the little that the driver uses without a process.

What a process has of it is told, too: that is not in its own way when it asks for its
GPU as a guest.

Where the processes of a device cannot be named, as in a container, or do not tell what
they use, the rest counts as the jobs' own as far as they have reserved it; but never as
less than what was used there before they came.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from grass.devices.readings import GpuProcess, GpuReading
from grass.link.messages import Withheld
from grass.model.amount_text import WHOLE, amount_text
from grass.model.amounts import GIB
from grass.model.resources import Allocation, Units
from grass.worker.core.usage.busy_gpus import BusyGpus
from grass.worker.core.usage.samples import Sample, strangers

MIB = 2**20
STEP = WHOLE // 16
"""A change of less than this, 64 MiB, is not told."""
LASTED_S = 3.0
"""How long less must be used before it is reported."""
MOST_STRANGERS = 8
"""How many are named of one unit, the largest first."""
MOST_PROCESSES = 64
"""Of how many it is told what each has of one unit, the largest first."""
LONGEST_FAULT = 200

Allocations = Mapping[str, Allocation]
"""What every attempt has reserved that has not ended, by name."""


class Stranger(NamedTuple):
    """A process on a GPU that is in no attempt."""

    pid: int
    name: str
    memory: int
    at_s: float
    """When it was last seen."""


class UnitLook(NamedTuple):
    """What one look comes to for a unit, in amounts."""

    at_s: float
    withheld: int
    without: dict[int, int]
    """By pid what would be withheld if that process had nothing."""


class UnitLooks:
    """What was seen of one unit lately."""

    def __init__(self) -> None:
        self.before = 0
        """What was used, in bytes, when no job had reserved any of it."""
        self.strangers: dict[int, Stranger] = {}
        self._looks: list[UnitLook] = []

    def lasting(self, look: UnitLook) -> int:
        """Return the most that was withheld within the last seconds."""
        since_s = look.at_s - LASTED_S
        self._looks = [one for one in self._looks if one.at_s > since_s]
        self._looks.append(look)
        return max(one.withheld for one in self._looks)

    def processes(self, withheld: int) -> list[tuple[int, int]]:
        """Return pids, and what each has of what is withheld, the largest first.

        That is less than the most it had where others had more at another look.
        """
        pids = {pid for look in self._looks for pid in look.without}
        own = ((pid, withheld - self._without(pid)) for pid in pids)
        known = [one for one in own if one[1] >= STEP]
        return sorted(known, key=lambda one: (-one[1], one[0]))[:MOST_PROCESSES]

    def _without(self, pid: int) -> int:
        return max(look.without.get(pid, look.withheld) for look in self._looks)

    def seen(self, found: Iterator[Stranger], now_s: float) -> None:
        """Note the strangers of a look, and drop those that have left."""
        since_s = now_s - LASTED_S
        kept = {pid: one for pid, one in self.strangers.items() if one.at_s > since_s}
        self.strangers = kept | {one.pid: one for one in found}

    def largest(self) -> list[Stranger]:
        """Return those that are worth naming, the largest first."""
        least = STEP * GIB // WHOLE
        known = [one for one in self.strangers.values() if one.memory >= least]
        return sorted(known, key=lambda one: (-one.memory, one.pid))[:MOST_STRANGERS]


class Admission:
    """What is withheld of each unit, as the broker is told it."""

    def __init__(self, busy: BusyGpus | None = None) -> None:
        """Without `BusyGpus` no unit is told as busy."""
        self._busy = busy or BusyGpus()
        self.told: Withheld | None = None
        """What holds for starts; None: there was no look yet."""
        self.looked_at_s: float | None = None
        self._units: dict[str, UnitLooks] = {}
        self._named: dict[str, list[int]] = {}
        """The pids of the strangers that were told, by unit."""

    def sampled(
        self, sample: Sample, allocations: Allocations, now_s: float
    ) -> Withheld | None:
        """Note a look at the machine; return what is new, if it matters."""
        self.looked_at_s = now_s
        readings = {reading.unit: reading for reading in sample.gpus}
        self._units = {unit: self._units.get(unit) or UnitLooks() for unit in readings}
        amounts = self._amounts(sample, allocations, now_s)
        processes: dict[int, Units] = {}
        for unit, taken in amounts.items():
            for pid, amount in self._units[unit].processes(taken):
                processes.setdefault(pid, {})[unit] = amount
        faults = {
            unit: one.fault[:LONGEST_FAULT]
            for unit, one in readings.items()
            if one.fault is not None
        }
        passing = frozenset(unit for unit in faults if readings[unit].passing)
        busy = self._busy.sampled(sample.gpus, now_s)
        return self._told(amounts, (faults, passing), busy, processes)

    def _amounts(self, sample: Sample, allocations: Allocations, now_s: float) -> Units:
        """Return what lastingly is taken of each unit, and not by reservations."""
        outside = strangers(sample)
        own, used = _reserved(allocations), _used(sample)
        amounts: Units = {}
        for reading in sample.gpus:
            unit, looks = reading.unit, self._units[reading.unit]
            # Where pids cannot be named, a listed one may be a job's.
            found = [] if reading.pids_hidden else outside[unit]
            looks.seen(_named(found, sample), now_s)
            sizes = _sizes(found)
            taken = self._unreserved(
                reading, own.get(unit, {}), used.get(unit, {}), sum(sizes.values())
            )
            without = {
                pid: _amount(taken - size, reading) for pid, size in sizes.items()
            }
            look = UnitLook(now_s, _amount(taken, reading), without)
            amounts[unit] = looks.lasting(look)
        return amounts

    def _told(
        self,
        amounts: Units,
        faults: tuple[dict[str, str], frozenset[str]],
        busy: frozenset[str],
        processes: dict[int, Units],
    ) -> Withheld | None:
        named = {unit: looks.largest() for unit, looks in self._units.items()}
        pids = {unit: sorted(one.pid for one in found) for unit, found in named.items()}
        told = self.told
        same = told is not None and (told.faults, told.passing) == faults
        if told is not None and same and pids == self._named:
            known = told.units.get("vram", {})
            same = told.processes.keys() == processes.keys() and not any(
                _differ(told.processes[pid], own) for pid, own in processes.items()
            )
            if same and told.busy == busy and not _differ(known, amounts):
                return None
        self.told = Withheld(
            {"vram": amounts} if amounts else {},
            {unit: [*map(_text, found)] for unit, found in named.items() if found},
            faults[0],
            busy,
            processes,
            faults[1],
        )
        self._named = pids
        return self.told

    def _unreserved(
        self,
        reading: GpuReading,
        own: dict[str, int],
        used: dict[str, int],
        others: int,
    ) -> int:
        """Return what no job may have of a unit, in bytes."""
        jobs = sum(used.values())
        beyond = sum(max(0, size - own.get(name, 0)) for name, size in used.items())
        rest = max(0, reading.used - jobs - others)
        if reading.pids_hidden or any(one.memory is None for one in reading.processes):
            unused = sum(max(0, size - used.get(name, 0)) for name, size in own.items())
            looks = self._units[reading.unit]
            looks.before = looks.before if own else rest
            rest = max(rest - unused, min(rest, looks.before))
        return others + beyond + (rest if rest > reading.guard else 0)


def _amount(taken: int, reading: GpuReading) -> int:
    """Return bytes of a unit in amounts, rounded up."""
    return -(-min(taken, reading.memory) * WHOLE // GIB)


def _sizes(found: list[GpuProcess]) -> dict[int, int]:
    """Return what each process has; one may be listed twice."""
    sizes: dict[int, int] = {}
    for one in found:
        sizes[one.pid] = sizes.get(one.pid, 0) + (one.memory or 0)
    return sizes


def _named(found: list[GpuProcess], sample: Sample) -> Iterator[Stranger]:
    for one in found:
        name = sample.names.get(one.pid) or f"a process (pid {one.pid})"
        yield Stranger(one.pid, name, one.memory or 0, sample.at_s)


def _reserved(allocations: Allocations) -> dict[str, dict[str, int]]:
    """Return what attempts have reserved of each unit's memory, in bytes."""
    reserved: dict[str, dict[str, int]] = {}
    for name, units in allocations.items():
        for unit, amount in units.get("vram", {}).items():
            reserved.setdefault(unit, {})[name] = amount * GIB // WHOLE
    return reserved


def _used(sample: Sample) -> dict[str, dict[str, int]]:
    """Return what attempts use of each unit's memory, in bytes."""
    used: dict[str, dict[str, int]] = {}
    for name, use in sample.attempts.items():
        for unit, memory in use.gpu_memory.items():
            used.setdefault(unit, {})[name] = memory
    return used


def _differ(told: Units, amounts: Units) -> bool:
    return told.keys() != amounts.keys() or any(
        abs(amount - told[unit]) >= STEP for unit, amount in amounts.items()
    )


def _text(one: Stranger) -> str:
    return f"{one.name}: {amount_text(one.memory * WHOLE // GIB, 'vram')}"
