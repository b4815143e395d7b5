"""Which GPUs the CUDA driver of this process sees, if it has started.

The driver reads `CUDA_VISIBLE_DEVICES` once, when it starts. After that no variable
changes what `cuda:0` is, so an allocation of another GPU would be a promise that is not
kept. The driver is asked itself, whichever framework started it; where it is not
loaded nothing is loaded.
"""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctypes import CDLL

LIBRARY = "libcuda.so.1"
_SUCCESS = 0


def visible_gpus() -> list[str] | None:
    """Return the UUIDs of the GPUs that CUDA sees, in its order; None: not started.

    They are without the `GPU-` or `MIG-` that NVML writes before them.
    """
    import ctypes

    try:
        driver = ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
    count = ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)) != _SUCCESS:
        return None
    return [_uuid(driver, number) for number in range(count.value)]


def free_cached_memory() -> None:
    """Have torch free what it keeps for later, if this process uses it.

    Otherwise that is memory of a stranger, for which others wait, and this process too
    when it asks for its GPU again.
    """
    import sys

    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    # What another library does is no reason to fail: units are given back in any case.
    with contextlib.suppress(Exception):
        if cuda is not None and cuda.is_initialized():
            cuda.empty_cache()


def _uuid(driver: CDLL, number: int) -> str:
    """Return the UUID of a GPU, or of a part of one; empty: it is not told."""
    import ctypes

    device, raw = ctypes.c_int(), ctypes.create_string_buffer(16)
    if driver.cuDeviceGet(ctypes.byref(device), number) != _SUCCESS:
        return ""
    ask = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid
    if ask(raw, device) != _SUCCESS:
        return ""
    text = raw.raw.hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return "-".join(parts)
