"""Restores the socket and lock of a running daemon when they are deleted.

Without its socket a daemon cannot be reached, and without its lock its pid is unknown.
inotify reports files that leave the folder, so this costs nothing until then. A daemon
whose folder was moved stops: all its paths lead to where another home may be by now.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Protocol

from grass.api.server.unix_listener import listen
from grass.config import Home
from grass.daemon.home_lock import restore_lock
from grass.errors import GrassError, StorageError
from grass.event_log import EventLog
from grass.worker.shell.inotify import MOVED, REMOVED, REPLACED, FileWatcher

log = EventLog("grass.daemon")

DELAY_S = 0.2
"""How long to wait for more deletions, perhaps of the whole folder."""
RETRY_S = 1.0
"""How long to wait after a failure."""


class RestoredServer(Protocol):
    """What answers on the socket."""

    async def serve_anew_on(self, listener: socket.socket) -> None:
        """Answer on another socket from now on; connections stay open."""


async def restore_files(home: Home, server: RestoredServer, *required: str) -> None:
    """Restore socket and lock whenever they are deleted, until cancelled.

    Raises `StorageError` when one of the `required` files was deleted or replaced, and
    `GrassError` when the folder was moved.
    """
    before = [_file_at(path) for path in required]
    removed = asyncio.Event()
    watcher = FileWatcher()
    folder = os.open(home.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _watch(watcher, home.folder, removed.set)
        while not _is_deleted(folder):
            await removed.wait()
            await asyncio.sleep(DELAY_S)
            removed.clear()
            _check_place(home, folder)
            _check(required, before)
            try:
                await _restore(home, server)
            except OSError as error:
                log.warning("file.restore_failed", error=error)
                await asyncio.sleep(RETRY_S)
                removed.set()
    except OSError as error:
        log.warning("file.watch_failed", error=error)
    finally:
        os.close(folder)
        watcher.close()


def _watch(watcher: FileWatcher, folder: str, changed: Callable[[], None]) -> None:
    """Watch a folder, and where it is."""
    watcher.add(folder, changed, REMOVED | REPLACED | MOVED)
    for parent in Path(folder).resolve().parents:
        # A parent that this user may not read cannot be watched.
        with contextlib.suppress(OSError):
            watcher.add(str(parent), changed, MOVED)


def _is_deleted(folder: int) -> bool:
    return os.fstat(folder).st_nlink == 0


def _check_place(home: Home, folder: int) -> None:
    """Raise if the folder that this daemon has locked is at another path by now."""
    here = os.fstat(folder)
    if _is_deleted(folder) or _file_at(home.folder) == (here.st_dev, here.st_ino):
        return
    place = os.readlink(f"/proc/self/fd/{folder}")
    raise GrassError(
        f"{home.folder} was moved to {place} beneath its daemon, which stops",
        f"move it back, or go on there: GRASS_HOME={quote(place)} grass start",
    )


def _check(required: tuple[str, ...], before: list[tuple[int, int] | None]) -> None:
    """Raise if the database is not the same, as further commits would be lost."""
    for path, file in zip(required, before, strict=True):
        if _file_at(path) != file:
            raise StorageError(
                f"{path} was deleted or replaced beneath its daemon, which stops"
            )


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


async def _restore(home: Home, server: RestoredServer) -> None:
    if _is_gone(home.socket):
        await server.serve_anew_on(listen(home.socket))
        log.warning("file.restored", path=home.socket)
    if _is_gone(home.daemon_lock):
        restore_lock(home)
        log.warning("file.restored", path=home.daemon_lock)


def _is_gone(path: str) -> bool:
    return not os.path.exists(path)
