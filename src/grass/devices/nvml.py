"""GPUs as NVIDIA's management library sees them.

Without the library, or when it fails, there are no GPUs: a machine without a driver is
not an error. NVML can hang on a sick device, so it is asked in a thread that the daemon
waits for only so long. Order and index are NVML's own, by PCI bus, which is why jobs
get `CUDA_DEVICE_ORDER=PCI_BUS_ID`.
"""

import ctypes
import threading
from typing import Any, NamedTuple

from grass.logs import EventLog

log = EventLog(__name__)

PATIENCE_S = 20.0


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
    asking = threading.Thread(target=_ask, args=(found,), name="nvml", daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    if asking.is_alive():
        log.error("nvml.timeout", seconds=PATIENCE_S)
        return []
    return found


def _library_present() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _ask(found: list[Gpu]) -> None:
    # Imported here: it costs 3 MB, which machines without a driver need not pay.
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
    """Describe one device; a sick one is left out and does not hide the others."""
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
