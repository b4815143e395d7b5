"""Reads how the output of a failed attempt ends, before its exit is told.

The file may lie on a disk that hangs, so a thread reads it, and after a while the exit
is told without it.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from grass.keeper.protocol import ExitEntry
from grass.worker.core.failure_messages import TAIL

PATIENCE_S = 2.0
"""An exit waits this long for the end of its output."""
MOST_AT_ONCE = 1000
"""How many exits wait at a time; further ones are reported without it.

All clients of MPS on a GPU, 48 at most, end at once after a fault.
"""

CreateTask = Callable[[Coroutine[Any, Any, None]], object]
"""A task group's `create_task`."""


class OutputEnds:
    """Reads the ends of files, for exits that wait for them."""

    def __init__(
        self, tell: Callable[[ExitEntry, bytes], None], create_task: CreateTask
    ) -> None:
        """`tell` is called once for each exit, with what was read."""
        self._tell = tell
        self._create_task = create_task
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="output-ends")
        self._reading = 0

    def read(self, entry: ExitEntry, files: list[str]) -> None:
        """Begin to read what an exit waits for."""
        if self._reading >= MOST_AT_ONCE:
            self._tell(entry, b"")
        else:
            self._reading += 1
            self._create_task(self._read(entry, files))

    async def _read(self, entry: ExitEntry, files: list[str]) -> None:
        loop = asyncio.get_running_loop()
        reading = loop.run_in_executor(self._threads, ends_of, files)
        found = b""
        with suppress(TimeoutError):
            found = await asyncio.wait_for(reading, PATIENCE_S)
        self._reading -= 1
        self._tell(entry, found)

    def close(self) -> None:
        """Read nothing any more; a thread that hangs is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def ends_of(files: list[str]) -> bytes:
    """Return the last part of each file."""
    return b"\n".join(map(file_end, files))


def file_end(path: str) -> bytes:
    """Return the last part of a file; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            return os.pread(descriptor, TAIL, max(0, size - TAIL))
        finally:
            os.close(descriptor)
    except OSError:
        return b""
