"""What a machine has: CPU cores, memory, and GPUs as NVML sees them.

Without NVML, or when it fails, there are no GPUs: a machine without a driver is not an
error. NVML can hang on a faulty device, so it is called in a thread with a time limit.
Order and index are NVML's own, by PCI bus, which is why jobs get
`CUDA_DEVICE_ORDER=PCI_BUS_ID`.
"""

import ctypes
import os
import threading
from typing import Any, NamedTuple

from grass.event_log import EventLog
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB, amount_of_bytes
from grass.model.worker import FoundUnits, Unit

log = EventLog(__name__)

NVML_TIMEOUT_S = 20.0


def found_units() -> FoundUnits:
    """Return every unit this machine has: `cpu`, `ram`, and with NVML `gpu`, `vram`."""
    cores = sorted(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found: FoundUnits = {
        "cpu": {str(core): Unit(WHOLE) for core in cores},
        "ram": {"0": Unit(amount_of_bytes(memory), {"bytes": memory})},
    }
    devices = gpus()
    if devices:
        found["gpu"] = {
            device.number: Unit(
                WHOLE,
                {
                    "name": device.name,
                    "uuid": device.uuid,
                    "memory_gib": device.memory // GIB,
                },
            )
            for device in devices
        }
        found["vram"] = {
            device.number: Unit(amount_of_bytes(device.memory)) for device in devices
        }
    return found


def boot_id() -> str:
    """Return the kernel's boot id; attempts of another boot cannot be alive."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class Gpu(NamedTuple):
    """One GPU."""

    number: str
    name: str
    uuid: str
    memory: int


def gpus() -> list[Gpu]:
    """Return the GPUs of this machine, or none."""
    if not _library_present():
        return []
    found: list[Gpu] = []
    thread = threading.Thread(target=_ask, args=(found,), name="nvml", daemon=True)
    thread.start()
    thread.join(NVML_TIMEOUT_S)
    if thread.is_alive():
        log.error("nvml.timeout", seconds=NVML_TIMEOUT_S)
        return []
    return found


def _library_present() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _ask(found: list[Gpu]) -> None:
    # Imported on use: it costs 3 MB, which a machine without a driver can save.
    import pynvml

    try:
        pynvml.nvmlInit()
        try:
            for index in range(pynvml.nvmlDeviceGetCount()):
                found.extend(_gpus_at(pynvml, index))
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        log.warning("nvml.failed", gpus=len(found), error=error)


def _gpus_at(nvml: Any, index: int) -> list[Gpu]:  # noqa: ANN401 -- an untyped module
    """Describe one device; a faulty one is left out."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name = _text(nvml.nvmlDeviceGetName(handle))
        uuid = _text(nvml.nvmlDeviceGetUUID(handle))
        memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError as error:
        log.warning("nvml.gpu_failed", gpu=index, error=error)
        return []
    return [Gpu(str(index), name, uuid, memory)]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
