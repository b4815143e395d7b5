"""A second pair of eyes on running processes, should the keeper be killed.

For running attempts the worker holds a pidfd, which costs a descriptor and is never
polled. Only when a new keeper says that an exit code went with its predecessor is it
asked: kernels from 6.15 on tell the exit status to whoever holds a pidfd. Opening one
costs as much as the rest of a start, so it is done for attempts that live for a while,
and for all the others at once in the moment the keeper is lost.
"""

import asyncio
import os
import resource

from grass.keeper.system import pidfd

SHORT_LIFE_S = 0.5


class Watch:
    """Descriptors of running processes, by attempt."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self._young: dict[str, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def add(self, attempt: str, pid: int, ticks: int) -> None:
        """Hold on to a process, if it lives for a while."""
        self._young[attempt] = (pid, ticks)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SHORT_LIFE_S, self.hold_all)

    def hold_all(self) -> None:
        """Hold on to every process that is still there."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for attempt, (pid, ticks) in self._young.items():
            self._hold(attempt, pid, ticks)
        self._young.clear()

    def _hold(self, attempt: str, pid: int, ticks: int) -> None:
        if attempt in self._descriptors:
            return
        try:
            descriptor = pidfd.open_checked(pid, ticks)
        except OSError:
            return
        if descriptor is not None:
            self._descriptors[attempt] = descriptor

    def drop(self, attempt: str) -> None:
        """Let go of a process whose end is known."""
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
        """Let go of everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for attempt in list(self._descriptors):
            self.drop(attempt)
