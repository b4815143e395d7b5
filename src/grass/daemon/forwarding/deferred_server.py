"""Answers on a worker's Unix socket, with libraries that the first caller waits for.

Few ask the daemon of a machine that works for another one, and nobody does where it
lives for one job. What answers takes longer to load than all the rest of such a daemon,
so it is loaded when somebody connects. The kernel accepts connections meanwhile.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grass.api.server.unix_server import ApiServer


class DeferredServer:
    """A server that is made for its first caller."""

    def __init__(self, make: "Callable[[], ApiServer]") -> None:
        """`make` is called in a thread, as it loads much."""
        self._make = make
        self._server: ApiServer | None = None
        self._listener: socket.socket | None = None
        self._needed = asyncio.Event()
        self._stopped = False

    async def serve_on(self, listener: socket.socket) -> None:
        """Answer requests until `stop` is called."""
        self._wait_on(listener)
        try:
            await self._needed.wait()
        finally:
            self._wait_on(None)
        if not self._stopped:
            self._server = await asyncio.to_thread(self._make)
        assert self._listener is not None
        if self._stopped or self._server is None:
            self._listener.close()
        else:
            await self._server.serve_on(self._listener)

    async def serve_anew_on(self, listener: socket.socket) -> None:
        """Answer requests on another socket from now on; connections stay open."""
        if self._server is not None:
            await self._server.serve_anew_on(listener)
            return
        before, is_waiting = self._listener, not self._needed.is_set()
        self._wait_on(listener if is_waiting else None)
        self._listener = listener
        if before is not None:
            before.close()

    def stop(self) -> None:
        """Make `serve_on` finish its requests, end streams, and return."""
        self._stopped = True
        self._needed.set()
        if self._server is not None:
            self._server.stop()

    def _wait_on(self, listener: socket.socket | None) -> None:
        """Look at this socket for a caller, and at no other one."""
        loop = asyncio.get_running_loop()
        if self._listener is not None:
            loop.remove_reader(self._listener)
        if listener is not None:
            self._listener = listener
            loop.add_reader(listener, self._needed.set)
