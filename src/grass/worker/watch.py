"""A second pair of eyes on running processes, should the keeper be killed.

For every running attempt the worker holds a pidfd. It costs a descriptor and is never
polled. Only when a new keeper says that an exit code went with its predecessor is it
asked: kernels from 6.15 on tell the exit status to whoever holds a pidfd.
"""

import os
import resource

from grass.keeper import pidfd


class Watch:
    """Descriptors of running processes, by attempt."""

    def __init__(self) -> None:
        """Watch nothing yet, and make room for many descriptors."""
        self._descriptors: dict[str, int] = {}
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def add(self, attempt: str, pid: int, ticks: int) -> None:
        """Hold on to a process; one that is gone already is not held."""
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
        for attempt in list(self._descriptors):
            self.drop(attempt)
