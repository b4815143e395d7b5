"""The keeper's two clocks."""

from __future__ import annotations

import time


def boot_s() -> float:
    """Return seconds since boot, the time the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def utc_us() -> int:
    """Return the present time in microseconds UTC."""
    return time.time_ns() // 1000
