"""The process of the daemon that serves a home: signals to it, and its end.

A pid that was written down may be of another process by now. So a pidfd is opened, and
its process must have the home's lock open: no signal reaches another one. Nor does one
reach a command that has the lock of the daemon, as `grass restore`.
"""

from __future__ import annotations

import os
import select
import signal

from grass.client.autostart import at_work, lock_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.config import Home


class DaemonProcess:
    """A daemon, as seen from another process of its user."""

    def __init__(self, pid: int, descriptor: int) -> None:
        """`descriptor` is a pidfd, which is never closed: the command ends soon."""
        self.pid = pid
        self._descriptor = descriptor

    def send(self, number: int) -> None:
        """Send a signal, unless the process is over."""
        try:  # noqa: SIM105
            signal.pidfd_send_signal(self._descriptor, number)
        except ProcessLookupError:
            pass

    def ends_within(self, limit_s: float) -> bool:
        """Wait for the end of the process; return whether it came."""
        ended = select.poll()
        ended.register(self._descriptor, select.POLLIN)
        return bool(ended.poll(limit_s * 1000))


def daemon_of(home: Home) -> DaemonProcess | None:
    """Return the daemon of a home; None: there is none, or it cannot be identified.

    Raises `Refused` if a command has the lock of the daemon.
    """
    holder = lock_holder(home)
    if holder is None:
        return None
    pid, command = holder
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if not _has_open(pid, home.daemon_lock):
        os.close(descriptor)
        return None
    if command:
        raise at_work(pid, command)
    return DaemonProcess(pid, descriptor)


def _has_open(pid: int, path: str) -> bool:
    """Return whether a process has a file open."""
    try:
        file, names = os.stat(path), os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        try:
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), file):
                return True
        except OSError:
            """It was closed just now."""
    return False
