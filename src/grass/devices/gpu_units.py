"""The units that GPUs are, whatever happens to the GPUs: pure.

A GPU is known by its uuid and keeps the name it was given first, its index at that
time: when one is lost, the indices of those behind it change. One that is lost stays a
unit, with a fault, until it is back. MIG instances are units of their own as long as
they exist.

Of the memory that processes can have of a GPU, jobs get all but a *guard*, which is
kept free of every one.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from grass.devices.gpu_health import GpuHealth
from grass.devices.gpu_reports import (
    DevicePlaces,
    DeviceReport,
    DeviceSnapshot,
    PartReport,
)
from grass.devices.readings import (
    GpuProcess,
    GpuReading,
    GpuSide,
    GpuTopology,
    GpuUnit,
    Nearness,
)

LOST = "it is lost from the bus"
HIDDEN_S = 5.0
"""For how long memory without a process is that of one that has just ended."""
HIDDEN_BYTES = 256 << 20
"""Less memory than this may be used without a process."""
GUARD_PART = 50
"""The guard is at most this part of a small GPU: a fiftieth."""


class _Device:
    """One GPU, as it was last known."""

    def __init__(self, number: str, health: GpuHealth) -> None:
        self.number = number
        self.index = 0
        self.health = health
        self.parts: tuple[PartReport, ...] = ()
        self.fault: str | None = None
        self.silent = False
        self.missing = False
        self.unlisted_s: dict[str, float] = {}
        """Since when a part has used memory without a process."""

    def note(self, report: DeviceReport, now_s: float) -> None:
        self.health.note(report, now_s)
        self.fault, self.silent, self.missing = report.fault, report.silent, False
        self.index = report.index
        if report.fault is None:
            self.parts = report.parts
            self.unlisted_s = {
                part.uuid: self.unlisted_s.get(part.uuid, now_s)
                for part in report.parts
                if part.used > HIDDEN_BYTES and not part.processes
            }

    def unit(self, part: PartReport) -> str:
        instance = part.instance
        return self.number if instance is None else f"{self.number}.{instance}"

    def hides_pids(self, part: PartReport, now_s: float) -> bool:
        since_s = self.unlisted_s.get(part.uuid, now_s)
        return part.pids_unknown or now_s - since_s >= HIDDEN_S


class GpuUnits:
    """Every GPU that was seen, by uuid."""

    def __init__(self, quiet_s: float, guard: int = 0) -> None:
        """The guard is in bytes."""
        self._quiet_s = quiet_s
        self._guard = guard
        self._devices: dict[str, _Device] = {}
        self.places = DevicePlaces()
        """Where the devices are, as it was last told."""
        self.failure: str | None = None
        """Why the library tells nothing, in words."""
        self.driver = ""
        self.unnamed: dict[str, str | None] = {}
        """Faults of devices that do not tell who they are, by index."""

    @property
    def incomplete(self) -> bool:
        """Whether a GPU is missing or does not tell who it is: worth another look."""
        missing = any(device.missing for device in self._devices.values())
        return missing or bool(self.unnamed)

    def note(self, snapshot: DeviceSnapshot, now_s: float) -> None:
        """Take in what the library told."""
        if snapshot.error is not None:
            self.failed(snapshot.error)
            return
        self.failure, self.driver = None, snapshot.driver
        self.unnamed = {
            str(report.index): report.fault
            for report in snapshot.devices
            if not report.uuid
        }
        for report in snapshot.devices:
            if report.uuid:
                self._device(report).note(report, now_s)
        self.places = snapshot.places or self.places
        self._miss({report.uuid for report in snapshot.devices})

    def failed(self, why: str) -> None:
        """Note that the library tells nothing; all that is known has this fault."""
        self.failure = why

    def units(self) -> tuple[GpuUnit, ...]:
        """Return every unit, those with a fault too."""
        numbered = self._numbered_by_cuda()
        return tuple(
            GpuUnit(
                device.unit(part),
                part.name,
                part.uuid,
                part.memory - self._guard_of(part),
                uuid,
                device.index if numbered else None,
            )
            for uuid, device, part in self._parts()
        )

    def _numbered_by_cuda(self) -> bool:
        """Tell whether CUDA, which counts only what it can use, counts as NVML does."""
        return not self.unnamed and all(
            not device.missing
            and device.fault is None
            and [part.instance for part in device.parts] == [None]
            for device in self._devices.values()
        )

    def readings(self, now_s: float) -> tuple[GpuReading, ...]:
        """Return every unit as it is now."""
        return tuple(
            self._reading(device, part, now_s) for _, device, part in self._parts()
        )

    def topology(self) -> GpuTopology:
        """Return how near the units are to each other and to the cores."""
        told = self.places.pairs
        near = {frozenset((pair.one, pair.other)): pair.nearness for pair in told}
        known = [
            (device.unit(part), uuid, part) for uuid, device, part in self._parts()
        ]
        pairs: dict[str, dict[str, Nearness]] = {
            unit: {
                other: _nearness(near, (uuid, part), (other_uuid, rest))
                for other, other_uuid, rest in known
                if other != unit
            }
            for unit, uuid, part in known
        }
        sides = self.places.sides
        return GpuTopology(
            pairs, {unit: sides.get(uuid, GpuSide()) for unit, uuid, _ in known}
        )

    def _parts(self) -> Iterator[tuple[str, _Device, PartReport]]:
        """Yield all parts, in the order of their names."""
        by_number = sorted(self._devices.items(), key=lambda one: int(one[1].number))
        for uuid, device in by_number:
            for part in device.parts:
                yield uuid, device, part

    def _device(self, report: DeviceReport) -> _Device:
        known = self._devices.get(report.uuid)
        if known is None:
            taken = {device.number for device in self._devices.values()}
            number = report.index
            while str(number) in taken:
                number += 1
            known = _Device(str(number), GpuHealth(self._quiet_s))
            self._devices[report.uuid] = known
        return known

    def _miss(self, seen: set[str]) -> None:
        """Give those that are gone their fault."""
        for uuid, device in self._devices.items():
            if uuid not in seen:
                device.missing, device.silent = True, False
                device.fault = self.unnamed.get(device.number) or LOST

    def _guard_of(self, part: PartReport) -> int:
        return min(self._guard, part.memory // GUARD_PART)

    def _reading(self, device: _Device, part: PartReport, now_s: float) -> GpuReading:
        guard, silent = self._guard_of(part), device.fault or self.failure
        part = part if silent is None else _remembered(part)
        health = device.health.fault(now_s)
        return GpuReading(
            unit=device.unit(part),
            name=part.name,
            uuid=part.uuid,
            memory=part.memory - guard,
            used=part.used,
            utilization=part.utilization,
            temperature=part.temperature,
            power_w=part.power_w,
            power_limit_w=part.power_limit_w,
            processes=part.processes,
            fault=silent or health,
            passing=bool(silent and not health)
            and (device.silent or device.fault is None),
            guard=guard,
            pids_hidden=device.hides_pids(part, now_s),
        )


def _remembered(part: PartReport) -> PartReport:
    """Return what holds of a part that does not answer: who has its memory."""
    held = tuple(GpuProcess(one.pid, one.memory) for one in part.processes)
    return replace(
        part, utilization=None, temperature=None, power_w=None, processes=held
    )


def _nearness(
    near: dict[frozenset[str], Nearness],
    one: tuple[str, PartReport],
    other: tuple[str, PartReport],
) -> Nearness:
    """Return how near two parts are, each with the uuid of its device."""
    if one[0] == other[0]:
        return "same board"
    told = near.get(frozenset((one[0], other[0])), "far")
    divided = one[1].instance is not None or other[1].instance is not None
    # Instances have no NVLink.
    return "same cpu" if divided and told == "nvlink" else told
