"""Serves browsers on loopback, inside an event loop that others use as well.

Beyond loopback `tls_web_server` does. Loopback is open to every user of a machine, and
a browser sends a cookie to every port of a host. So the kernel is asked whose process
is at the other end of a connection: those of other users are refused, whatever they
show.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from grass.api.server.unix_server import PeerProtocol, quiet_log, server_config
from grass.api.server.web_app import OTHERS

LARGEST_HEAD = 64 * 1024
"""In bytes, path and headers together."""
ESTABLISHED = "01"
"""Of another state the kernel does not tell whose connection it is."""

MOST_CONNECTIONS = 512
MOST_OF_OTHERS = 16
"""How many connections of other users are told that they are refused."""
FIRST_REQUEST_S = 10.0
"""How long a connection may be open without a request."""

_library_log = quiet_log("grass.api.web")


class WebProtocol(PeerProtocol):
    """HTTP on loopback; `open` has all connections, and whether they are others'."""

    largest_head = LARGEST_HEAD

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Find out whose connection it is."""
        super().connection_made(transport)
        self.logger = _library_log
        others = not _is_own(transport)
        self.app_state = {**self.app_state, OTHERS: others}
        self._open[transport] = others
        if len(self._open) > MOST_CONNECTIONS or (
            others and sum(self._open.values()) > MOST_OF_OTHERS
        ):
            transport.abort()
        else:
            self.loop.call_later(FIRST_REQUEST_S, self._end_unused)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._open.pop(self.transport, None)
        super().connection_lost(exc)

    def _end_unused(self) -> None:
        if self.cycle is None:
            self.transport.abort()

    @property
    def _open(self) -> dict[asyncio.Transport, bool]:
        connections: dict[asyncio.Transport, bool] = self.app_state["open"]
        return connections


class WebServer:
    """Serves one application on loopback."""

    def __init__(self, app: ASGIApp, server_state: ServerState | None = None) -> None:
        """Prepare; who has `server_state` ends requests when everything stops."""
        self._config = web_config(app, WebProtocol)
        self._server_state = server_state or ServerState()
        self._servers: list[asyncio.Server] = []
        self._open: dict[asyncio.Transport, bool] = {}

    async def listen(self, listeners: Sequence[socket.socket]) -> None:
        """Answer on these sockets from now on."""
        loop = asyncio.get_running_loop()
        for one in listeners:
            self._servers.append(await loop.create_server(self._protocol, sock=one))

    async def close(self) -> None:
        """Stop listening, and cut every connection."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        cut(self._open)
        # uvloop closes a socket in its next turn, and another may want the port.
        await asyncio.sleep(0)

    def _protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = WebProtocol(
            self._config, self._server_state, {"open": self._open}
        )
        return protocol


def cut(connections: Iterable[asyncio.Transport]) -> None:
    """Close connections, whatever is being sent."""
    for transport in list(connections):
        transport.abort()


def web_config(app: ASGIApp, protocol: type[PeerProtocol]) -> uvicorn.Config:
    """Return how uvicorn serves browsers."""
    config = server_config(app, protocol)
    config.load()
    return config


def _is_own(transport: asyncio.Transport) -> bool:
    """Return whether a process of this user or root has made a connection.

    A kernel that does not list connections cannot tell: then the cookie decides.
    """
    near, far = (transport.get_extra_info(name) for name in ("sockname", "peername"))
    if near is None or far is None:
        return False
    try:
        uid = _uid_of(far, near)
    except FileNotFoundError:
        return True
    return uid in (0, os.geteuid())


def _uid_of(near: Any, far: Any) -> int | None:  # noqa: ANN401 -- socket addresses
    """Return whose socket it is that has these two ends; None: there is none."""
    is_ipv4 = ":" not in near[0]
    ends = [_listed(near), _listed(far)]
    with open("/proc/net/tcp" if is_ipv4 else "/proc/net/tcp6") as file:
        for line in file:
            words = line.split()
            if words[1:3] == ends and words[3] == ESTABLISHED:
                return int(words[7])
    return None


def _listed(address: Any) -> str:  # noqa: ANN401 -- a socket address
    """Return an address as the kernel lists it: words of 32 bits, in its own order."""
    host, port = address[:2]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host.partition("%")[0])
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return f"{b''.join(words).hex().upper()}:{port:04X}"
