"""Room that is kept back on the disk, so that a full one can be made less full.

To forget jobs, to cancel them and to note how they ended, something has to be written
first. The room for that lies beyond the end of the very files that need it, where the
kernel keeps it for them: nobody else on a full disk can take it, as they could take
what another file gives up. Only a daemon that starts needs such a file, since SQLite
makes an index and maybe a log anew.
"""

import contextlib
import ctypes
import errno
import os
from pathlib import Path

from grass.store.sqlite.write_ahead_log import LOG_BYTES

LOG_RESERVE_BYTES = 2 << 20
"""A log that is long is copied before each commit: so much is for one of them."""
DATABASE_BYTES = 4 << 20
"""By so much the database may grow on a full disk: some ten thousand ends of jobs."""
START_BYTES = 1 << 20
LITTLE_BYTES = 1 << 20
"""With less than this left, a disk counts as full."""
ENOUGH_BYTES = 2 << 20
"""A full disk has room again when this is free beside what is kept back."""

_KEEP_SIZE = 1


class Reserve:
    """What is kept back for one database."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._for_start = path.with_name("reserve")
        self._files: list[int] = []
        self.is_short = False
        """Whether the disk counts as full."""
        # A folder that cannot be used is for SQLite to tell of.
        with contextlib.suppress(OSError):
            self.is_short = free_bytes(self._folder) < LITTLE_BYTES
            if self.is_short:
                self._for_start.unlink(missing_ok=True)

    def open(self, path: Path) -> None:
        """Hold on to a database that was opened, and keep what can be kept.

        The descriptor stays open as long as SQLite has the file: closing any of a
        process takes the locks of all others away.
        """
        for name in (path, f"{path}-wal"):
            self._files.append(os.open(name, os.O_RDWR | os.O_CLOEXEC))
        if not self.fill():
            # What was kept for the start is for the log now, as far as it is there.
            preallocate(self._files[1], 0, START_BYTES // 2)

    def close(self) -> None:
        """Let go of the database, after SQLite; may be called twice.

        What SQLite gives up when it closes is for the next start first.
        """
        while self._files:
            os.close(self._files.pop())
        self._keep_for_start()

    def fill(self) -> bool:
        """Keep back what is missing, or tell that there is no room for it."""
        database, log = self._files
        end = os.fstat(database).st_size
        return (
            preallocate(log, 0, LOG_BYTES + LOG_RESERVE_BYTES)
            and preallocate(database, end, DATABASE_BYTES)
            and self._keep_for_start()
        )

    def has_room(self) -> bool:
        """Look at the disk, and tell whether anything may be added."""
        # A folder that is gone has no want of room.
        with contextlib.suppress(OSError):
            # Filled first: what is free is then counted without it.
            full = self.is_short and not self.fill()
            enough = ENOUGH_BYTES if self.is_short else LITTLE_BYTES
            self.is_short = full or free_bytes(self._folder) < enough
        return not self.is_short

    def _keep_for_start(self) -> bool:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            file = os.open(self._for_start, flags, 0o600)
            try:
                return preallocate(file, 0, START_BYTES)
            finally:
                os.close(file)
        return False


def free_bytes(folder: Path) -> int:
    """Tell how much of a disk this user may still fill."""
    disk = os.statvfs(folder)
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    return blocks * disk.f_frsize


def preallocate(file: int, begin: int, size: int) -> bool:
    """Have the kernel keep room for a part of a file, without making it longer.

    Where a file system cannot do that, nothing is kept, and that is no want of room.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    if libc.fallocate(file, _KEEP_SIZE, begin, size) == 0:
        return True
    return ctypes.get_errno() in (errno.EOPNOTSUPP, errno.ENOSYS)
