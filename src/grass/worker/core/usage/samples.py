"""What attempts and other processes use of a machine at one moment: values only.

All sizes are bytes. A process on a GPU that is in no attempt is a *stranger*.
"""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from grass.devices.readings import GpuProcess, GpuReading


class RunningAttempt(NamedTuple):
    """An attempt whose program runs, as its processes are looked for."""

    pid: int
    ticks: int
    """When it started, as the kernel counts."""
    age_s: float


class ProcessUse(NamedTuple):
    """What the processes of one attempt use together."""

    pids: frozenset[int]
    memory: int
    cpu_s: float
    """Processor time since its start."""


class AttemptUse(msgspec.Struct, frozen=True):
    """What one attempt uses."""

    pids: frozenset[int]
    memory: int
    cpu_s: float
    """Processor time since its start."""
    gpu_memory: dict[str, int]
    """By unit, as far as it is known."""
    gpu_utilization: dict[str, float] = {}
    """In percent, by unit, as far as it is known."""
    note: str = ""
    """How it was measured, where that is worth a word."""


class Sample(NamedTuple):
    """One look at the machine."""

    at_s: float
    """When, in seconds since boot."""
    gpus: tuple[GpuReading, ...]
    """Read before the pids of attempts, so that a new one is never a stranger.

    They are without those processes of attempts that have ended meanwhile.
    """
    attempts: dict[str, AttemptUse]
    names: dict[int, str] = {}  # noqa: RUF012 -- never changed
    """Of strangers, by pid: `python (pid 4711, alice)`."""


def without(gpus: tuple[GpuReading, ...], ended: set[int]) -> tuple[GpuReading, ...]:
    """Return GPUs as they are without these processes and what they held."""
    return tuple(_without(one, ended) for one in gpus) if ended else gpus


def _without(reading: GpuReading, ended: set[int]) -> GpuReading:
    held = sum(one.memory or 0 for one in reading.processes if one.pid in ended)
    left = tuple(one for one in reading.processes if one.pid not in ended)
    return replace(reading, processes=left, used=max(0, reading.used - held))


def strangers(sample: Sample) -> dict[str, list[GpuProcess]]:
    """Return for each unit the processes on it that belong to no attempt."""
    own = frozenset[int]().union(*(one.pids for one in sample.attempts.values()))
    return {
        reading.unit: [one for one in reading.processes if one.pid not in own]
        for reading in sample.gpus
    }
