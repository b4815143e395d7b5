"""Who may use a state directory: one daemon at a time, on a disk that can be trusted.

The lock is on the folder itself, which nobody can replace while leaving the database in
it. A second one is on `daemon.lock`, which tells the pid of its holder, and which
daemons of earlier versions look at. Locks die with the process that holds them, so a
daemon that was killed leaves nothing to clean up.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from grass.config import Home
from grass.errors import GrassError, Refused
from grass.keeper.system.mounts import network_mount
from grass.logs import EventLog
from grass.neighbours import announce, other_daemons

log = EventLog("grass.daemon")

GLANCE_S = 0.1
"""For longer nobody holds a lock who does not keep it."""


@contextlib.contextmanager
def taken(home: Home) -> Iterator[None]:
    """Hold the state directory for as long as this lasts."""
    _refuse_network_disk(home.folder)
    with contextlib.ExitStack() as locks:
        try:
            home.make()
            locks.callback(os.close, _locked(home.folder, os.O_RDONLY | os.O_DIRECTORY))
            # Only now: who is refused makes no file that tells nothing.
            lock = _locked(home.daemon_lock, os.O_RDWR | os.O_CREAT)
        except BlockingIOError:
            raise _is_taken(home) from None
        except OSError as error:
            text = f"{home.folder} cannot be used: {error.strerror}"
            raise GrassError(text) from error
        locks.callback(os.close, lock)
        _sign(lock)
        _warn_of_neighbours()
        yield


def put_lock_back(home: Home) -> None:
    """Make the file anew that tells who serves here; it is held until the end."""
    _sign(_locked(home.daemon_lock, os.O_RDWR | os.O_CREAT))


def _is_taken(home: Home) -> Refused:
    first = ""
    with contextlib.suppress(OSError):
        first = Path(home.daemon_lock).read_text().strip()
    who = f"a daemon with pid {first}" if first else "a daemon"
    return Refused(
        f"{who} already serves {home.folder}",
        "`grass stop` ends it, GRASS_HOME chooses another home",
    )


def _locked(path: str, flags: int) -> int:
    """Open and lock; a command that only looks whether it is free has it a moment."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + GLANCE_S
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


def _sign(lock: int) -> None:
    """Write who holds the lock, over what is there: a full disk has room for that."""
    with contextlib.suppress(OSError):
        os.ftruncate(lock, os.pwrite(lock, f"{os.getpid()}\n".encode(), 0))


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


def _warn_of_neighbours() -> None:
    for uid, pid in other_daemons():
        log.warning(
            "daemon.other_user",
            uid=uid,
            pid=pid,
            message="the two daemons do not know of each other's jobs",
        )
    announce()
