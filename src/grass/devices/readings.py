"""What is told of GPUs: values only, the same for every vendor.

A *reading* is one GPU, or one MIG instance of it, at one moment. All sizes are bytes.
What a library does not tell is None, never a guess. A GPU that cannot be used has its
fault in words. If it does not answer, its memory and processes are the last that were
known, and nothing else is told.
"""

from typing import Literal

import msgspec

Nearness = Literal["nvlink", "same board", "same switch", "same cpu", "far"]

NEAREST_FIRST: tuple[Nearness, ...] = (
    "nvlink",
    "same board",
    "same switch",
    "same cpu",
    "far",
)


class GpuProcess(msgspec.Struct, frozen=True, omit_defaults=True):
    """One process on a GPU."""

    pid: int
    memory: int | None
    """What it holds there; None: not told."""
    utilization: int | None = None
    """How busy it kept the GPU in the last seconds, in percent; None: not told.

    Under MPS it is told of the server alone.
    """


class GpuReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """One GPU or MIG instance at one moment."""

    unit: str
    """The scheduler's name: `0`, or `0.1` for instance 1 of GPU 0."""
    name: str
    uuid: str
    memory: int
    """What jobs can have: without the driver's part, and without the guard."""
    used: int
    """What processes use."""
    utilization: int | None
    temperature: int | None
    power_w: float | None
    power_limit_w: float | None
    processes: tuple[GpuProcess, ...]
    """Every process once, by pid."""
    fault: str | None
    """Why nothing can run there, in words; None while it works."""
    passing: bool = False
    """Whether the fault is only that it, or its library, does not answer now."""
    guard: int = 0
    """What is kept free beside `memory`."""
    pids_hidden: bool = False
    """Whether its processes cannot be named from here.

    So it is in a container without the pids of the host: none of the listed ones
    exists here, or memory is used and no process is listed.
    """


class GpuSide(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in the machine a unit is."""

    numa_node: int | None = None
    cores: tuple[int, ...] = ()
    """The cores near it; none: not told."""


class GpuTopology(msgspec.Struct, frozen=True, omit_defaults=True):
    """How near the units of a machine are to each other and to its cores."""

    pairs: dict[str, dict[str, Nearness]] = {}
    """For each unit all others; the same both ways."""
    sides: dict[str, GpuSide] = {}

    def nearness(self, one: str, other: str) -> Nearness:
        """Return how near two units are; unknown ones are far."""
        return self.pairs.get(one, {}).get(other, "far")


class GpuUnit(msgspec.Struct, frozen=True):
    """A GPU or MIG instance that jobs can be given."""

    unit: str
    name: str
    uuid: str
    memory: int
    """What jobs can have."""
    device: str
    """The uuid of the GPU that it is, or is a part of."""
    index: int | None = None
    """CUDA's number for it; None: only its uuid is sure to mean it."""
