"""A channel to a job of another machine's broker: a WebSocket, under asyncio or trio.

The connection is made as for any call, in a thread; so the broker has proved its key.
From then on it is read and written by whatever event loop runs here.
"""

from __future__ import annotations

import json
import logging
import ssl
from collections import deque
from contextlib import suppress
from threading import Lock, Thread

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from grass.client.connection import problem_of
from grass.client.tls_connection import TlsConnection
from grass.config import API_PREFIX
from grass.errors import GrassError, ProtocolError, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

    from grass.client.tls_connection import BrokerRoute

ENDED = 1000
"""The code with which a broker closes the channel of a job that has ended."""
OPEN_S = 20.0
_LARGEST = 1 << 20
_READ = 256 * 1024

_quiet = logging.getLogger("grass.client.websocket")
# At level DEBUG the library logs headers, and so the token.
_quiet.setLevel(logging.WARNING)


class TaskChannel:
    """An open channel."""

    def __init__(self, channel: ssl.SSLSocket) -> None:
        channel.setblocking(False)
        self._channel = channel
        uri = parse_uri("wss://grass" + API_PREFIX)
        self._protocol = ClientProtocol(uri, max_size=_LARGEST, logger=_quiet)
        self._frames: deque[Frame] = deque()
        self._unsent: deque[memoryview] = deque()
        self._flushing = anyio.Lock()
        self._guard = Lock()
        """Of connection and protocol; nobody waits for the network inside of it."""
        self.is_ended = False
        """Whether the broker has said that the job has ended."""
        self.reason = ""
        """Why it is closed, in the broker's words."""

    async def upgrade(self, path: str, token: str | None) -> None:
        """Make the connection a WebSocket, or raise as the broker refuses it."""
        request = self._protocol.connect()
        request.path = API_PREFIX + path
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        with self._guard:
            self._protocol.send_request(request)
        await self._flush()
        while self._protocol.state is State.CONNECTING:
            if not await self._receive_some():
                break
        error = self._protocol.handshake_exc
        if isinstance(error, InvalidStatus):
            answer = error.response
            raise problem_of(answer.status_code, bytes(answer.body or b""))
        if error is not None or self._protocol.state is not State.OPEN:
            raise ProtocolError(f"the broker does not open a channel: {error}")

    async def running(self) -> dict[str, Any]:
        """Wait until the job runs, and return what the broker tells of that.

        Raises `Unreachable` where the channel ends before.
        """
        frame = await self._next()
        if frame is None or frame.opcode is not Opcode.TEXT:
            raise Unreachable(self.reason or "the connection to the broker broke")
        document: dict[str, Any] = json.loads(bytes(frame.data))
        return document

    async def send(self, data: bytes) -> None:
        """Send bytes, as they are taken; OSError when it is closed."""
        if self._protocol.state is not State.OPEN:
            raise ConnectionResetError("the channel is closed")
        with self._guard:
            self._protocol.send_binary(data)
        await self._flush()

    def send_from_thread(self, data: bytes) -> bool:
        """Send bytes in another thread, unless others wait; tell if it is open."""
        try:
            with self._guard:
                if self._protocol.state is not State.OPEN:
                    return False
                if not self._unsent:
                    self._protocol.send_binary(data)
                with suppress(ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    self._push()
        except (OSError, ValueError):
            return False
        return True

    async def receive(self) -> bytes:
        """Return the next bytes; nothing at the end."""
        frame = await self._next()
        return b"" if frame is None else bytes(frame.data)

    def close(self) -> None:
        """Close the connection; may be called twice."""
        with self._guard:
            with suppress(OSError, ValueError, WebSocketException):
                if self._protocol.state is State.OPEN:
                    self._protocol.send_close(ENDED)
                    self._push()
            self._channel.close()

    async def _next(self) -> Frame | None:
        while True:
            while self._frames:
                frame = self._frames.popleft()
                if frame.opcode is Opcode.CLOSE:
                    closed = Close.parse(bytes(frame.data))
                    self.is_ended, self.reason = closed.code == ENDED, closed.reason
                    return None
                if frame.opcode in (Opcode.BINARY, Opcode.TEXT):
                    return frame
            if not await self._receive_some():
                return None

    async def _receive_some(self) -> bool:
        """Read once; tell whether the other side is still there."""
        data = await self._read()
        with self._guard:
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            for event in self._protocol.events_received():
                if isinstance(event, Frame):
                    self._frames.append(event)
        with suppress(OSError):
            await self._flush()
        return bool(data)

    async def _read(self) -> bytes:
        while True:
            try:
                with self._guard:
                    return self._channel.recv(_READ)
            except ssl.SSLWantReadError:
                await anyio.wait_readable(self._channel)
            except ssl.SSLWantWriteError:
                await anyio.wait_writable(self._channel)
            except (OSError, ValueError):
                return b""

    async def _flush(self) -> None:
        """Send all that the protocol has, also where another thread has begun to."""
        async with self._flushing:
            while True:
                try:
                    with self._guard:
                        self._push()
                except ssl.SSLWantWriteError:
                    await anyio.wait_writable(self._channel)
                except ssl.SSLWantReadError:
                    await anyio.wait_readable(self._channel)
                else:
                    return

    def _push(self) -> None:
        """Send as much as is taken, in order."""
        self._unsent.extend(
            map(memoryview, filter(None, self._protocol.data_to_send()))
        )
        while self._unsent:
            rest = self._unsent[0]
            rest = rest[self._channel.send(rest) :]
            if rest:
                self._unsent[0] = rest
            else:
                self._unsent.popleft()


async def in_daemon_thread(call: Callable[[], T]) -> T:
    """Make a call that may take long; neither cancelling nor an exit waits for it."""
    token, done = current_token(), anyio.Event()
    given: list[T] = []
    raised: list[BaseException] = []

    def make() -> None:
        try:
            given.append(call())
        except BaseException as error:  # noqa: BLE001 -- raised by the caller
            raised.append(error)
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            anyio.from_thread.run_sync(done.set, token=token)

    Thread(target=make, daemon=True).start()
    await done.wait()
    if raised:
        raise raised[0]
    return given[0]


async def open_channel(route: BrokerRoute, job: int) -> TaskChannel:
    """Connect to the channel of a job that this machine's token has enqueued."""
    connection = await in_daemon_thread(lambda: route.open(lambda: None))
    assert isinstance(connection, TlsConnection)
    channel, token = connection.detached()
    opened = TaskChannel(channel)
    try:
        with anyio.fail_after(OPEN_S):
            await opened.upgrade(f"/jobs/{job}/channel", token)
    except TimeoutError:
        opened.close()
        raise Unreachable("the broker does not answer") from None
    except BaseException as error:
        opened.close()
        if isinstance(error, OSError) and not isinstance(error, GrassError):
            raise Unreachable(f"the connection broke: {error}") from None
        raise
    return opened
