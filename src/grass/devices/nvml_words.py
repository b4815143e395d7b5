"""NVML's numbers in words: errors, Xids of a device, and what a device needs."""

from typing import Any

XIDS = {
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

RECOVERY = {
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


def error_text(error: Any) -> str:
    """Return an error of NVML in words."""
    return _ERRORS.get(error.value) or f"NVML: {error}"
