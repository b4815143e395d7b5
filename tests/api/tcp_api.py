"""A broker's TCP server on loopback with real TLS, and its clients."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.calling import Api, play
from tests.support.patience import PATIENCE_S

from grass.api.server.listen_sockets import bound
from grass.api.server.tcp_server import TcpServer
from grass.api.server.unix_listener import listen
from grass.api.server.unix_server import ApiServer
from grass.api.tcp_connections import TcpConnections
from grass.config import API_PREFIX
from grass.model.addresses import Address
from grass.tls.pins import client_context
from grass.tls.server import identity

HOST = "127.0.0.1"


class Reply(NamedTuple):
    """What came back from the tcp."""

    status: int
    headers: dict[str, str]
    document: Any


class Visit:
    """One connection to the tcp."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(
        self, method: str, path: str, body: object = None, token: str | None = None
    ) -> Reply:
        """Send one request and read its reply."""
        data = b"" if body is None else json.dumps(body).encode()
        shown = "" if token is None else f"Authorization: Bearer {token}\r\n"
        head = f"{method} {API_PREFIX}{path} HTTP/1.1\r\nHost: x\r\n{shown}"
        head += f"Content-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        return await self.reply()

    async def reply(self) -> Reply:
        """Read a reply that has a length."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        pairs = [line.partition(": ") for line in lines]
        headers = {name.lower(): value for name, _, value in pairs}
        data = await self.reader.readexactly(int(headers["content-length"]))
        is_json = "json" in headers["content-type"]
        document = json.loads(data) if is_json else data
        return Reply(int(first.split()[1]), headers, document)

    async def is_hung_up(self) -> bool:
        """Read until the other side hangs up."""
        try:
            while await self.reader.read(65536):
                pass
        except OSError:
            pass
        return True

    def close(self) -> None:
        self.writer.transport.abort()


class TcpApi:
    """A running TCP server."""

    def __init__(self, api: Api, port: int, server: ApiServer) -> None:
        self.api = api
        self.port = port
        self.connections = server.server_state.connections
        """The protocols of all connections that are not lost."""
        self.visits: list[Visit] = []

    @property
    def tcp_connections(self) -> TcpConnections:
        connections = self.api.app.state.api.connections
        assert isinstance(connections, TcpConnections)
        return connections

    async def plain(self, host: str = HOST) -> Visit:
        """Connect without TLS, from an address of the loopback network."""
        return await self._opened(None, host)

    async def visit(self, host: str = HOST) -> Visit:
        """Connect as a client does."""
        return await self._opened(client_context(), host)

    async def _opened(self, tls: ssl.SSLContext | None, host: str) -> Visit:
        opened = await asyncio.open_connection(
            HOST, self.port, ssl=tls, local_addr=(host, 0)
        )
        self.visits.append(Visit(*opened))
        return self.visits[-1]

    async def overview(self, token: str) -> int:
        """Ask something on a connection of its own; give the status."""
        visit = await self.visit()
        reply = await visit.ask("GET", "/overview", token=token)
        visit.close()
        return reply.status


Story = Callable[[TcpApi], Awaitable[None]]


def over_tcp(
    folder: Path,
    story: Story,
    run: Callable[..., None] = asyncio.run,
    patience_s: float = PATIENCE_S,
) -> None:
    """Serve while the story runs."""
    tls = identity(str(folder), None, lambda: None).context

    async def inside(api: Api) -> None:
        server = ApiServer(api.app)
        listeners = bound(Address(HOST, 0))
        port = listeners[0].getsockname()[1]
        tasks = [
            asyncio.create_task(server.serve_on(listen(str(folder / "s")))),
            asyncio.create_task(TcpServer(server, tls).serve(listeners)),
        ]
        tcp = TcpApi(api, port, server)
        try:
            await story(tcp)
        finally:
            for visit in tcp.visits:
                visit.close()
            server.stop()
            await asyncio.gather(*tasks)

    play(folder, inside, run, patience_s)
