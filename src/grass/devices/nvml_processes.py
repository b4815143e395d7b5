"""The processes on a device, from NVML's several lists."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pynvml

from grass.devices.readings import GpuProcess

MOST_PIDS = 1 << 22
"""No process of Linux has a larger id."""

Answer = Callable[[str, Callable[[], Any]], Any]

_LISTS = {
    "compute": (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2",
    ),
    "graphics": (
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v2",
    ),
    "mps": ("nvmlDeviceGetMPSComputeRunningProcesses_v3",),
}
"""A process may be in all of them. Drivers before 510 have the second of each."""


def processes_on(
    handle: Any, total: int, seen_us: int, answer: Answer
) -> tuple[tuple[GpuProcess, ...], int]:
    """Return every process of a device once, and the time of the newest sample."""
    memory: dict[int, int | None] = {}
    for row in _rows(handle, answer):
        if _is_possible(row, total):
            known, told = memory.get(row.pid), row.usedGpuMemory
            memory[row.pid] = told if known is None else max(known, told or 0)
    if not memory:
        return (), seen_us
    busy, seen_us = _busy(handle, seen_us, answer)
    found = (GpuProcess(pid, memory[pid], busy.get(pid)) for pid in sorted(memory))
    return tuple(found), seen_us


def _rows(handle: Any, answer: Answer) -> Iterator[Any]:
    for names in _LISTS.values():
        for name in names:
            rows = answer(name, partial(getattr(pynvml, name), handle))
            if rows is not None:
                yield from rows
                break


def _is_possible(row: Any, total: int) -> bool:
    return 0 < row.pid <= MOST_PIDS and (row.usedGpuMemory or 0) <= total


def _busy(handle: Any, seen_us: int, answer: Answer) -> tuple[dict[int, int], int]:
    """Return the mean share of time for each process, from samples since then."""
    samples = answer(
        "busy", lambda: pynvml.nvmlDeviceGetProcessUtilization(handle, seen_us)
    )
    shares: dict[int, list[int]] = {}
    for sample in samples or ():
        if 0 <= sample.smUtil <= 100 and sample.timeStamp > seen_us:
            shares.setdefault(sample.pid, []).append(sample.smUtil)
    newest = max((sample.timeStamp for sample in samples or ()), default=seen_us)
    return {pid: sum(each) // len(each) for pid, each in shares.items()}, newest
