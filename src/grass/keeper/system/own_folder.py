"""The keeper's folder: put back when it was deleted, so that daemons find the keeper.

The lock in it says which keeper the folder has. A keeper whose lock is gone takes it
again, unless another one was quicker: then that one has the folder, and this one only
waits for the ends of its own jobs. A folder is not made where the whole home is gone.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from contextlib import suppress

_REMOVED = 0x00000200 | 0x00000040 | 0x00000400 | 0x00000800
"""In a folder: a file was deleted or moved away; or the folder itself was."""
_INSTANCE = "instance"
"""The name that a worker gave this home, and the inode of its file."""
_NOTE = "worker-id"
"""The worker's id, that name and the boot, by which a lost id is recovered."""


class OwnFolder:
    """The folder of this keeper, and its lock."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self._lock = lock
        self._instance = self._read_instance()
        self._note = self._read(_NOTE)

    def watch(self) -> int | None:
        """Return a descriptor that is readable when something leaves the folder."""
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        if libc.inotify_add_watch(descriptor, os.fsencode(self.path), _REMOVED) < 0:
            os.close(descriptor)
            return None
        return int(descriptor)

    @property
    def is_own(self) -> bool:
        """Whether the folder is there, with this keeper's lock."""
        self._instance = self._read_instance() or self._instance
        self._note = self._read(_NOTE) or self._note
        try:
            named = os.stat(self._lock_path)
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._lock))

    def put_back(self) -> bool:
        """Make the folder and its lock again; return whether it is this keeper's."""
        with suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        os.ftruncate(lock, os.pwrite(lock, b"%d" % os.getpid(), 0))
        os.close(self._lock)
        self._lock = lock
        self._write_instance()
        return True

    @property
    def _lock_path(self) -> str:
        return os.path.join(self.path, "lock")

    def _read_instance(self) -> str:
        return self._read(_INSTANCE).partition(" ")[0]

    def _read(self, name: str) -> str:
        try:
            with open(os.path.join(self.path, name), encoding="ascii") as file:
                return file.read().strip()
        except (OSError, UnicodeError):
            return ""

    def _write_instance(self) -> None:
        """Have the next daemon know that this is no copy of the home."""
        path = os.path.join(self.path, _INSTANCE)
        if self._instance and not os.path.exists(path):
            with open(path, "x", encoding="ascii", opener=_private) as file:
                number = os.fstat(file.fileno()).st_ino
                file.write(f"{self._instance} {number}\n")
            self._write_note()

    def _write_note(self) -> None:
        path = os.path.join(self.path, _NOTE)
        if self._note and not os.path.exists(path):
            with open(path, "x", encoding="ascii", opener=_private) as file:
                file.write(f"{self._note}\n")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
