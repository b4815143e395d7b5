"""The least that running jobs can cost: `posix_spawn`, a pidfd, one file each.

It makes the same folders and files as a daemon does for its jobs and keeps as many
processes running as it is told, and does nothing else: no queue, nothing durable.
"""

import os
import selectors
from pathlib import Path


class BareLoop:
    """Runs one command many times, so many at a time."""

    def __init__(self, folder: Path, command: list[str], slots: int) -> None:
        """`command` starts with the path of a program."""
        self._output = folder / "output" / "default" / Path(command[0]).name
        self._command = command
        self._slots = slots
        self._environment = dict(os.environ)
        self._selector = selectors.DefaultSelector()

    def run(self, jobs: int) -> None:
        """Return when so many jobs have ended."""
        started = ended = 0
        while ended < jobs:
            while started < jobs and started - ended < self._slots:
                started += 1
                self._start(started)
            for key, _events in self._selector.select():
                self._end(key.fd)
                ended += 1
        self._selector.close()

    def _start(self, number: int) -> None:
        folder = self._output / str(number)
        os.makedirs(folder, mode=0o700)
        write = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        log = os.open(folder / "1.log", write, 0o600)
        try:
            pid = os.posix_spawn(
                self._command[0],
                self._command,
                self._environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ],
            )
        finally:
            os.close(log)
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ)

    def _end(self, pidfd: int) -> None:
        ending = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        self._selector.unregister(pidfd)
        os.close(pidfd)
        if ending is None or ending.si_status != 0:
            raise RuntimeError(f"{self._command[0]} failed in the bare loop")
