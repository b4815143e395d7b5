"""Notice that a file grew, by inotify instead of polling.

The standard library has no inotify, and the packages for it are not maintained, so the
three system calls are made here.
"""

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable

MODIFIED = 0x00000002
REMOVED = 0x00000200 | 0x00000040
"""In a folder: a file was deleted or moved away."""
MOVED = 0x00000800
"""The file or folder itself was moved."""
REPLACED = 0x00000080
"""In a folder: a file was moved to where another one may have been."""
_HEADER = struct.Struct("iIII")
_NONBLOCKING = os.O_NONBLOCK | os.O_CLOEXEC


class FileWatcher:
    """Calls back when watched files change; each path has one callback."""

    def __init__(self) -> None:
        self._descriptor = -1
        # The kernel has one number for a file, also if it has several paths.
        self._callbacks: dict[int, dict[str, Callable[[], None]]] = {}
        self._numbers: dict[str, int] = {}

    def add(
        self, path: str, callback: Callable[[], None], events: int = MODIFIED
    ) -> None:
        """Watch a file that exists; raises OSError otherwise."""
        if self._descriptor < 0:
            self._open()
        number = _libc().inotify_add_watch(self._descriptor, os.fsencode(path), events)
        if number < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), path)
        self._numbers[path] = number
        self._callbacks.setdefault(number, {})[path] = callback

    def remove(self, path: str) -> None:
        """Stop watching a file, if it is watched."""
        number = self._numbers.pop(path, None)
        if number is None:
            return
        callbacks = self._callbacks[number]
        del callbacks[path]
        if not callbacks:
            del self._callbacks[number]
            _libc().inotify_rm_watch(self._descriptor, number)

    def close(self) -> None:
        """Close the watcher; may be called twice."""
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self._descriptor = _libc().inotify_init1(_NONBLOCKING)
        if self._descriptor < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        asyncio.get_running_loop().add_reader(self._descriptor, self._changed)

    def _changed(self) -> None:
        try:
            data = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return
        numbers = []
        while data:
            number, _, _, length = _HEADER.unpack_from(data)
            numbers.append(number)
            data = data[_HEADER.size + length :]
        for number in dict.fromkeys(numbers):
            for callback in list(self._callbacks.get(number, {}).values()):
                callback()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
