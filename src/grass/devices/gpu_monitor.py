"""Watches the GPUs of this machine, through a child process that may be killed.

A vendor's library can hang, crash and grow, so the daemon never calls one. What the
child tells becomes readings of *units* (`gpu_units`). While the child does not answer,
every known unit has that as its fault. Where there is no library there is no child.

Libraries look for devices only when they are opened. So when one came, went or is lost
a second child is started; the first goes on until the second has answered.
"""

import asyncio
import os
import time
from collections.abc import Callable

import msgspec

from grass.config import user_environment
from grass.devices.child_process import ChildSilent, MonitorProcess, file_beside
from grass.devices.gpu_health import QUIET_S
from grass.devices.gpu_reports import DevicePlaces, DeviceSnapshot
from grass.devices.gpu_units import GpuUnits
from grass.devices.readings import GpuReading, GpuTopology, GpuUnit
from grass.devices.visible import chosen_units
from grass.errors import GrassError
from grass.event_log import EventLog

log = EventLog(__name__)

LIBRARY, FILE = "nvml", "libnvidia-ml.so.1"
SILENT = "its library does not answer in time"
MOST_STUCK = 3
"""How many killed children may hang in the driver before no more are started."""


class MonitorLimits(msgspec.Struct, frozen=True):
    """How long things may take; tests have less of it."""

    open_s: float = 20.0
    """Opening a library; with many GPUs that were off this takes long."""
    read_s: float = 2.0
    """Reading all GPUs."""
    first_pause_s: float = 5.0
    """Before a library is opened again; each time twice as long."""
    longest_pause_s: float = 300.0
    quiet_s: float = QUIET_S
    """After an error of a GPU."""


class GpuMonitor:
    """The GPUs of this machine, now."""

    def __init__(
        self,
        visible: str | None = None,
        patience: MonitorLimits | None = None,
        guard: int = 0,
    ) -> None:
        """`visible` restricts it to some GPUs, as CUDA_VISIBLE_DEVICES is written.

        `guard` is how many bytes of each GPU no job gets.
        """
        self._visible = visible
        self._patience = patience or MonitorLimits()
        self._units = GpuUnits(self._patience.quiet_s, guard)
        self._child: MonitorProcess | None = None
        self._opening: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._pause_s = 0.0
        self._again_s = 0.0
        self._stuck: list[MonitorProcess] = []
        self._faults: dict[str, str] = {}
        self.on_units: Callable[[], None] = lambda: None
        """Called when units or their topology have changed."""

    @property
    def child_pid(self) -> int | None:
        """Return the pid of the child that answers now."""
        return None if self._child is None else self._child.pid

    @property
    def problem(self) -> str | None:
        """Return why nothing can be told of GPUs, in words; None: it can."""
        return self._units.failure

    @property
    def unnamed(self) -> dict[str, str | None]:
        """Return the faults of GPUs that do not tell who they are, by index."""
        return self._units.unnamed

    @property
    def driver(self) -> str:
        """Return the version of the driver; empty where it was not told."""
        return self._units.driver

    async def read(self) -> tuple[GpuReading, ...]:
        """Return every unit as it is now, in bounded time; several callers share it."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
            self._reading.add_done_callback(self._read_done)
        await asyncio.shield(self._reading)
        return self.last()

    def last(self) -> tuple[GpuReading, ...]:
        """Return the readings of the last look."""
        readings = self._units.readings(time.monotonic())
        if self._visible is None:
            return readings
        managed = {unit.unit for unit in self.units()}
        return tuple(one for one in readings if one.unit in managed)

    def units(self) -> tuple[GpuUnit, ...]:
        """Return the units that are managed, those with a fault too."""
        units = self.all_units()
        if self._visible is None:
            return units
        try:
            managed = chosen_units(self._visible, units)
        except GrassError:
            # Checked at the start; since then one of them has gone.
            managed = chosen_units(self._visible, units, missing_ok=True)
        return tuple(one for one in units if one.unit in managed)

    def all_units(self) -> tuple[GpuUnit, ...]:
        """Return the units of this machine, whether managed or not."""
        return self._units.units()

    def topology(self) -> GpuTopology:
        """Return how near units are to each other, and to cores."""
        return self._units.topology()

    async def close(self) -> None:
        """End the child."""
        for task in (self._reading, self._opening):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._end_child()

    def _known(self) -> tuple[tuple[GpuUnit, ...], DevicePlaces]:
        return self.units(), self._units.places

    def _read_done(self, task: "asyncio.Task[None]") -> None:
        self._reading = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.defect(error)

    async def _read(self) -> None:
        before = self._known()
        if self._child is None:
            self._open_if_due()
            if self._opening is not None and not before[0]:
                # Nothing is known that could be told meanwhile.
                await asyncio.shield(self._opening)
        else:
            await self._ask_child(self._child)
        self._log_faults()
        if self._known() != before:
            self.on_units()

    async def _ask_child(self, child: MonitorProcess) -> None:
        """Take in what the child tells, and start another one where that is due."""
        snapshot = await _snapshot(child, self._patience.read_s)
        if snapshot is None:
            self._units.failed(SILENT)
            await self._end_child()
        elif snapshot.error is not None:
            self._units.failed(snapshot.error)
        else:
            self._units.note(snapshot, time.monotonic())
            if not snapshot.outdated and not self._units.incomplete:
                self._pause_s = 0.0
                return
        self._open_if_due()

    def _open_if_due(self) -> None:
        """Open the library in a new child, unless that was tried just now."""
        if self._opening is not None or time.monotonic() < self._again_s:
            return
        first = self._patience.first_pause_s
        self._pause_s = min(
            max(first, 2 * self._pause_s), self._patience.longest_pause_s
        )
        self._again_s = time.monotonic() + self._pause_s
        self._stuck = [child for child in self._stuck if child.alive]
        if len(self._stuck) >= MOST_STUCK:
            return
        if library_present():
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._open_done)
        elif self._child is None:
            self._units.failed("NVIDIA's library is missing")

    def _open_done(self, task: "asyncio.Task[None]") -> None:
        self._opening = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.defect(error)

    async def _open(self) -> None:
        """Replace the child by a new one, once that has answered."""
        before = self._known()
        environment = user_environment(os.environ)
        try:
            child = await MonitorProcess.start(
                file_beside("gpu_child.py"), [LIBRARY], environment
            )
        except OSError as error:
            log.warning("gpus.unreadable", error=error)
            return
        try:
            snapshot = await _snapshot(child, self._patience.open_s)
        except asyncio.CancelledError:
            await child.end()
            raise
        if snapshot is None or snapshot.error is not None:
            why = SILENT if snapshot is None else snapshot.error
            log.warning("gpus.unreadable", error=why)
            if self._child is None:
                self._units.failed(why or SILENT)
            await self._end(child)
            return
        await self._end_child()
        self._child = child
        self._units.note(snapshot, time.monotonic())
        self._again_s = time.monotonic() + self._pause_s
        if self._known() != before:
            self.on_units()

    async def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await self._end(child)

    async def _end(self, child: MonitorProcess) -> None:
        await child.end()
        if child.alive:
            self._stuck.append(child)

    def _log_faults(self) -> None:
        faults = {one.unit: one.fault for one in self.last() if one.fault}
        if faults == self._faults:
            return
        for unit in sorted(faults.keys() | self._faults.keys()):
            if faults.get(unit) == self._faults.get(unit):
                continue
            if unit in faults:
                log.warning("gpu.fault", gpu=unit, error=faults[unit])
            else:
                log.info("gpu.works", gpu=unit)
        self._faults = faults


async def _snapshot(child: MonitorProcess, limit_s: float) -> DeviceSnapshot | None:
    try:
        return msgspec.json.decode(await child.ask(limit_s), type=DeviceSnapshot)
    except (ChildSilent, msgspec.DecodeError):
        return None


def library_present() -> bool:
    """Return whether NVIDIA's library can be loaded; it is not kept loaded."""
    # Imported on use: commands that import this module need none of it.
    import _ctypes

    try:
        handle = _ctypes.dlopen(FILE, os.RTLD_LAZY)
    except OSError:
        return False
    _ctypes.dlclose(handle)
    return True
