"""Access to a daemon from its own machine: the Unix socket, as long as the daemon runs.

The socket is restored when somebody deletes it. It is removed before the server stops,
so that commands that come meanwhile find no daemon rather than one that stops.
"""

import asyncio
import contextlib
import os
import socket
from typing import Protocol

from grass.api.server.unix_listener import listen
from grass.config import Home
from grass.daemon.file_restore import RestoredServer, restore_files


class LocalServer(RestoredServer, Protocol):
    """What answers on the Unix socket."""

    async def serve_on(self, listener: socket.socket) -> None:
        """Answer requests until `stop` is called."""

    def stop(self) -> None:
        """Make `serve_on` finish its requests, end streams, and return."""


class UnixAccess:
    """The Unix socket of a daemon, and what is served there."""

    def __init__(self, home: Home, server: LocalServer) -> None:
        self._home = home
        self._server = server

    def start(self, group: asyncio.TaskGroup, *required: str) -> None:
        """Answer from now on.

        The group fails with a `StorageError` when one of the `required` files is
        deleted.
        """
        listening = listen(self._home.socket)
        self._serving = group.create_task(self._server.serve_on(listening))
        self._restoring = group.create_task(
            restore_files(self._home, self._server, *required)
        )

    def remove_socket(self) -> None:
        """Take no further connection; those that are open are served."""
        self._restoring.cancel()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._home.socket)

    async def stop(self) -> None:
        """Remove the socket, and return when no request is served any more."""
        self.remove_socket()
        self._server.stop()
        await self._serving
