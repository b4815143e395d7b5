"""What the child process tells of GPUs: one snapshot for each time it is asked.

A device is told by the library's index, which may change when another one is lost; who
it is is its uuid. A *part* is what can be given to a job: the device itself, or each of
its MIG instances. These values travel as JSON, a line each.
"""

import msgspec

from grass.devices.readings import GpuProcess, GpuSide, Nearness


class PartReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device, or one MIG instance of it, as the library tells it."""

    uuid: str
    name: str
    memory: int
    """What processes can have: without the part that the driver reserves."""
    used: int
    instance: int | None = None
    """The index of the MIG instance; None: the whole device."""
    utilization: int | None = None
    temperature: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    processes: tuple[GpuProcess, ...] = ()
    pids_unknown: bool = False
    """Whether processes are listed, and none of them exists here."""


class DeviceReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device."""

    index: int
    uuid: str = ""
    """Empty where the device does not even tell that."""
    parts: tuple[PartReport, ...] = ()
    """None where it has a fault, or is divided and has no instance yet."""
    fault: str | None = None
    silent: bool = False
    """Whether its fault is only that it does not answer in time."""
    errors: tuple[str, ...] = ()
    """What has happened to it since the last report, in words."""
    uncorrected: int | None = None
    """How many memory errors could not be corrected since its last reset."""
    trouble: str | None = None
    """What it needs before it can be used again, in words."""


class DevicePair(msgspec.Struct, frozen=True, array_like=True):
    """How near two devices are."""

    one: str
    other: str
    nearness: Nearness


class DevicePlaces(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where devices are, by uuid."""

    pairs: tuple[DevicePair, ...] = ()
    sides: dict[str, GpuSide] = {}


class DeviceSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """All devices at one moment."""

    devices: tuple[DeviceReport, ...] = ()
    error: str | None = None
    """Why the library tells nothing, in words."""
    outdated: bool = False
    """Whether the library has to be opened anew to see what there is now."""
    places: DevicePlaces | None = None
    """Told once, when all devices were open."""
    driver: str = ""
    """The version of the driver."""
