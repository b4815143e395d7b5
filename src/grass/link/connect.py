"""Opens a connection to a broker: resolve, connect, TLS, the pin, the WebSocket.

Names are resolved each time, and all their addresses are tried, IPv4 and IPv6. Nothing
is sent before the other side has proved the pinned key. Errors are of two kinds:
`NoBroker` where a retry may succeed, and `Untrusted` or `Refused` (also `Unauthorized`
and `Forbidden`) where a person has to fix something.
"""

import asyncio
import json
import logging
import os
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedOK,
    InvalidStatus,
    WebSocketException,
)
from websockets.uri import parse_uri

import grass
from grass.errors import (
    Forbidden,
    GrassError,
    LeadLost,
    NoBroker,
    Refused,
    Unauthorized,
    Untrusted,
)
from grass.link.frames import LARGEST_FRAME, decoder_to_worker
from grass.link.messages import ToBroker, ToWorker
from grass.link.remote_end import WORKER_HEADER, RemoteEnd
from grass.model.addresses import Address
from grass.tls.pins import check_certificate, check_pin, client_context

PATH = "/api/v1/link"
OPEN_S = 10.0
"""The time limit of each: resolving, connecting, and TLS with the upgrade."""
CLOSE_S = 1.0
UNSENT_IN_KERNEL = 64 * 1024
"""Bytes that the kernel buffers unsent: heartbeats wait behind them."""
_NOT_SENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)

_quiet = logging.getLogger("grass.link.websocket")
# At level DEBUG the library logs headers, and so the token.
_quiet.setLevel(logging.WARNING)


class ResolvedAddress(NamedTuple):
    """An address, and one socket address that it was resolved to."""

    address: Address
    family: int
    socket_address: Any


class Credential(NamedTuple):
    """The pin that the broker must prove, and what the worker presents."""

    pin: str
    token: str
    worker: str


async def resolve(address: Address) -> list[ResolvedAddress]:
    """Return every place that an address resolves to, none of them twice."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(OPEN_S):
            found = await loop.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM
            )
    except TimeoutError:
        raise _unknown_name(address, "in time") from None
    except socket.gaierror as error:
        raise _unknown_name(address, f"({error.strerror})") from None
    except (OSError, UnicodeError) as error:
        raise _unknown_name(address, f"({error})") from None
    places = [
        ResolvedAddress(address, family, where) for family, _, _, _, where in found
    ]
    return list(dict.fromkeys(places))


async def open_websocket(
    place: ResolvedAddress, credential: Credential, limit_s: float = OPEN_S
) -> ClientConnection:
    """Connect to one place, check the pin, and upgrade to a WebSocket."""
    try:
        async with asyncio.timeout(limit_s):
            stream = await _connected(place)
        async with asyncio.timeout(limit_s):
            return await _upgraded(place, stream, credential)
    except TimeoutError:
        raise _unreachable(place.address, "it does not answer in time") from None
    except ssl.SSLError as error:
        reason = f"TLS fails ({error.reason or error})"
        raise _unreachable(place.address, reason) from None
    except OSError as error:
        raise _unreachable(place.address, _words(error)) from None
    except InvalidStatus as error:
        raise _refusal(place.address, error.response) from None
    except (WebSocketException, ValueError) as error:
        # A redirect, an invalid answer, or a name that TLS or a URI does not accept.
        reason = f"it does not answer as a broker does ({error})"
        raise _unreachable(place.address, reason) from None


def worker_end(websocket: ClientConnection) -> RemoteEnd[ToBroker, ToWorker]:
    """Make the worker's end of a link over a WebSocket."""

    async def send(frame: bytes) -> None:
        try:
            await websocket.send(frame)
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from None

    async def receive() -> bytes | None:
        try:
            return await websocket.recv(decode=False)
        except ConnectionClosedOK:
            return None
        except ConnectionClosed as error:
            raise ConnectionError(one_line(str(error))) from None

    return RemoteEnd(send, receive, decoder_to_worker)


async def close_websocket(websocket: ClientConnection) -> None:
    """Close a WebSocket, with a handshake if the other side answers in time."""
    try:
        async with asyncio.timeout(CLOSE_S):
            # The library's own time limit does not cover a peer that reads nothing.
            await websocket.close(1001)
    except TimeoutError:
        pass
    finally:
        websocket.transport.abort()


async def _connected(place: ResolvedAddress) -> socket.socket:
    stream = socket.socket(place.family, socket.SOCK_STREAM)
    try:
        stream.setblocking(False)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.setsockopt(socket.IPPROTO_TCP, _NOT_SENT_LOWAT, UNSENT_IN_KERNEL)
        await asyncio.get_running_loop().sock_connect(stream, place.socket_address)
    except BaseException:
        stream.close()
        raise
    return stream


async def _upgraded(
    place: ResolvedAddress, stream: socket.socket, credential: Credential
) -> ClientConnection:
    def connection() -> ClientConnection:
        uri = parse_uri(f"wss://{place.address._replace(host=host)}{PATH}")
        protocol = ClientProtocol(uri, max_size=LARGEST_FRAME, logger=_quiet)
        return ClientConnection(protocol, ping_interval=None, close_timeout=CLOSE_S)

    host = place.address.host.partition("%")[0]
    loop = asyncio.get_running_loop()
    transport, websocket = await loop.create_connection(
        connection, sock=stream, ssl=client_context(), server_hostname=host
    )
    try:
        _check_pin(place.address, transport, credential.pin)
        headers = {
            "Authorization": f"Bearer {credential.token}",
            WORKER_HEADER: credential.worker,
        }
        await websocket.handshake(headers, f"grass/{grass.__version__}")
    except BaseException:
        transport.abort()
        raise
    return websocket


def _check_pin(address: Address, transport: asyncio.Transport, pin: str) -> None:
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert(binary_form=True)
    if certificate is None:
        raise Untrusted(f"the broker at {address} shows no certificate")
    try:
        proved = check_certificate(certificate, time.time())
    except Untrusted as error:
        raise Untrusted(f"{address}: {error.message}", error.hint) from None
    check_pin(address, proved, pin)


def _refusal(address: Address, response: Any) -> GrassError:  # noqa: ANN401
    """Make of an answer that is no upgrade an error that says what the broker said."""
    kinds: dict[int, type[GrassError]] = {401: Unauthorized, 403: Forbidden}
    status = response.status_code
    detail, hint, leader = _problem(response.body)
    if leader is not None:
        lost = LeadLost(f"the broker at {address} does not lead: {detail}", hint)
        lost.leader = leader
        return lost
    if status == 404:
        return Refused(f"what answers at {address} is no broker that workers can dial")
    if status not in kinds:
        reason = f"it answers with status {status} {detail}".strip()
        return _unreachable(address, reason)
    detail = detail or "it does not take this machine's token"
    return kinds[status](
        f"the broker at {address} refuses: {detail}",
        hint or "join it again: grass join HOST:PORT/PIN/CODE",
    )


def _problem(body: Iterable[int]) -> tuple[str, str, str | None]:
    """Read detail and hint of a problem document, if the body is one.

    The third is where the leader is, if it is the problem that another broker leads.
    """
    try:
        problem = json.loads(bytes(body))
    except (ValueError, RecursionError):
        return "", "", None
    if not isinstance(problem, dict):
        return "", "", None
    leads = problem.get("code") == LeadLost.code
    leader = one_line(problem.get("leader")) if leads else None
    return one_line(problem.get("detail")), one_line(problem.get("hint")), leader


def one_line(text: object) -> str:
    """Make one printable line of bounded length from another machine's text."""
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return "".join(filter(str.isprintable, line))[:300]


def _words(error: OSError) -> str:
    if error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error) or "it closes the connection"


def _unreachable(address: Address, reason: str) -> NoBroker:
    return NoBroker(f"the broker at {address} cannot be reached: {reason}")


def _unknown_name(address: Address, how: str) -> NoBroker:
    return NoBroker(
        f"the broker at {address} cannot be reached: its name is not resolved {how}",
        "start the broker with --advertise HOST:PORT, a name or address known here",
    )
