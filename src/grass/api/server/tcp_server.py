"""The door to other machines: the same API over TCP, under TLS.

Connections are accepted by hand, so that each is counted from its first byte on: the
handshake, the first request and its token all have to come within a short time, and
there is room for few who have not shown a token yet (`guests`). From then on uvicorn's
own protocol speaks, in the event loop and with the server state of the Unix socket, so
that both stop together.
"""

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from grass.api.access.peer_uid import PeerProtocol
from grass.api.access.tcp_connections import Guest, Guests
from grass.api.server.cancellation import is_news
from grass.api.server.unix_server import ApiServer
from grass.link.frames import LARGEST_FRAME
from grass.logs import EventLog

log = EventLog(__name__)

HANDSHAKE_S = 10.0
GOODBYE_S = 2.0
"""How long a peer has to answer when a connection is closed in order."""
LARGEST_HEAD = 64 * 1024
AT_ONCE = 32
"""Connections that are accepted before anything else has its turn."""
BREATH_S = 0.05
"""How long to wait when no connection can be accepted, before trying again."""
QUIET_S = 60
"""After so long without a word the kernel asks whether the other side is there."""
_PIECE = 128
"""What a piece of a message takes in memory, however small it is."""
KEPT_BACK = 256
"""Descriptors that the rest of the daemon needs."""

_quiet = logging.getLogger("grass.api.tcp")
_quiet.setLevel(logging.ERROR)
_quiet.addFilter(is_news)
"""What strangers send is not worth a line each; what fails here is."""


class DoorProtocol(PeerProtocol):
    """HTTP from another machine, with the connection in `scope["state"]`."""

    largest_head = LARGEST_HEAD

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, once the handshake is done."""
        super().connection_made(transport)
        self.logger = _quiet

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no more."""
        _guest(self.app_state).left()
        super().connection_lost(exc)


class LinkProtocol(WebSocketsSansIOProtocol):
    """The WebSocket that a connection has become.

    What came and the application has not read yet counts, also of a frame or a message
    that is not complete: a connection for which there is no room is dropped.
    """

    _begun = 0
    """What the pieces take of a message that is not complete."""
    _waiting = 0
    """What complete messages take that nobody has read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with the upgrade."""
        super().connection_made(transport)
        self.logger = self.conn.logger = _quiet
        # At the level of debugging the library writes headers, and so tokens, down.
        self.conn.debug = False

    def data_received(self, data: bytes) -> None:
        """Take what came, if there is room for it."""
        super().data_received(data)
        size = len(self.conn.reader.buffer) + self._begun + self._waiting
        if not _guest(self.app_state).keeps(size):
            _guest(self.app_state).drop()

    def handle_bytes(self, event: Frame) -> None:
        """Take a message, or its first piece."""
        self._begun = len(event.data) + _PIECE
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Take another piece of a message."""
        self._begun += len(event.data) + _PIECE
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Have a complete message wait."""
        self._waiting, self._begun = self._waiting + self._begun, 0
        super().send_receive_event_to_app()

    async def receive(self) -> Any:  # noqa: ANN401 -- uvicorn's own type
        """Hand over what waited."""
        message = await super().receive()
        self._waiting = 0
        _guest(self.app_state).keeps(len(self.conn.reader.buffer) + self._begun)
        return message

    async def send(self, message: Any) -> None:  # noqa: ANN401 -- uvicorn's own type
        """Send; a refusal ends the handshake, too, which uvicorn does not note."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no more."""
        _guest(self.app_state).left()
        super().connection_lost(exc)


class Door:
    """Lets other machines in."""

    def __init__(self, server: ApiServer, context: ssl.SSLContext) -> None:
        app = server.config.app
        self._closing: asyncio.Event = app.state.closing  # type: ignore[union-attr]
        self._guests: Guests = app.state.guests  # type: ignore[union-attr]
        self._guests.most_connections = _room(self._guests.most_connections)
        self._tls = context
        self._server_state = server.server_state
        self._config = uvicorn.Config(
            app,
            http=DoorProtocol,
            ws=LinkProtocol,
            ws_max_size=LARGEST_FRAME,
            ws_ping_interval=None,
            ws_per_message_deflate=False,
            proxy_headers=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=60,
        )
        self._config.load()
        self._greeting: set[asyncio.Task[None]] = set()

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Let connections in until the server is told to stop."""
        for listener in listeners:
            self._open(listener)
        try:
            await self._closing.wait()
        finally:
            for listener in listeners:
                asyncio.get_running_loop().remove_reader(listener)
                listener.close()
            self._guests.close()
            greeting = list(self._greeting)
            for task in greeting:
                task.cancel()
            await asyncio.gather(*greeting, return_exceptions=True)

    def _open(self, listener: socket.socket) -> None:
        if not self._closing.is_set():
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        """Take in some of those who wait; others have their turn in between."""
        for _ in range(AT_ONCE):
            try:
                channel, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                self._take_a_breath(listener)
                return
            channel.setblocking(False)
            self._meet(channel, str(address[0]))

    def _take_a_breath(self, listener: socket.socket) -> None:
        """Make room where no descriptor is left for another connection."""
        self._guests.drop_a_stranger()
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(BREATH_S, self._open, listener)

    def _meet(self, channel: socket.socket, host: str) -> None:
        guest = self._guests.arrive(host, lambda: _hang_up(channel))
        if guest is None:
            channel.close()
            return
        task = asyncio.create_task(self._greet(channel, guest))
        self._greeting.add(task)
        task.add_done_callback(lambda task: self._greeted(task, channel, guest))

    def _greeted(
        self, task: asyncio.Task[None], channel: socket.socket, guest: Guest
    ) -> None:
        self._greeting.discard(task)
        error = None if task.cancelled() else task.exception()
        if not task.cancelled() and error is None:
            return
        guest.left()
        channel.close()
        # Not TLS, not ours, too slow, or gone: nothing that anybody waits for.
        if error is not None and not isinstance(error, OSError):
            log.defect(error)

    async def _greet(self, channel: socket.socket, guest: Guest) -> None:
        """Shake hands, and leave the rest to the protocol."""

        def protocol() -> DoorProtocol:
            return DoorProtocol(self._config, self._server_state, {"guest": guest})

        await _first_byte(channel)
        _tune(channel)
        await asyncio.get_running_loop().connect_accepted_socket(
            protocol,
            channel,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=GOODBYE_S,
        )


async def _first_byte(channel: socket.socket) -> None:
    """Wait until something is said: whoever says nothing costs a descriptor, no TLS."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel, _note, heard)
    try:
        await heard
    finally:
        loop.remove_reader(channel)
    if not channel.recv(1, socket.MSG_PEEK):
        raise ConnectionResetError("hung up, here or there")


def _tune(channel: socket.socket) -> None:
    """Send at once, and notice a peer that is gone without a word.

    There is no time limit for a peer that is there and does not read: whoever pages
    through an output, or stops its client for a night, may go on.
    """
    tcp = socket.IPPROTO_TCP
    channel.setsockopt(tcp, socket.TCP_NODELAY, 1)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    channel.setsockopt(tcp, socket.TCP_KEEPIDLE, QUIET_S)
    channel.setsockopt(tcp, socket.TCP_KEEPINTVL, QUIET_S // 4)
    channel.setsockopt(tcp, socket.TCP_KEEPCNT, 4)


def _note(heard: asyncio.Future[None]) -> None:
    if not heard.done():
        heard.set_result(None)


def _hang_up(channel: socket.socket) -> None:
    """End a connection whatever it is in the middle of; its transport notices.

    What is under way may still arrive, unless the other side takes none of it.
    """
    with contextlib.suppress(OSError):
        patience_ms = int(GOODBYE_S * 1000)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)
        channel.shutdown(socket.SHUT_RDWR)


def _guest(app_state: dict[str, object]) -> Guest:
    guest = app_state["guest"]
    assert isinstance(guest, Guest)
    return guest


def _room(wanted: int) -> int:
    """Give how many connections there are descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(wanted, soft - KEPT_BACK))
