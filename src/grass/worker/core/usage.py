"""What attempts and other processes use of a machine at one moment: values only.

All sizes are bytes. A process on a GPU that is in no attempt is a *stranger*.
"""

from typing import NamedTuple

from grass.devices.readings import GpuReading


class AttemptUse(NamedTuple):
    """What one attempt uses."""

    pids: frozenset[int]
    memory: int
    cpu_s: float
    gpu_memory: dict[str, int]
    """By unit, as far as it is known."""


class Sample(NamedTuple):
    """One look at the machine."""

    at_s: float
    """When, in seconds since boot."""
    gpus: tuple[GpuReading, ...]
    """Read before the pids of attempts, so that a new one is never a stranger."""
    attempts: dict[str, AttemptUse]
    names: dict[int, str] = {}
    """Of strangers, by pid: `python (pid 4711, alice)`."""
