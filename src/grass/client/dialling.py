"""From an address to a connected socket, whichever of its meanings answers.

A name may stand for several places, IPv4 and IPv6, of which some lead nowhere. They are
tried in the resolver's order, each with a small head start over the next one; the first
that answers is taken. Names are resolved anew each time.
"""

from __future__ import annotations

import os
import select
import socket
import time
from errno import EINPROGRESS

from grass.errors import NoBroker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grass.model.addresses import Address

    Place = tuple[socket.AddressFamily, Any]

PATIENCE_S = 10.0
"""How long a connection with its handshake may take, wherever it is looked for."""

_HEAD_START_S = 0.25
_HINT = "is its daemon running there, and is the port open to this machine?"
_OTHER_NAME = (
    "start the broker with --advertise HOST:PORT, a name or address that is known here"
)
_QUIET_S = 15
"""A connection on which nothing moves is asked for a sign of life this often."""
_DEAD_MS = 30_000


def dial(address: Address) -> socket.socket:
    """Return a connected socket; it notices when the other machine is gone."""
    attempts = _Attempts(_places(address))
    try:
        channel = attempts.first(time.monotonic() + PATIENCE_S)
    finally:
        attempts.close()
    if channel is None:
        raise unreachable(address, attempts.trouble)
    _keep_alive(channel)
    return channel


def unreachable(address: Address, why: str, hint: str = _HINT) -> NoBroker:
    """Say which broker cannot be reached, and why."""
    return NoBroker(f"the broker at {address} cannot be reached: {why}", hint)


class _Attempts:
    """Connections that are being made."""

    def __init__(self, places: list[Place]) -> None:
        self.trouble = f"no answer within {PATIENCE_S:g} s"
        self._places = places
        self._open: dict[int, socket.socket] = {}

    def first(self, deadline: float) -> socket.socket | None:
        """Return the first socket that is connected; None when none will be."""
        while self._places or self._open:
            self._begin()
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            found = self._wait(min(left, _HEAD_START_S) if self._places else left)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        """Give up what is still open."""
        for channel in self._open.values():
            channel.close()

    def _begin(self) -> None:
        if not self._places:
            return
        family, place = self._places.pop(0)
        try:
            channel = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # a kernel without IPv6
            self.trouble = _said(error)
            return
        self._open[channel.fileno()] = channel
        channel.setblocking(False)
        number = channel.connect_ex(place)
        if number not in (0, EINPROGRESS):
            self._drop(channel, number)

    def _wait(self, wait_s: float) -> socket.socket | None:
        poll = select.poll()
        for number in self._open:
            poll.register(number, select.POLLOUT)
        for number, _ in poll.poll(1000 * wait_s) if self._open else ():
            channel = self._open[number]
            failed = channel.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not failed:
                return self._open.pop(number)
            self._drop(channel, failed)
        return None

    def _drop(self, channel: socket.socket, number: int) -> None:
        self.trouble = os.strerror(number).lower()
        del self._open[channel.fileno()]
        channel.close()


def _places(address: Address) -> list[Place]:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise unreachable(address, _said(error), _OTHER_NAME) from None
    return [(family, place) for family, _, _, _, place in found]


def _said(error: Exception) -> str:
    told = error.strerror if isinstance(error, OSError) else None
    return (told or "there is no such name").lower()


def _keep_alive(channel: socket.socket) -> None:
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    tcp = socket.IPPROTO_TCP
    channel.setsockopt(tcp, socket.TCP_KEEPIDLE, _QUIET_S)
    channel.setsockopt(tcp, socket.TCP_KEEPINTVL, _QUIET_S // 3)
    channel.setsockopt(tcp, socket.TCP_KEEPCNT, 3)
    channel.setsockopt(tcp, socket.TCP_USER_TIMEOUT, _DEAD_MS)
    channel.setsockopt(tcp, socket.TCP_NODELAY, 1)
