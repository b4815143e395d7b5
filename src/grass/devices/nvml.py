"""GPUs as NVIDIA's management library sees them.

Without the library, or when it fails, there are no GPUs: a machine without a driver is
not an error. NVML can hang on a sick device, so it is asked in a thread that the daemon
waits for only so long. Order and index are NVML's own, by PCI bus, which is why jobs
get `CUDA_DEVICE_ORDER=PCI_BUS_ID`.
"""

import ctypes
import logging
import threading
from typing import NamedTuple

log = logging.getLogger(__name__)

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
        log.error("NVML does not answer; going on without GPUs")
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
            count = pynvml.nvmlDeviceGetCount()
            found.extend(_gpu(pynvml, index) for index in range(count))
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        found.clear()
        log.warning("NVML failed, going on without GPUs: %s", error)


def _gpu(pynvml: object, index: int) -> Gpu:
    nvml = pynvml
    handle = nvml.nvmlDeviceGetHandleByIndex(index)  # type: ignore[attr-defined]
    name = nvml.nvmlDeviceGetName(handle)  # type: ignore[attr-defined]
    uuid = nvml.nvmlDeviceGetUUID(handle)  # type: ignore[attr-defined]
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)  # type: ignore[attr-defined]
    return Gpu(str(index), _text(name), _text(uuid), int(memory.total))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
