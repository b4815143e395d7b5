"""Serving the API on a Unix socket inside the daemon's own event loop.

uvicorn's own main loop wakes ten times a second to refresh a date header and count
requests; Grass needs neither, and a daemon with nothing to do must do nothing, so that
loop is replaced by waiting for the order to stop.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

from grass.api.access.peer_uid import PeerProtocol
from grass.api.server.cancellation import is_news

SHUTDOWN_S = 1


class ApiServer(uvicorn.Server):
    """uvicorn without its clock and without its signal handlers."""

    def __init__(self, app: Starlette) -> None:
        """Prepare; `serve_on` listens."""
        super().__init__(
            uvicorn.Config(
                app,
                http=PeerProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=60,
                timeout_graceful_shutdown=SHUTDOWN_S,
            )
        )
        self._closing: asyncio.Event = app.state.closing
        logging.getLogger("uvicorn.error").addFilter(is_news)

    async def serve_on(self, listener: socket.socket) -> None:
        """Answer requests until `stop` is called."""
        await self.serve(sockets=[listener])

    async def serve_anew_on(self, listener: socket.socket) -> None:
        """Answer requests on another socket from now on; connections stay open."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._protocol, sock=listener)
        before, self.servers = self.servers, [server]
        for one in before:
            one.close()

    def _protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = PeerProtocol(
            self.config, self.server_state, self.lifespan.state
        )
        return protocol

    def stop(self) -> None:
        """Have `serve_on` finish what it is answering, end streams, and return."""
        self.should_exit = True
        self._closing.set()

    async def main_loop(self) -> None:
        """Sleep until it is time to stop."""
        await self._closing.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the daemon."""
        yield


def listen(path: str) -> socket.socket:
    """Listen on a Unix socket that only its owner may use, however long its path."""
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        # The caller holds the daemon's lock, so a socket that is there is a dead one's.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(f"/proc/self/fd/{descriptor}/{name}")
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
        os.close(descriptor)
    return listener
