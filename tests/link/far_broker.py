"""A broker's server for tests: real TLS and WebSockets on loopback."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from grass.link.frames import LARGEST_FRAME, decoder_to_broker, encode
from grass.link.messages import Heard, Heartbeat, Hello, ToBroker, ToWorker, Welcome
from grass.model.addresses import Address
from grass.tls.server import ServerIdentity, identity
from tests.support.patience import PATIENCE_S

Refusal = Callable[[ServerConnection, Request], Response | None]


def an_identity(folder: Path) -> ServerIdentity:
    """Return a broker's own key, made in a folder at the first call."""
    return identity(str(folder), None, lambda: None)


class FarBroker:
    """Keeps connections and the messages that arrive."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections: list[ServerConnection] = []
        self.heard: list[ToBroker] = []
        self.news = asyncio.Condition()
        self.refusal: Response | None = None
        self.answers = True
        self.brokers: tuple[str, ...] = ()
        self.port = 0
        self.server: Server

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until a condition holds; checked after every event."""
        async with asyncio.timeout(PATIENCE_S), self.news:
            await self.news.wait_for(lambda: bool(holds()))

    async def until_heard(self, kind: type[ToBroker], count: int = 1) -> None:
        await self.until(lambda: self.count(kind) >= count)

    def count(self, kind: type[ToBroker]) -> int:
        return sum(isinstance(message, kind) for message in self.heard)

    async def say(self, *messages: ToWorker) -> None:
        for frame in encode(messages):
            await self.connections[-1].send(frame)

    async def notify(self) -> None:
        async with self.news:
            self.news.notify_all()

    async def serve_link(self, connection: ServerConnection) -> None:
        self.connections.append(connection)
        await self.notify()
        try:
            async for frame in connection:
                assert isinstance(frame, bytes)
                for message in decoder_to_broker.decode(frame):
                    await self.take(message)
        except ConnectionClosed:
            pass

    async def take(self, message: ToBroker) -> None:
        self.heard.append(message)
        if isinstance(message, Hello) and self.answers:
            await self.say(Welcome("c" * 16, at=message.at, brokers=self.brokers))
        if isinstance(message, Heartbeat) and self.answers:
            await self.say(Heard(message.at))
        await self.notify()

    async def on_request(
        self, _: ServerConnection, request: Request
    ) -> Response | None:
        self.requests.append(request)
        await self.notify()
        return self.refusal


@asynccontextmanager
async def far_broker(
    context: ssl.SSLContext, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[FarBroker]:
    """Serve until the end of the block; every connection is then cut."""
    broker = FarBroker()
    server = await serve(
        broker.serve_link,
        host,
        port,
        ssl=context,
        process_request=broker.on_request,
        max_size=LARGEST_FRAME,
        compression="deflate",
        ping_interval=None,
    )
    broker.server = server
    broker.port = next(iter(server.sockets)).getsockname()[1]
    try:
        yield broker
    finally:
        for connection in broker.connections:
            connection.transport.abort()
        server.close()
        await server.wait_closed()
