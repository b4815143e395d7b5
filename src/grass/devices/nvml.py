"""NVIDIA's GPUs, by its management library. Only the child process imports this.

NVML is known to err: some drivers and versions of its module disagree about the list of
processes, so rows that cannot be are dropped. A function that a driver or device does
not have is asked once and then left alone.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pynvml

from grass.devices.gpu_library import LibraryError
from grass.devices.gpu_reports import (
    DevicePlaces,
    DeviceReport,
    PartReport,
)
from grass.devices.nvml_places import places_of
from grass.devices.nvml_processes import DeviceProcesses

_NEVER = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    }
)
"""Errors after which the same question is not asked again."""
_KERNELS_LIST = "/proc/driver/nvidia/gpus"
_XIDS = {
    46: "it stopped processing",
    48: "a memory error that could not be corrected",
    61: "its microcontroller failed",
    62: "its microcontroller halted",
    64: "faulty memory could not be replaced",
    74: "its NVLink failed",
    79: "it fell off the bus",
    95: "a memory error that was not contained",
    119: "its system processor does not answer",
    120: "its system processor failed",
    140: "a memory error that could not be recovered",
    143: "it could not be initialised",
}
"""Xids that are the device's own; most others are the fault of one program."""
_RESET = "needs a reset: `grass stop`, then `nvidia-smi --gpu-reset`"
_RECOVERY = {
    1: _RESET,
    2: "needs a restart of the machine",
    3: _RESET,
    4: _RESET,
    5: "needs its fabric to be restored",
    6: "needs a reset of its bus",
    7: "needs a restart of the machine",
}
"""NVML's recovery actions; 0 is none."""
_ERRORS = {
    9: "NVIDIA's driver is not loaded",
    12: "NVIDIA's library is missing",
    15: "it is lost from the bus",
    16: "it has to be reset",
    18: "NVIDIA's library and driver differ in version; restart the machine",
}


class NvmlLibrary:
    """The library, opened once in the life of a process."""

    def __init__(self) -> None:
        self._count = 0
        self._listed: list[str] = []
        self._driver = ""

    @property
    def driver(self) -> str:
        """The version of the driver."""
        return self._driver

    def open(self) -> None:
        """Open the library."""
        try:
            pynvml.nvmlInit()
            self._count = pynvml.nvmlDeviceGetCount()
            self._driver = pynvml.nvmlSystemGetDriverVersion()
        except pynvml.NVMLError as error:
            raise LibraryError(_error_text(error)) from None
        self._listed = _listed()

    def count(self) -> int:
        """Count the devices that were there when it was opened."""
        return self._count

    def changed(self) -> bool:
        """Return whether devices have come or gone since then."""
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError:
            return True
        return bool(count != self._count) or _listed() != self._listed

    def device(self, index: int) -> "NvmlDevice":
        """Open a device."""
        try:
            return NvmlDevice(index)
        except pynvml.NVMLError as error:
            raise _library_error(error) from None

    def places(self, devices: Sequence["NvmlDevice"]) -> DevicePlaces:
        """Tell where devices are."""
        return places_of([(one.uuid, one.handle) for one in devices])


class NvmlDevice:
    """One device; raises NVMLError when it cannot be opened."""

    def __init__(self, index: int) -> None:
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        self._index = index
        self._uuid: str = pynvml.nvmlDeviceGetUUID(self.handle)
        self._name: str = pynvml.nvmlDeviceGetName(self.handle)
        self._asked = _Questions()
        self._processes: dict[str, DeviceProcesses] = {}
        """Those of each part, by its uuid."""
        self._events = self._asked.answer("events", self._registered)

    @property
    def uuid(self) -> str:
        """Who it is."""
        return self._uuid

    def read(self) -> DeviceReport:
        """Report the device, or its MIG instances, as they are now."""
        try:
            # All of them first: a device that is lost says so here.
            parts = tuple(self._parts())
            return DeviceReport(
                self._index,
                self._uuid,
                parts,
                errors=tuple(self._new_errors()),
                uncorrected=self._answer("ecc", _uncorrected),
                trouble=self._answer("recovery", _recovery),
            )
        except pynvml.NVMLError as error:
            raise _library_error(error) from None

    def _parts(self) -> Iterator[PartReport]:
        mode = self._answer("mig", pynvml.nvmlDeviceGetMigMode)
        if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            yield self._part(self.handle, self._uuid, self._name, None)
            return
        for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(self.handle)):
            # Handles die when the device is divided anew, so none is kept.
            try:
                part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(self.handle, index)
                uuid = pynvml.nvmlDeviceGetUUID(part)
                name = pynvml.nvmlDeviceGetName(part)
                yield self._part(part, uuid, name, index)
            except pynvml.NVMLError as error:
                if _library_error(error).lost:
                    raise

    def _part(
        self, handle: Any, uuid: str, name: str, instance: int | None
    ) -> PartReport:
        total, memory, used = self._memory(handle)
        if uuid not in self._processes:
            self._processes[uuid] = DeviceProcesses(self._asked.answer)
        processes = self._processes[uuid].read(handle, total, used)
        rates = None
        if instance is None:
            rates = self._answer("rates", pynvml.nvmlDeviceGetUtilizationRates)
        temperature = self._answer("temperature", _temperature)
        power_mw = self._answer("power", pynvml.nvmlDeviceGetPowerUsage)
        limit_mw = self._answer("limit", pynvml.nvmlDeviceGetEnforcedPowerLimit)
        return PartReport(
            uuid,
            name,
            memory,
            used,
            instance,
            None if rates is None else rates.gpu,
            temperature,
            None if power_mw is None else power_mw / 1000,
            None if limit_mw is None else limit_mw / 1000,
            processes,
            bool(processes) and not any(_exists(one.pid) for one in processes),
        )

    def _memory(self, handle: Any) -> tuple[int, int, int]:
        """Return all there is, what processes can have of it, and what they use.

        Older drivers count what they have reserved for themselves as used.
        """
        info = self._asked.answer(
            "memory",
            lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2),
        )
        if info is not None:
            return info.total, max(0, info.total - info.reserved), info.used
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return info.total, info.total, info.used

    def _answer(self, name: str, question: Callable[[Any], Any]) -> Any:
        return self._asked.answer(name, lambda: question(self.handle))

    def _registered(self) -> Any:
        """Have the driver collect what happens to this device."""
        events = pynvml.nvmlEventSetCreate()
        kinds = pynvml.nvmlEventTypeXidCriticalError
        pynvml.nvmlDeviceRegisterEvents(self.handle, kinds, events)
        return events

    def _new_errors(self) -> Iterator[str]:
        """Return what has happened to the device, not to one program."""
        while self._events is not None:
            event = self._asked.answer(
                "wait", lambda: pynvml.nvmlEventSetWait_v2(self._events, 0)
            )
            if event is None:
                return
            if event.eventData in _XIDS:
                yield f"Xid {event.eventData}: {_XIDS[event.eventData]}"


class _Questions:
    """What is asked of one device, without what it has no answer to."""

    def __init__(self) -> None:
        self._never: set[str] = set()

    def answer(self, name: str, question: Callable[[], Any]) -> Any:
        """Return an answer, or None; only a device that is lost raises."""
        if name in self._never:
            return None
        try:
            return question()
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_GPU_IS_LOST:
                raise
            if error.value in _NEVER:
                self._never.add(name)
            return None


def _library_error(error: Any) -> LibraryError:
    lost = error.value == pynvml.NVML_ERROR_GPU_IS_LOST
    return LibraryError(_error_text(error), lost=lost)


def _uncorrected(handle: Any) -> int:
    kinds = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, *kinds))


def _temperature(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


def _recovery(handle: Any) -> str | None:
    """Return what the driver says must be done before the device can be used."""
    field = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    [value] = pynvml.nvmlDeviceGetFieldValues(handle, [field])
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return _RECOVERY.get(value.value.uiVal)


def _exists(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def _listed() -> list[str]:
    """Return the devices that the kernel's driver lists; NVML looks only once."""
    try:
        return sorted(os.listdir(_KERNELS_LIST))
    except OSError:
        return []


def _error_text(error: Any) -> str:
    """Return an error of NVML in words."""
    return _ERRORS.get(error.value) or f"NVML: {error}"
