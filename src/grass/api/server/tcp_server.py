"""The API for other machines: over TCP, under TLS.

Connections are accepted here and not by uvicorn, so that each is counted from its first
byte on: the handshake, the first request and its token have to come within a short
time, and few connections may be unidentified (`tcp_connections`). Then uvicorn's own
protocol takes over, with the event loop and server state of the Unix socket, so that
both stop together.
"""

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from grass.api.server.unix_server import (
    ApiServer,
    PeerProtocol,
    quiet_log,
    server_config,
)
from grass.api.tcp_connections import TcpConnection
from grass.event_log import EventLog
from grass.link.frames import LARGEST_FRAME

log = EventLog(__name__)

HANDSHAKE_S = 10.0
CLOSE_TIMEOUT_S = 2.0
"""How long a peer has to answer when a connection is closed."""
LARGEST_HEAD = 64 * 1024
ACCEPT_BATCH = 32
"""Connections that are accepted in one turn of the event loop."""
ACCEPT_PAUSE_S = 0.05
"""How long to wait after a failed accept."""
KEEPALIVE_IDLE_S = 60
"""After this time without data the kernel probes the peer."""
_PIECE = 128
"""The memory that a piece of a message takes besides its data."""
RESERVED_DESCRIPTORS = 256
"""Descriptors for the rest of the daemon."""

_library_log = quiet_log("grass.api.tcp")


class TcpProtocol(PeerProtocol):
    """HTTP from another machine, with the connection in `scope["state"]`."""

    largest_head = LARGEST_HEAD

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start after the handshake."""
        super().connection_made(transport)
        self.logger = _library_log

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from those that are counted."""
        _connection(self.app_state).closed()
        super().connection_lost(exc)


class LinkProtocol(WebSocketsSansIOProtocol):
    """A WebSocket, for the link of a worker.

    Data that the application has not read yet counts, also of an incomplete frame or
    message: a connection that exceeds its limit is closed.
    """

    _incomplete = 0
    """The memory of an incomplete message's pieces."""
    _unread = 0
    """The memory of complete messages that were not read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start after the upgrade."""
        super().connection_made(transport)
        self.logger = self.conn.logger = _library_log
        # At debug level the library logs headers, and so tokens.
        self.conn.debug = False

    def data_received(self, data: bytes) -> None:
        """Take data, or close the connection where a limit is exceeded."""
        super().data_received(data)
        size = len(self.conn.reader.buffer) + self._incomplete + self._unread
        if not _connection(self.app_state).reserve(size):
            _connection(self.app_state).drop()

    def handle_bytes(self, event: Frame) -> None:
        """Take a message or its first piece."""
        self._incomplete = len(event.data) + _PIECE
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Take another piece of a message."""
        self._incomplete += len(event.data) + _PIECE
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Count a complete message as unread."""
        self._unread, self._incomplete = self._unread + self._incomplete, 0
        super().send_receive_event_to_app()

    async def receive(self) -> Any:  # noqa: ANN401 -- uvicorn's own type
        """Hand over unread messages."""
        message = await super().receive()
        self._unread = 0
        _connection(self.app_state).reserve(
            len(self.conn.reader.buffer) + self._incomplete
        )
        return message

    async def send(self, message: Any) -> None:  # noqa: ANN401 -- uvicorn's own type
        """Send; uvicorn does not note that a refusal ends the handshake."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from those that are counted."""
        _connection(self.app_state).closed()
        super().connection_lost(exc)


class TcpServer:
    """Serves the API over TLS."""

    def __init__(self, server: ApiServer, context: ssl.SSLContext) -> None:
        self._closing = server.shared.closing
        self._connections = server.shared.connections
        self._connections.most_connections = _connection_limit(
            self._connections.most_connections
        )
        self._tls = context
        self.server_state = server.server_state
        self._config = server_config(server.app, TcpProtocol, LinkProtocol)
        self._config.ws_max_size = LARGEST_FRAME
        self._config.ws_ping_interval = None
        self._config.ws_per_message_deflate = False
        self._config.load()
        self._handshakes: set[asyncio.Task[None]] = set()

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Accept connections until the server stops."""
        for listener in listeners:
            self._open(listener)
        try:
            await self._closing.wait()
        finally:
            for listener in listeners:
                asyncio.get_running_loop().remove_reader(listener)
                listener.close()
            self._connections.close()
            handshakes = list(self._handshakes)
            for task in handshakes:
                task.cancel()
            await asyncio.gather(*handshakes, return_exceptions=True)

    def _open(self, listener: socket.socket) -> None:
        if not self._closing.is_set():
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        """Accept a limited number of connections."""
        for _ in range(ACCEPT_BATCH):
            try:
                channel, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                self._pause_accepting(listener)
                return
            channel.setblocking(False)
            self._begin(channel, str(address[0]))

    def _pause_accepting(self, listener: socket.socket) -> None:
        """Close one connection and wait a moment, as no descriptor is left."""
        self._connections.drop_unidentified()
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(ACCEPT_PAUSE_S, self._open, listener)

    def _begin(self, channel: socket.socket, host: str) -> None:
        connection = self._connections.accept(host, lambda: _hang_up(channel))
        if connection is None:
            channel.close()
            return
        task = asyncio.create_task(self._handshake(channel, connection))
        self._handshakes.add(task)
        task.add_done_callback(
            lambda task: self._handshake_done(task, channel, connection)
        )

    def _handshake_done(
        self,
        task: asyncio.Task[None],
        channel: socket.socket,
        connection: TcpConnection,
    ) -> None:
        self._handshakes.discard(task)
        error = None if task.cancelled() else task.exception()
        if not task.cancelled() and error is None:
            return
        connection.closed()
        channel.close()
        # Not TLS, not an expected client, too slow, or disconnected.
        if error is not None and not isinstance(error, OSError):
            log.defect(error)

    def protocol(self, connection: TcpConnection) -> TcpProtocol:
        """Return what speaks HTTP on a connection."""
        return TcpProtocol(self._config, self.server_state, {"connection": connection})

    async def _handshake(
        self, channel: socket.socket, connection: TcpConnection
    ) -> None:
        """Do the TLS handshake; the protocol does the rest."""
        await _first_byte(channel)
        _set_options(channel)
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self.protocol(connection),
            channel,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=CLOSE_TIMEOUT_S,
        )


async def _first_byte(channel: socket.socket) -> None:
    """Wait for data, so that an idle connection costs no TLS state."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel, _note, heard)
    try:
        await heard
    finally:
        loop.remove_reader(channel)
    if not channel.recv(1, socket.MSG_PEEK):
        raise ConnectionResetError("disconnected")


def _set_options(channel: socket.socket) -> None:
    """Send without delay, and detect a peer that has vanished.

    There is no time limit for a peer that does not read: a person may page through
    output, or suspend a client for a night.
    """
    tcp = socket.IPPROTO_TCP
    channel.setsockopt(tcp, socket.TCP_NODELAY, 1)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    channel.setsockopt(tcp, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    channel.setsockopt(tcp, socket.TCP_KEEPINTVL, KEEPALIVE_IDLE_S // 4)
    channel.setsockopt(tcp, socket.TCP_KEEPCNT, 4)


def _note(heard: asyncio.Future[None]) -> None:
    if not heard.done():
        heard.set_result(None)


def _hang_up(channel: socket.socket) -> None:
    """Shut a connection down; its transport notices that.

    Data that is under way may still arrive, if the peer reads it.
    """
    with contextlib.suppress(OSError):
        patience_ms = int(CLOSE_TIMEOUT_S * 1000)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)
        channel.shutdown(socket.SHUT_RDWR)


def _connection(app_state: dict[str, object]) -> TcpConnection:
    connection = app_state["connection"]
    assert isinstance(connection, TcpConnection)
    return connection


def _connection_limit(wanted: int) -> int:
    """Return how many connections there are descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(wanted, soft - RESERVED_DESCRIPTORS))
