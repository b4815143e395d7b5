"""Files of a running daemon that are deleted beneath it, and are put back.

Without its socket nobody reaches a daemon that is otherwise well, and without its lock
nobody can tell which process it is. The kernel tells when a file leaves the folder, so
a daemon of which nothing is deleted does nothing for this.
"""

import asyncio
import os

from grass.api.server.unix_server import ApiServer, listen
from grass.config import Home
from grass.daemon.ownership import put_lock_back
from grass.errors import StorageError
from grass.logs import EventLog
from grass.worker.shell.inotify import REMOVED, FileWatcher

log = EventLog("grass.daemon")

SETTLE_S = 0.2
"""How long whoever deletes files may go on with it, maybe with the whole folder."""
PAUSE_S = 1.0
"""How long to wait before what failed is tried again."""


async def put_back_files(home: Home, server: ApiServer, *kept: str) -> None:
    """Put socket and lock back whenever they are gone, until cancelled.

    Raises `StorageError` when one of the files is gone that this daemon has to `keep`.
    """
    removed = asyncio.Event()
    watcher = FileWatcher()
    try:
        watcher.add(home.folder, removed.set, REMOVED)
        while not _is_gone(home.folder):
            await removed.wait()
            await asyncio.sleep(SETTLE_S)
            removed.clear()
            _miss(kept)
            try:
                await _put_back(home, server)
            except OSError as error:
                log.warning("file.restore_failed", error=error)
                await asyncio.sleep(PAUSE_S)
                removed.set()
    except OSError as error:
        log.warning("file.watch_failed", error=error)
    finally:
        watcher.close()


def _miss(kept: tuple[str, ...]) -> None:
    """Stop if the database was deleted: what is written to it now nobody ever reads."""
    for path in kept:
        if _is_gone(path):
            raise StorageError(f"{path} was deleted beneath its daemon, which stops")


async def _put_back(home: Home, server: ApiServer) -> None:
    if _is_gone(home.socket):
        await server.serve_anew_on(listen(home.socket))
        log.warning("file.restored", path=home.socket)
    if _is_gone(home.daemon_lock):
        put_lock_back(home)
        log.warning("file.restored", path=home.daemon_lock)


def _is_gone(path: str) -> bool:
    return not os.path.exists(path)
