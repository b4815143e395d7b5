"""Who may use a state directory: one daemon at a time, on a disk that can be trusted.

The lock dies with the process that holds it, so a daemon that was killed leaves nothing
to clean up.
"""

import contextlib
import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from grass.config import Home
from grass.errors import GrassError, Refused
from grass.keeper.mounts import network_mount
from grass.neighbours import announce, other_daemons

log = logging.getLogger("grass.daemon")


@contextlib.contextmanager
def taken(home: Home) -> Iterator[None]:
    """Hold the state directory for as long as this lasts."""
    lock = _take(home)
    try:
        yield
    finally:
        os.close(lock)


def _take(home: Home) -> int:
    """Make the state directory ours, or say who has it."""
    problem = _network_disk(home.folder)
    if problem is not None:
        raise Refused(
            f"{home.folder} lies on a network file system ({problem}), where SQLite is"
            " not safe",
            "set GRASS_HOME to a folder on a local disk",
        )
    try:
        home.make()
        lock = os.open(home.daemon_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise GrassError(f"{home.folder} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        first = os.read(lock, 32).decode(errors="replace").strip()
        os.close(lock)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise GrassError(f"{home.daemon_lock}: {error.strerror}") from error
        raise Refused(
            f"a daemon with pid {first} already serves {home.folder}",
            "`grass stop` ends it, GRASS_HOME chooses another home",
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    _warn_of_neighbours()
    return lock


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
            "user %s runs a grass daemon on this machine too (pid %s): the two do not"
            " know of each other's jobs",
            uid,
            pid,
        )
    announce()
