"""Blocks that are reserved on the disk, so that a full one can be emptied again.

To forget jobs, to cancel them and to record how they ended, something has to be written
first. The blocks for that are allocated beyond the end of the files that need them, so
that no other process on a full disk can take them, as it could take those of a file
that is removed. Only a daemon that starts needs such a file: SQLite creates an index
then, and maybe a log.
"""

import contextlib
import ctypes
import errno
import os
from pathlib import Path

from grass.store.sqlite.write_ahead_log import LOG_BYTES

LOG_RESERVE_BYTES = 2 << 20
"""For one more commit, since a long log is copied before each."""
DATABASE_BYTES = 4 << 20
"""By how much the database may grow on a full disk: some ten thousand ends of jobs."""
START_BYTES = 1 << 20
LITTLE_BYTES = 1 << 20
"""With less than this left, a disk counts as full."""
ENOUGH_BYTES = 2 << 20
"""A disk counts as full until this is free beside the reserve."""

_KEEP_SIZE = 1


class Reserve:
    """The reserved blocks of one database."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._for_start = path.with_name("reserve")
        self._files: list[int] = []
        self.is_short = False
        """Whether the disk counts as full."""
        # SQLite reports a folder that cannot be used.
        with contextlib.suppress(OSError):
            self.is_short = free_bytes(self._folder) < LITTLE_BYTES
            if self.is_short:
                self._for_start.unlink(missing_ok=True)

    def open(self, path: Path) -> None:
        """Open the files of a database beside SQLite, and reserve blocks for them.

        The descriptors stay open as long as SQLite has the files: closing one releases
        all locks that the process has on the file.
        """
        for name in (path, f"{path}-wal"):
            self._files.append(os.open(name, os.O_RDWR | os.O_CLOEXEC))
        if not self.fill():
            # The log gets what the file for the start has just released.
            preallocate(self._files[1], 0, START_BYTES // 2)

    def close(self) -> None:
        """Close the files, after SQLite has; may be called twice.

        Blocks that SQLite releases when it closes are reserved for the next start.
        """
        while self._files:
            os.close(self._files.pop())
        self._fill_for_start()

    def fill(self) -> bool:
        """Reserve what is missing; return whether the disk had room for it."""
        database, log = self._files
        end = os.fstat(database).st_size
        return (
            preallocate(log, 0, LOG_BYTES + LOG_RESERVE_BYTES)
            and preallocate(database, end, DATABASE_BYTES)
            and self._fill_for_start()
        )

    def has_room(self) -> bool:
        """Look at the disk, and return whether anything may be added."""
        # A folder that is gone is not full.
        with contextlib.suppress(OSError):
            # Filled first: what is free is then counted without it.
            full = self.is_short and not self.fill()
            enough = ENOUGH_BYTES if self.is_short else LITTLE_BYTES
            self.is_short = full or free_bytes(self._folder) < enough
        return not self.is_short

    def _fill_for_start(self) -> bool:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            file = os.open(self._for_start, flags, 0o600)
            try:
                return preallocate(file, 0, START_BYTES)
            finally:
                os.close(file)
        return False


def free_bytes(folder: Path) -> int:
    """Return how much of a disk this user may still fill."""
    disk = os.statvfs(folder)
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    return blocks * disk.f_frsize


def preallocate(file: int, begin: int, size: int) -> bool:
    """Allocate blocks for a part of a file, without making it longer.

    Returns False on a full disk. A file system that cannot do it reserves nothing, and
    does not count as full.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    if libc.fallocate(file, _KEEP_SIZE, begin, size) == 0:
        return True
    return ctypes.get_errno() in (errno.EOPNOTSUPP, errno.ENOSYS)
