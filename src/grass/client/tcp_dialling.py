"""TCP connections that are made side by side, to whichever place answers first.

A name may stand for several places, IPv4 and IPv6, of which some lead nowhere. Each is
given a small head start over the next one. Names are resolved anew each time.
"""

from __future__ import annotations

import os
import select
import socket
import time
from errno import EINPROGRESS
from typing import TYPE_CHECKING, Any, NamedTuple

from grass.errors import GrassError, NoBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grass.model.addresses import Address

    OnWait = Callable[[], object]
    """Called again and again while a connection is being made."""

HEAD_START_S = 0.25
_HINT = "is its daemon running there, and is the port open to this machine?"
_OTHER_NAME = (
    "start the broker with --advertise HOST:PORT, a name or address that is known here"
)
_QUIET_S = 15
"""How long a connection may be idle before the kernel probes the other side."""
_DEAD_MS = 30_000


def unreachable(address: Address, why: str, hint: str = _HINT) -> NoBroker:
    """Return the error that says why no broker was reached at an address."""
    return NoBroker(f"the broker at {address} cannot be reached: {why}", hint)


class Dialled(NamedTuple):
    """A socket that is connected, and the address that it leads to."""

    address: Address
    channel: socket.socket


class TcpDialler:
    """TCP connections that are being made to the places of several addresses."""

    def __init__(self, addresses: Sequence[Address], on_wait: OnWait) -> None:
        self._on_wait = on_wait
        self.errors: dict[Address, GrassError] = {}
        """What went wrong at each address."""
        self._unresolved = list(addresses)
        self._places: list[tuple[Address, socket.AddressFamily, Any]] = []
        self._pending: dict[int, Dialled] = {}

    @property
    def is_exhausted(self) -> bool:
        """Tell whether there is no other place to try."""
        return not (self._unresolved or self._places or self._pending)

    def next(self, deadline: float) -> Dialled | None:
        """Return the next socket that is connected; None when there will be none."""
        while not self.is_exhausted:
            self._begin_one()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            found = self._poll(min(left_s, HEAD_START_S))
            if found is not None:
                keep_alive(found.channel)
                return found
            self._on_wait()
        return None

    def close(self) -> None:
        """Give up what is still being made."""
        for one in self._pending.values():
            one.channel.close()

    def _begin_one(self) -> None:
        if not self._places and self._unresolved:
            self._resolve(self._unresolved.pop(0))
        if not self._places:
            return
        address, family, place = self._places.pop(0)
        try:
            channel = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # a kernel without IPv6
            self.errors[address] = unreachable(address, _reason(error))
            return
        self._pending[channel.fileno()] = one = Dialled(address, channel)
        channel.setblocking(False)
        number = channel.connect_ex(place)
        if number not in (0, EINPROGRESS):
            self._drop(one, number)

    def _resolve(self, address: Address) -> None:
        host, port = address
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = _reason(error)
            self.errors[address] = unreachable(address, reason, _OTHER_NAME)
            return
        self._places = [(address, family, place) for family, _, _, _, place in found]

    def _poll(self, wait_s: float) -> Dialled | None:
        poll = select.poll()
        for number in self._pending:
            poll.register(number, select.POLLOUT)
        for number, _ in poll.poll(1000 * wait_s) if self._pending else ():
            one = self._pending[number]
            failed = one.channel.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not failed:
                return self._pending.pop(number)
            self._drop(one, failed)
        return None

    def _drop(self, one: Dialled, number: int) -> None:
        reason = os.strerror(number).lower()
        self.errors[one.address] = unreachable(one.address, reason)
        del self._pending[one.channel.fileno()]
        one.channel.close()


def _reason(error: Exception) -> str:
    told = error.strerror if isinstance(error, OSError) else None
    return (told or "there is no such name").lower()


def keep_alive(channel: socket.socket) -> None:
    """Let the kernel notice when the other machine is gone."""
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    tcp = socket.IPPROTO_TCP
    channel.setsockopt(tcp, socket.TCP_KEEPIDLE, _QUIET_S)
    channel.setsockopt(tcp, socket.TCP_KEEPINTVL, _QUIET_S // 3)
    channel.setsockopt(tcp, socket.TCP_KEEPCNT, 3)
    channel.setsockopt(tcp, socket.TCP_USER_TIMEOUT, _DEAD_MS)
    channel.setsockopt(tcp, socket.TCP_NODELAY, 1)
