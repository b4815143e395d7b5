"""The processes on a device, from NVML's several lists.

Rows are read from memory here: the objects that NVML's module makes of them take more
time than all else that a look asks, and it asks for the length of a list beforehand.

With 64 processes on a GPU the driver takes 0.6 to 0.9 ms for each list and 1.4 ms for
how busy they are, and some microseconds for all else. So only the list of processes
that compute is asked for at each look. While that and the memory in use stay the same,
the rest is asked for every few seconds.
"""

import ctypes
import time
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any

import pynvml

from grass.devices.readings import GpuProcess

MOST_PIDS = 1 << 22
"""No process of Linux has a larger id."""

AskDriver = Callable[[str, Callable[[], Any]], Any]

SELDOM_S = 3.0
"""How often slow queries are made while nothing seems to have changed."""

_COMPUTE = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
)
_GRAPHICS = (
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
)
_MPS = ("nvmlDeviceGetMPSComputeRunningProcesses_v3",)
"""A process may be in all lists. Drivers before 510 have the second of each."""

_PROCESS = Struct("@IQII")
"""A process in a list: its pid, its memory, and twice the number of an instance."""
_SAMPLE = Struct("@IQ4I")
"""A sample: a pid, when it was, and the shares of time of four engines."""
_NOT_TOLD = 2**64 - 1
_TRIES = 3
"""How often a list may outgrow the room that was made for it."""

_List = list[tuple[int, ...]]


class ListReader:
    """Asks for lists of one device; the memory for the rows is kept."""

    def __init__(self, row: Struct) -> None:
        self._row = row
        self._room = 0
        self._buffer = ctypes.create_string_buffer(0)

    def read(self, call: Callable[[Any, Any], int]) -> _List:
        """Return all rows of a call, which gets a buffer and its length in rows."""
        count = ctypes.c_uint(self._room)
        result = call(self._buffer, ctypes.byref(count))
        for _ in range(_TRIES):
            if result != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                break
            # With room for those that come meanwhile.
            self._room = count.value = 2 * count.value + 8
            self._buffer = ctypes.create_string_buffer(self._room * self._row.size)
            result = call(self._buffer, ctypes.byref(count))
        if result != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(result)
        used = memoryview(self._buffer)[: count.value * self._row.size]
        return list(self._row.iter_unpack(used))


class DeviceProcesses:
    """The processes of one device, or of one MIG instance."""

    def __init__(
        self, answer: AskDriver, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._answer = answer
        self._clock = clock
        self._lists, self._samples = ListReader(_PROCESS), ListReader(_SAMPLE)
        self._seen_us = 0
        """The time of the last sample, by the driver's clock."""
        self._known: tuple[int, _List] | None = None
        """The memory in use, and who computes, when the rest was last asked for."""
        self._again_s = 0.0
        self._others: _List = []
        self._shares: dict[int, int] = {}

    def read(self, handle: Any, total: int, used: int) -> tuple[GpuProcess, ...]:
        """Return every process once; so much memory is there, and in use, in all."""
        computing, now_s = self._list(handle, _COMPUTE), self._clock()
        if (used, computing) != self._known or now_s >= self._again_s:
            self._known, self._again_s = (used, computing), now_s + SELDOM_S
            self._others = self._list(handle, _GRAPHICS) + self._list(handle, _MPS)
            self._shares = self._busy(handle) if computing or self._others else {}
        memory: dict[int, int | None] = {}
        for pid, size, *_ in computing + self._others:
            told = None if size == _NOT_TOLD else size
            if _is_possible(pid, told, total):
                known = memory.get(pid)
                memory[pid] = told if known is None else max(known, told or 0)
        return tuple(
            GpuProcess(pid, memory[pid], self._shares.get(pid))
            for pid in sorted(memory)
        )

    def _list(self, handle: Any, names: tuple[str, ...]) -> _List:
        """Return a list by the first of these functions that the driver has."""
        for name in names:
            rows: _List | None
            rows = self._answer(name, partial(self._listed, name, handle))
            if rows is not None:
                return rows
        return []

    def _listed(self, name: str, handle: Any) -> _List:
        function = _function(name)
        return self._lists.read(lambda rows, count: function(handle, count, rows))

    def _busy(self, handle: Any) -> dict[int, int]:
        """Return the mean share of time for each process, since the last time."""
        since_us, shares = self._seen_us, dict[int, list[int]]()
        for pid, at_us, share, *_ in (
            self._answer("busy", partial(self._sampled, handle)) or ()
        ):
            if 0 <= share <= 100 and at_us > since_us:
                shares.setdefault(pid, []).append(share)
            self._seen_us = max(self._seen_us, at_us)
        return {pid: sum(each) // len(each) for pid, each in shares.items()}

    def _sampled(self, handle: Any) -> _List:
        function = _function("nvmlDeviceGetProcessUtilization")
        since_us = ctypes.c_ulonglong(self._seen_us)
        return self._samples.read(
            lambda rows, count: function(handle, rows, count, since_us)
        )


def _function(name: str) -> Callable[..., int]:
    try:
        found: Callable[..., int] = getattr(pynvml.nvmlLib, name)
    except AttributeError:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND) from None
    return found


def _is_possible(pid: int, memory: int | None, total: int) -> bool:
    return 0 < pid <= MOST_PIDS and (memory or 0) <= total
