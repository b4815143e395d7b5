"""The dashboard of another machine's broker, served on loopback by a command.

The command serves the same files as a daemon would, and passes each call of the page on
to the broker, with the token with which the user who typed it has joined. So a page may
do there what that user may, and nothing goes through the machine's own daemon. The
cookie, and all else that the browser sends of itself, stays here. A few connections are
kept for the next calls, as each costs a handshake.
"""

import asyncio
import secrets
import signal
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from grass.api.access.web_sessions import KEY_BYTES, Sessions
from grass.api.context import WebLink
from grass.api.problem import problem_response
from grass.api.server.cancellation import StreamAborted
from grass.api.server.request_body import LARGEST_BODY
from grass.api.server.web_apps import on_loopback
from grass.api.server.web_server import WebServer
from grass.client.tcp_dialling import HEAD_START_S, keep_alive
from grass.client.tls_connection import CONNECT_S, BrokerRoute
from grass.daemon.web_host import page_sockets
from grass.errors import GrassError, NoBroker, TooLarge, UsageError
from grass.model.addresses import Address, is_loopback
from grass.tls.pins import check_certificate, client_context

if TYPE_CHECKING:
    from grass.client.tls_connection import FindToken

SENT = ("accept", "content-type", "last-event-id")
"""Headers of the page's calls that the broker gets."""
NOT_PASSED = ("connection", "keep-alive", "set-cookie", "transfer-encoding")
"""Headers of the broker that the page does not get."""
PIECE = 64 * 1024
MOST_KEPT = 4
_BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)
"""What a connection raises on which no whole reply comes."""


async def serve_page(
    route: BrokerRoute, address: Address, on_ready: Callable[[dict[str, Any]], None]
) -> None:
    """Serve the page of a broker until the process is interrupted.

    `on_ready` is called with the link, a document as `POST /web` answers with.
    """
    if not is_loopback(address.host):
        raise UsageError(
            f"the page of {route.place} is served on loopback here, not at"
            f" {address.host}",
            "type `grass web --host` on the broker's own machine",
        )
    listeners = page_sockets(address)
    address = address._replace(port=listeners[0].getsockname()[1])
    sessions = Sessions(secrets.token_bytes(KEY_BYTES))
    server = WebServer(on_loopback(Forwarder(route), sessions, address.host))
    await server.listen(listeners)
    token = sessions.new_one_time("forwarded", "admin", time.time())
    link = WebLink(f"http://{address}/login?token={token}", token, *address)
    on_ready(link._asdict())
    try:
        await _interrupted()
    finally:
        await server.close()


async def _interrupted() -> None:
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    await over.wait()


class Forwarder:
    """Passes calls on to a broker; an application like the API itself."""

    def __init__(self, route: BrokerRoute) -> None:
        self._route = route
        self._kept: list[_Upstream] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one call on, and its reply back as it comes."""
        request = Request(scope, receive)
        try:
            response = await self._forwarded(request)
        except ClientDisconnect:
            return
        except GrassError as error:
            response = problem_response(error)
        await response(scope, receive, send)

    async def _forwarded(self, request: Request) -> Response:
        body = await _body(request)
        # A kept connection may just end; only what reads can be sent again.
        if request.method == "GET" and (kept := self._take_kept()) is not None:
            with suppress(*_BROKEN):
                return await self._asked(kept, request, body)
        try:
            return await self._asked(await _connected(self._route), request, body)
        except _BROKEN:
            raise NoBroker(
                f"the broker at {self._route.place} went away before it answered"
            ) from None

    async def _asked(
        self, upstream: "_Upstream", request: Request, body: bytes
    ) -> Response:
        try:
            upstream.writer.write(_head(request, upstream.token, len(body)) + body)
            await upstream.writer.drain()
            status, headers = await _read_head(upstream.reader)
        except BaseException:
            upstream.writer.close()
            raise
        passed = {k: v for k, v in headers.items() if k not in NOT_PASSED}
        return StreamingResponse(self._passed_on(upstream, headers), status, passed)

    async def _passed_on(
        self, upstream: "_Upstream", headers: dict[str, str]
    ) -> AsyncIterator[bytes]:
        """Yield the body of a reply; one that breaks off is aborted here as well."""
        is_whole = False
        try:
            async for piece in _pieces(upstream.reader, headers):
                yield piece
            is_whole = headers.get("connection", "") != "close"
        except (OSError, EOFError, ValueError):
            raise StreamAborted from None
        finally:
            if is_whole and len(self._kept) < MOST_KEPT:
                self._kept.append(upstream)
            else:
                upstream.writer.close()

    def _take_kept(self) -> "_Upstream | None":
        """Return a connection to the broker that is still joined, with its token."""
        addresses, find_token = self._route.target()
        while self._kept:
            one = self._kept.pop()
            if one.address in addresses and not one.reader.at_eof():
                with suppress(GrassError):
                    return one._replace(token=find_token(one.address, one.pin))
            one.writer.close()
        return None


class _Upstream(NamedTuple):
    """A connection to the broker."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str | None
    address: Address
    pin: str


async def _connected(route: BrokerRoute) -> _Upstream:
    """Connect where the broker is found; what was joined is read anew each time."""
    addresses, find_token = route.target()
    errors: list[GrassError] = []
    for address in addresses:
        try:
            return await _connected_at(address, find_token)
        except GrassError as error:
            errors.append(error)
    raise errors[0]


async def _connected_at(address: Address, find_token: "FindToken") -> _Upstream:
    """Connect, and send nothing before the broker has proved its key."""
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                address.host.partition("%")[0],
                address.port,
                ssl=client_context(),
                happy_eyeballs_delay=HEAD_START_S,
            )
    except (OSError, ValueError) as error:
        # A name that is no name is a ValueError.
        why = str(error) or f"no answer within {CONNECT_S:g} s"
        raise NoBroker(f"the broker at {address} cannot be reached: {why}") from None
    try:
        keep_alive(writer.get_extra_info("socket"))
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) or b""
        pin = check_certificate(certificate, time.time())
        token = find_token(address, pin)
    except GrassError:
        writer.close()
        raise
    return _Upstream(reader, writer, token, address, pin)


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > LARGEST_BODY:
            raise TooLarge(f"the request is larger than {LARGEST_BODY} bytes")
    return bytes(data)


def _head(request: Request, token: str | None, length: int) -> bytes:
    path = request.scope["raw_path"].decode("ascii")
    query = request.scope["query_string"].decode("ascii")
    lines = [f"{request.method} {path}{'?' if query else ''}{query} HTTP/1.1"]
    lines += ["Host: grass", f"Content-Length: {length}"]
    lines += [] if token is None else [f"Authorization: Bearer {token}"]
    told = {name: request.headers.get(name) for name in SENT}
    lines += [f"{name}: {value}" for name, value in told.items() if value is not None]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
    fields = [line.partition(":") for line in rest]
    return int(first.split(" ")[1]), {k.lower(): v.strip() for k, _, v in fields}


async def _pieces(
    reader: asyncio.StreamReader, headers: dict[str, str]
) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding") != "chunked":
        async for piece in _exactly(reader, int(headers.get("content-length", "0"))):
            yield piece
        return
    while size := int((await reader.readline()).partition(b";")[0], 16):
        async for piece in _exactly(reader, size):
            yield piece
        await reader.readline()
    await reader.readline()


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        piece = await reader.read(min(size, PIECE))
        if not piece:
            raise EOFError
        size -= len(piece)
        yield piece
