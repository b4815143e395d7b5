"""Serves browsers of other machines: over TLS, with the limits of the TCP server.

A connection counts as unidentified until one of its requests has the cookie of a valid
token, and is cut when that token is revoked.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence

from starlette.types import ASGIApp

from grass.api.server.tcp_server import TcpProtocol, TcpServer
from grass.api.server.unix_server import ApiServer
from grass.api.server.web_server import cut, web_config
from grass.api.tcp_connections import TcpConnection


class TlsWebProtocol(TcpProtocol):
    """HTTP of a browser of another machine."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start after the handshake."""
        super().connection_made(transport)
        self._open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._open.discard(self.transport)
        super().connection_lost(exc)

    @property
    def _open(self) -> set[asyncio.Transport]:
        connections: set[asyncio.Transport] = self.app_state["open"]
        return connections


class TlsWebServer(TcpServer):
    """Serves one application over TLS."""

    def __init__(
        self, server: ApiServer, context: ssl.SSLContext, app: ASGIApp
    ) -> None:
        super().__init__(server, context)
        self._web_config = web_config(app, TlsWebProtocol)
        self._transports: set[asyncio.Transport] = set()
        self._serving: asyncio.Task[None] | None = None

    async def listen(self, listeners: Sequence[socket.socket]) -> None:
        """Answer on these sockets from now on."""
        self._serving = asyncio.create_task(self.serve(listeners))

    async def close(self) -> None:
        """Stop listening, and cut every connection."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        cut(self._transports)

    def protocol(self, connection: TcpConnection) -> TlsWebProtocol:
        """Return what speaks HTTP on a connection."""
        state = {"connection": connection, "open": self._transports}
        return TlsWebProtocol(self._web_config, self.server_state, state)
