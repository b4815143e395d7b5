"""The GPUs of a simulated machine: jobs that use what they like, and strangers.

What happens here is drawn from a source of its own, so that machines without GPUs have
the same history with and without this.
"""

from random import Random
from typing import cast

from grass.devices.readings import GpuProcess, GpuReading
from grass.keeper.protocol import Notes
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.resources import Units
from grass.worker.core.usage.samples import AttemptUse, Sample
from tests.simulation.processes import Process, Processes
from tests.simulation.world import MILLISECOND, SECOND, Host

PARTS = (0.0, 0.3, 1.0, 1.0, 1.4)
"""What a job uses of what it has reserved."""
MEMORY = {"small": (3, 0.0), "large": (17, 0.0), "grows": (2, 1.5)}
"""What jobs of a type use in GiB when they have begun, and more with each second."""
BEGINS_S = 2.0
"""So long it takes until a job of a type uses it."""
FIRST_STRANGER = 1_000_000
"""The pid of the first stranger; no job has one as large."""
MOST_STRANGERS = 3
LOST = "lost from the bus"
"""The fault of a device that is lost."""


class SimGpus:
    """The devices, and everything on them."""

    def __init__(self, host: Host, sizes: Units, processes: Processes) -> None:
        self.sizes = sizes
        """The memory of each, in amounts."""
        self.faulty: set[str] = set()
        self._rng = Random(f"gpus {host.world.seed} {host.name}")
        self._host = host
        self._processes = processes
        self._strangers: dict[str, dict[int, int]] = {unit: {} for unit in sizes}
        self._parts: dict[str, float] = {}
        self._first_seen: dict[str, float] = {}
        self._pids = FIRST_STRANGER
        self._quiet = False
        if sizes:
            self._plan()

    def heal(self) -> None:
        """Have every stranger leave, and none come."""
        self._quiet = True
        self.faulty.clear()
        for there in self._strangers.values():
            there.clear()
        self._parts = dict.fromkeys(self._parts, 1.0)

    def delay_us(self) -> int:
        """Draw how long a look takes."""
        return self._rng.randint(MILLISECOND, 80 * MILLISECOND)

    def look(self, at_s: float) -> Sample:
        """Tell who is on the devices."""
        living = [one for one in self._processes.living() if one.main is None]
        uses = {one.attempt: self._use(one, at_s) for one in living if one.runs}
        return Sample(at_s, tuple(self._read(unit, uses) for unit in self.sizes), uses)

    def _use(self, process: Process, at_s: float) -> AttemptUse:
        most = 1.0 if self._quiet else self._rng.choice(PARTS)
        part = self._parts.setdefault(process.attempt, most)
        reserved = cast("Notes", process.start.meta).allocation.get("vram", {})
        used = {u: int(amount * part) * GIB // WHOLE for u, amount in reserved.items()}
        job_type = process.start.env.get("JOB_TYPE")
        if job_type is not None:
            ran_s = at_s - self._first_seen.setdefault(process.attempt, at_s)
            used = dict.fromkeys(reserved, _typical(job_type, ran_s))
        return AttemptUse(frozenset([process.pid]), 0, 0.0, used)

    def _read(self, unit: str, uses: dict[str, AttemptUse]) -> GpuReading:
        on = dict(self._strangers[unit])
        for use in uses.values():
            on |= {pid: use.gpu_memory.get(unit, 0) for pid in use.pids}
        listed = tuple(GpuProcess(pid, memory) for pid, memory in on.items() if memory)
        fault = LOST if unit in self.faulty else None
        size = self.sizes[unit] * GIB // WHOLE
        used = min(size, sum(on.values()))
        numbers = (None, None, None, None)
        return GpuReading(unit, "A", "u", size, used, *numbers, listed, fault)

    def _plan(self) -> None:
        pause = self._rng.randint(100 * MILLISECOND, 3 * SECOND)
        self._host.after(pause, "devices change", self._change, quiet=True)

    def _change(self) -> None:
        if self._quiet:
            return
        unit = self._rng.choice(sorted(self.sizes))
        there, chance = self._strangers[unit], self._rng.random()
        if chance < 0.1:
            self.faulty ^= {unit}
        elif chance < 0.5 and len(there) < MOST_STRANGERS:
            self._pids += 1
            there[self._pids] = self._rng.randint(1, self.sizes[unit]) * GIB // WHOLE
        elif there:
            del there[self._rng.choice(sorted(there))]
        self._plan()


def _typical(job_type: str, ran_s: float) -> int:
    """Return what a job of a type uses after so long, in bytes."""
    begins, grows = MEMORY[job_type]
    return int((begins * min(1.0, ran_s / BEGINS_S) + grows * ran_s) * GIB)
