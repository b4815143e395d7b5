"""The worker's own pidfds of running processes, in case the keeper is killed.

A pidfd costs a descriptor and is never polled. It is used only when a new keeper
reports that an exit code was lost with its predecessor: kernels from 6.15 on return the
exit status through any pidfd. Opening one costs as much as the rest of a start, so it
is done for attempts that run for a while, and for all others when the keeper is lost.
"""

import asyncio
import os
import resource

from grass.keeper import pidfd

SHORT_LIFE_S = 0.5


class ExitWatch:
    """Descriptors of running processes, by attempt."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self._young: dict[str, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def add(self, attempt: str, pid: int, ticks: int) -> None:
        """Open a process, if it runs for a while."""
        self._young[attempt] = (pid, ticks)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SHORT_LIFE_S, self.open_all)

    def open_all(self) -> None:
        """Open every process that still exists."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for attempt, (pid, ticks) in self._young.items():
            self._open(attempt, pid, ticks)
        self._young.clear()

    def _open(self, attempt: str, pid: int, ticks: int) -> None:
        if attempt in self._descriptors:
            return
        try:
            descriptor = pidfd.open_checked(pid, ticks)
        except OSError:
            return
        if descriptor is not None:
            self._descriptors[attempt] = descriptor

    def drop(self, attempt: str) -> None:
        """Close a process whose end is known."""
        self._young.pop(attempt, None)
        descriptor = self._descriptors.pop(attempt, None)
        if descriptor is not None:
            os.close(descriptor)

    def status(self, attempt: str) -> int | None:
        """Return the wait status of a process that has ended, if the kernel tells."""
        descriptor = self._descriptors.get(attempt)
        if descriptor is None:
            return None
        try:
            return pidfd.exit_status(descriptor)
        except (OSError, pidfd.NotReaped):
            return None

    def close(self) -> None:
        """Close all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for attempt in list(self._descriptors):
            self.drop(attempt)
