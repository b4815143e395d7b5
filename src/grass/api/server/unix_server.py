"""Serves the API on a Unix socket inside the daemon's own event loop.

uvicorn's main loop wakes ten times a second to refresh a date header and count
requests. Grass needs neither, and an idle daemon must not wake, so that loop is
replaced by waiting for the order to stop. uvicorn does not tell a route about its
socket, so a subclass of its protocol puts the caller's pid and uid into the request's
scope.
"""

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from grass.api.context import ApiState
from grass.api.server.cancellation import is_unexpected

if TYPE_CHECKING:
    from uvicorn.protocols.websockets.websockets_sansio_impl import (
        WebSocketsSansIOProtocol,
    )

SHUTDOWN_S = 1
LARGEST_HEAD = 2**20
"""In bytes, path and headers together; uvicorn itself has no limit."""
_CREDENTIALS = struct.Struct("3i")


class PeerProtocol(HttpToolsProtocol):
    """HTTP on a Unix socket; `scope["state"]` has the caller's `pid` and `uid`."""

    largest_head = LARGEST_HEAD

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Get the process and the uid of the client from the kernel."""
        super().connection_made(transport)
        pid, uid = _peer(transport)
        self.app_state = {**self.app_state, "pid": pid, "uid": uid}
        self._in_head = True
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take data; close the connection if the head of a request is too large."""
        self._head_bytes += len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and self._head_bytes > self.largest_head:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Count the bytes of the head."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """Stop counting: a body has a limit of its own."""
        super().on_headers_complete()
        self._in_head = False
        self._head_bytes = 0


def server_config(
    app: ASGIApp,
    http: type[PeerProtocol],
    ws: "type[WebSocketsSansIOProtocol] | Literal['none']" = "none",
) -> uvicorn.Config:
    """Return how uvicorn serves: without logs, headers and proxies of its own."""
    return uvicorn.Config(
        app,
        http=http,
        ws=ws,
        proxy_headers=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=60,
    )


def quiet_log(name: str) -> logging.Logger:
    """Return a log for uvicorn: errors, but not the bad requests of clients."""
    log = logging.getLogger(name)
    log.setLevel(logging.ERROR)
    log.addFilter(is_unexpected)
    return log


class ApiServer(uvicorn.Server):
    """uvicorn without its clock and without its signal handlers."""

    def __init__(self, app: Starlette) -> None:
        """Prepare; `serve_on` listens."""
        config = server_config(app, PeerProtocol)
        config.timeout_graceful_shutdown = SHUTDOWN_S
        super().__init__(config)
        self.app = app
        self.shared: ApiState = app.state.api
        # asyncio tells of a stream that was aborted while its reader left.
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(is_unexpected)

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
        """Make `serve_on` finish its requests, end streams, and return."""
        self.should_exit = True
        self.shared.closing.set()

    async def main_loop(self) -> None:
        """Wait for the order to stop."""
        await self.shared.closing.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the daemon."""
        yield


def _peer(transport: asyncio.Transport) -> tuple[int | None, int | None]:
    """Return the pid and the uid of the client, as the kernel tells them."""
    channel: Any = transport.get_extra_info("socket")
    if channel is None or channel.family != socket.AF_UNIX:
        return None, None
    raw = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid
