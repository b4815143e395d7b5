"""One look at the GPUs of this machine, for a command that has no daemon to ask."""

import asyncio
import logging
from typing import NamedTuple

from grass.devices.gpu_monitor import GpuMonitor
from grass.devices.readings import GpuReading, GpuUnit


class GpuLook(NamedTuple):
    """What the look has told."""

    units: tuple[GpuUnit, ...]
    readings: tuple[GpuReading, ...]
    problem: str | None
    """Why nothing can be told of GPUs, in words; None: it can."""
    driver: str
    unnamed: dict[str, str | None]
    """Faults of GPUs that do not tell who they are, by index."""


def look(visible: str | None = None) -> GpuLook:
    """Look at GPUs, in bounded time: all, or those that `GpuMonitor` is to manage."""
    # What the monitor of a daemon would log is in what is returned.
    logging.getLogger("grass.devices").addHandler(logging.NullHandler())
    return asyncio.run(_look(visible))


async def _look(visible: str | None) -> GpuLook:
    monitor = GpuMonitor(visible)
    try:
        readings = await monitor.read()
        return GpuLook(
            monitor.units(), readings, monitor.problem, monitor.driver, monitor.unnamed
        )
    finally:
        await monitor.close()
