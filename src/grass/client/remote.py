"""The way to a broker on another machine: TLS, its key, and this machine's token.

TLS proves that the other side holds a key, and the key says which broker it is: nothing
is sent, above all no token, before it is that of a broker that this machine has joined.
Addresses prove nothing. Whoever needs none of this does not import `ssl`.
"""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING

from grass.client.connection import Connection
from grass.client.credentials import Credentials
from grass.client.dialling import PATIENCE_S, dial, unreachable
from grass.client.racing import first_found
from grass.errors import GrassError, NoBroker, Untrusted, UsageError
from grass.model.addresses import read_address
from grass.tls.client import check_certificate, check_pin, client_context

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from grass.client.credentials import Known
    from grass.config import Home
    from grass.model.addresses import Address, Invitation

_LEAST_S = 1.0
"""A handshake is given this long, also where connecting took all the time."""

_JOIN = "paste the line that it prints: grass join HOST:PORT/PIN/CODE"


class Route:
    """The way that a client goes each time it has to connect."""

    def __init__(self, place: str, open: Callable[[], Connection]) -> None:
        self.place = place
        self.open = open


def route(home: Home, asked: str | None, origin: str) -> Route | None:
    """Choose the way to the broker that was asked for, or else to the joined one.

    What was joined is read anew for each connection: a token may have been renewed.
    """
    if asked is None:
        known = Credentials.load(home).current()
        return None if known is None else Route(known.place, lambda: _current(home))
    try:
        addresses = [read_address(text) for text in asked.split(",")]
    except UsageError as error:
        raise UsageError(f"{origin}: {error.message}", error.hint) from None
    place = ",".join(map(str, addresses))
    return Route(place, lambda: _first_of(addresses, Credentials.load(home)))


def invited(home: Home, invitation: Invitation) -> Route:
    """Give the way to the broker of an invitation.

    A machine that has joined it before shows the token that it has: nobody else gets
    another for its worker.
    """
    address, pin = invitation.address, invitation.pin
    before = Credentials.load(home).by_pin(pin)
    token = None if before is None else before.token
    return Route(str(address), lambda: _open(address, pin, token))


def open_broker(address: Address, credentials: Credentials) -> Connection:
    """Connect to whichever of the joined brokers answers at an address."""
    channel, pin = _secured(address)
    known = credentials.by_pin(pin)
    if known is None:
        channel.close()
        raise Untrusted(
            f"the broker at {address} proves the key {pin}, which this machine has not "
            "joined",
            f"{_JOIN}; on its own machine leave --broker out",
        )
    return SecureConnection(channel, known.token)


def open_joined(known: Known) -> Connection:
    """Connect to a joined broker at whichever of its addresses it is found."""
    return first_found(known.addresses, lambda one: _open(one, known.pin, known.token))


class SecureConnection(Connection):
    """A connection over TLS; a token, where there is one, goes with every request."""

    NOTHING_THERE = ssl.SSLWantReadError

    def __init__(self, channel: ssl.SSLSocket, token: str | None) -> None:
        super().__init__(channel)
        if token is not None:
            self._fields += f"Authorization: Bearer {token}\r\n"


def _current(home: Home) -> Connection:
    known = Credentials.load(home).current()
    if known is None:
        raise NoBroker("this machine has left its broker", _JOIN)
    return open_joined(known)


def _first_of(addresses: Sequence[Address], credentials: Credentials) -> Connection:
    return first_found(addresses, lambda one: open_broker(one, credentials))


def _open(address: Address, pin: str, token: str | None) -> Connection:
    channel, proved = _secured(address)
    try:
        check_pin(address, proved, pin)
    except Untrusted:
        channel.close()
        raise
    return SecureConnection(channel, token)


def _secured(address: Address) -> tuple[ssl.SSLSocket, str]:
    """Return a socket under TLS, and the pin of the key that was proved."""
    deadline = time.monotonic() + PATIENCE_S
    plain = dial(address)
    try:
        return _shaken(plain, deadline)
    except TimeoutError:
        why = f"no TLS within {PATIENCE_S:g} s"
    except ssl.SSLError as error:
        reason = (error.reason or "it hung up").lower().replace("_", " ")
        why = f"what answers there does not speak TLS 1.3 ({reason})"
    except OSError as error:
        why = (error.strerror or "it hung up").lower()
    except GrassError as error:
        plain.close()
        raise type(error)(f"{address}: {error.message}", error.hint) from None
    plain.close()
    raise unreachable(address, why)


def _shaken(plain: socket.socket, deadline: float) -> tuple[ssl.SSLSocket, str]:
    plain.settimeout(max(_LEAST_S, deadline - time.monotonic()))
    channel = client_context().wrap_socket(plain)
    certificate = channel.getpeercert(binary_form=True)
    try:
        pin = check_certificate(certificate or b"", time.time())
    except GrassError:
        channel.close()
        raise
    channel.settimeout(None)
    return channel, pin
