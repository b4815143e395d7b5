"""Locks a state directory: one daemon at a time, on a local disk.

The lock is on the folder itself, which cannot be replaced while the database stays in
it. A second one is on `daemon.lock`, which daemons of earlier versions check. It has
the pid of its holder, and then the name of a command that is no daemon. The kernel
releases locks with the process, so a daemon that was killed leaves nothing to clean up.

Each daemon also binds an abstract socket whose name has its uid and pid, and never
reads from it. Every user sees such names in /proc/net/unix, which makes a warning about
daemons of other users possible; nothing else depends on them.
"""

import contextlib
import errno
import fcntl
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from grass.client.autostart import at_work, lock_holder
from grass.config import Home
from grass.devices.probe import boot_id
from grass.errors import GrassError, Refused
from grass.event_log import EventLog
from grass.keeper.mounts import network_mount

log = EventLog("grass.daemon")

PROBE_S = 0.1
"""How long a command may hold a lock that it only probes."""
_NAME = re.compile(r"@grass-daemon/(\d+)/(\d+)$")

_announced: list[socket.socket] = []


@contextlib.contextmanager
def locked(home: Home, command: str = "") -> Iterator[None]:
    """Hold the locks of a state directory, for a daemon or the command of a name."""
    _refuse_network_disk(home.folder)
    with contextlib.ExitStack() as locks:
        try:
            home.make()
            locks.callback(os.close, _lock(home.folder, os.O_RDONLY | os.O_DIRECTORY))
            # After the folder's lock, so that a refused daemon makes no empty file.
            lock = _lock(home.daemon_lock, os.O_RDWR | os.O_CREAT)
        except BlockingIOError:
            raise _already_locked(home) from None
        except OSError as error:
            text = f"{home.folder} cannot be used: {error.strerror}"
            raise GrassError(text) from error
        locks.callback(os.close, lock)
        _write_holder(lock, command)
        yield


def lock_name(home: Home) -> str:
    """Return what names the lock of this home among all locks there ever were."""
    folder = os.stat(home.folder)
    return f"{boot_id()}/{folder.st_dev}/{folder.st_ino}"


def restore_lock(home: Home) -> None:
    """Make `daemon.lock` anew, and hold it until the process ends."""
    _write_holder(_lock(home.daemon_lock, os.O_RDWR | os.O_CREAT), "")


def _already_locked(home: Home) -> Refused:
    pid, command = lock_holder(home) or (None, "")
    if command:
        return at_work(pid, command)
    who = "a daemon" if pid is None else f"a daemon with pid {pid}"
    return Refused(
        f"{who} already serves {home.folder}",
        "`grass stop` ends it, GRASS_HOME chooses another home",
    )


def _lock(path: str, flags: int) -> int:
    """Open and lock a path; wait a moment for a command that only probes it."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + PROBE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EAGAIN or time.monotonic() > deadline:
                os.close(descriptor)
                raise
            time.sleep(0.01)
        else:
            return descriptor


def _write_holder(lock: int, command: str) -> None:
    """Overwrite the holder of the lock, which needs no room on a full disk."""
    text = f"{os.getpid()} {command}".strip() + "\n"
    with contextlib.suppress(OSError):
        os.ftruncate(lock, os.pwrite(lock, text.encode(), 0))


def _refuse_network_disk(folder: str) -> None:
    problem = _network_disk(folder)
    if problem is not None:
        raise Refused(
            f"{folder} lies on a network file system ({problem}), where SQLite is"
            " not safe",
            "set GRASS_HOME to a folder on a local disk",
        )


def _network_disk(folder: str) -> str | None:
    try:
        mounts = Path("/proc/self/mountinfo").read_text(
            encoding="utf-8", errors="replace"
        )
    except OSError:
        return None
    return network_mount(folder, mounts)


def warn_of_other_daemons() -> None:
    """Log a warning for each daemon of another user, and be found by later ones.

    For a daemon that has started: an error of its start is one line on stderr.
    """
    for uid, pid in _other_daemons():
        log.warning(
            "daemon.other_user",
            uid=int(uid),
            pid=int(pid),
            message="the two daemons do not know of each other's jobs",
        )
    _announce()


def _other_daemons() -> list[tuple[str, str]]:
    """Return uid and pid of each daemon of another user."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            found = [_NAME.search(line.rstrip()) for line in file]
    except OSError:
        return []
    names = {(one.group(1), one.group(2)) for one in found if one}
    return sorted(name for name in names if name[0] != str(os.geteuid()))


def _announce() -> None:
    """Make this daemon visible for daemons that start later."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = f"\0grass-daemon/{os.geteuid()}/{os.getpid()}"
    try:
        mark.bind(name)
    except OSError:
        mark.close()
    else:
        _announced.append(mark)
