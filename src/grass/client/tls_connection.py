"""Connections to a broker on another machine: TLS, its key, and this machine's token.

TLS proves that the other side holds a key, and the key says which broker it is: nothing
is sent, above all no token, before it is that of a broker that this machine has joined.
Addresses prove nothing.

A broker may have several addresses, which are connected to side by side
(`tcp_dialling`). Together they have the time that one alone would have.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from typing import TYPE_CHECKING, NamedTuple

from grass.client.connection import HttpConnection
from grass.client.credentials import Credentials
from grass.client.tcp_dialling import TcpDialler, unreachable
from grass.errors import GrassError, NoBroker, Unauthorized, Untrusted, UsageError
from grass.model.addresses import read_address
from grass.tls.pins import check_certificate, check_pin, client_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grass.client.credentials import JoinedBroker
    from grass.client.tcp_dialling import OnWait
    from grass.config import Home
    from grass.model.addresses import Address, Invitation

    FindToken = Callable[[Address, str], str | None]
    """Returns the token for the key that was proved at an address, or refuses it."""

CONNECT_S = 10.0
"""How long a connection with its handshake may take, wherever it is looked for."""
_HANDSHAKE_S = 2.0
"""How long a handshake may take while there are other places to try."""
_LEAST_S = 1.0
"""How long a handshake may take where connecting took all the time."""

_JOIN = "paste the line that it prints: grass join HOST:PORT/PIN/CODE"


class BrokerTarget(NamedTuple):
    """Where a broker may be found, and the token for it once it has proved its key."""

    addresses: Sequence[Address]
    find_token: FindToken


class BrokerRoute:
    """The way that a client goes each time it has to connect."""

    def __init__(
        self,
        place: str,
        open: Callable[[OnWait], HttpConnection],
        target: Callable[[], BrokerTarget],
    ) -> None:
        self.place = place
        self.open = open
        self.target = target
        """For who connects by other means than `open`."""

    @property
    def leads_to_several(self) -> bool:
        """Tell whether another broker may take over from the one that was found."""
        return len(self.target().addresses) > 1

    def open_beside(
        self, connection: HttpConnection, on_wait: OnWait
    ) -> HttpConnection:
        """Open another connection to the very broker that a connection leads to."""
        assert isinstance(connection, TlsConnection)
        find_token = self.target().find_token
        limit_s = _HANDSHAKE_S if self.leads_to_several else CONNECT_S
        return _open_first([connection.address], find_token, on_wait, limit_s)

    def leads_to(self, address: str) -> bool:
        """Tell whether this address is the one that is tried first."""
        return str(self.target().addresses[0]) == address


def route(home: Home, asked: str | None, origin: str) -> BrokerRoute | None:
    """Choose the way to the broker that was asked for, or else to the joined one.

    What was joined is read anew for each connection: a token may have been renewed.
    """
    if asked is None:
        known = Credentials.load(home).current()
        if known is None:
            return None
        return BrokerRoute(
            known.place,
            lambda on_wait: open_joined(_current(home), on_wait),
            lambda: _target_of(_current(home)),
        )
    try:
        addresses = [read_address(text) for text in asked.split(",")]
    except UsageError as error:
        raise UsageError(f"{origin}: {error.message}", error.hint) from None
    place = ",".join(map(str, addresses))
    return BrokerRoute(
        place,
        lambda on_wait: open_broker(addresses, Credentials.load(home), on_wait),
        lambda: BrokerTarget(addresses, _token_by_pin(Credentials.load(home))),
    )


def route_to_leader(home: Home, leader: str) -> BrokerRoute:
    """Return the way to the broker that leads, or to another one should it hang."""
    first = read_address(leader)
    known = Credentials.load(home).by_address(first)
    others = () if known is None else known.addresses
    places = dict.fromkeys((first, *others))
    found = route(home, ",".join(map(str, places)), "the leader")
    assert found is not None
    return found


def route_past(home: Home, asked: Address | None) -> BrokerRoute | None:
    """Return the way to the other brokers of a cluster, before the one that was asked.

    None: there are no others, or it is not known which cluster that is.
    """
    credentials = Credentials.load(home)
    known = credentials.own if asked is None else credentials.by_address(asked)
    others = [] if known is None else [one for one in known.addresses if one != asked]
    if not others:
        return None
    places = [*others, *([] if asked is None else [asked])]
    return route(home, ",".join(map(str, places)), "the cluster")


def address_of(connection: HttpConnection | None) -> Address | None:
    """Return where a connection leads to; None: to this machine's own daemon."""
    return connection.address if isinstance(connection, TlsConnection) else None


def invited(home: Home, invitation: Invitation) -> BrokerRoute:
    """Return the way to the broker of an invitation.

    A machine that has joined it before shows the token that it has: a new one for its
    worker is given to no other machine.
    """
    address, pin = invitation.address, invitation.pin
    before = Credentials.load(home).by_pin(pin)
    token = None if before is None else before.token
    find_token = _for_pin(pin, token)
    return BrokerRoute(
        str(address),
        lambda on_wait: _open_first([address], find_token, on_wait),
        lambda: BrokerTarget([address], find_token),
    )


def open_broker(
    addresses: Sequence[Address], credentials: Credentials, on_wait: OnWait
) -> HttpConnection:
    """Connect to whichever of the joined brokers answers at one of the addresses."""
    return _open_first(addresses, _token_by_pin(credentials), on_wait)


def _token_by_pin(credentials: Credentials) -> FindToken:
    def token(address: Address, pin: str) -> str:
        known = credentials.by_pin(pin)
        if known is None:
            raise Untrusted(
                f"the broker at {address} proves the key {pin}, which this machine has"
                " not joined",
                f"{_JOIN}; on its own machine leave --broker out",
            )
        return known.token

    return token


def open_joined(known: JoinedBroker, on_wait: OnWait) -> HttpConnection:
    """Connect to a joined broker at whichever of its addresses it is found."""
    return _open_first(*_target_of(known), on_wait)


def _target_of(known: JoinedBroker) -> BrokerTarget:
    return BrokerTarget(known.addresses, _for_pin(known.pin, known.token))


class TlsConnection(HttpConnection):
    """A connection over TLS; a token, where there is one, goes with every request."""

    NOTHING_THERE = ssl.SSLWantReadError

    def __init__(
        self, channel: ssl.SSLSocket, token: str | None, pin: str, address: Address
    ) -> None:
        super().__init__(channel)
        self._secure, self._token = channel, token
        self.address = address
        """Where the broker was found."""
        self.pin = pin
        """The key that the broker has proved."""
        if token is not None:
            self._fields += f"Authorization: Bearer {token}\r\n"

    def detached(self) -> tuple[ssl.SSLSocket, str | None]:
        """Hand over the socket and the token, to whom speaks another protocol."""
        return self._secure, self._token


def note_brokers(home: Home, connection: HttpConnection, told: str) -> None:
    """Note where the brokers of the cluster are that a connection leads to.

    The address in use is kept: this machine may know the brokers by other names. A
    standby's own socket tells of them, too, but is no way to them.
    """
    if not isinstance(connection, TlsConnection):
        return
    with contextlib.suppress(GrassError, OSError):
        addresses = [read_address(text) for text in told.split(",")]
        if connection.address not in addresses:
            addresses.insert(0, connection.address)
        Credentials.load(home).set_addresses(connection.pin, addresses)


def _current(home: Home) -> JoinedBroker:
    known = Credentials.load(home).current()
    if known is None:
        raise Unauthorized("this machine has left its broker", _JOIN)
    return known


def _for_pin(expected: str, token: str | None) -> FindToken:
    def find(address: Address, pin: str) -> str | None:
        check_pin(address, pin, expected)
        return token

    return find


def _open_first(
    addresses: Sequence[Address],
    find_token: FindToken,
    on_wait: OnWait,
    limit_s: float | None = None,
) -> HttpConnection:
    """Connect where it works; where it works nowhere, name all addresses."""
    deadline = time.monotonic() + (CONNECT_S if limit_s is None else limit_s)
    dialler = TcpDialler(addresses, on_wait)
    try:
        while (found := dialler.next(deadline)) is not None:
            most_s = CONNECT_S if dialler.is_exhausted else _HANDSHAKE_S
            left_s = min(most_s, deadline - time.monotonic())
            try:
                return _secure(*found, left_s, find_token)
            except (NoBroker, Untrusted) as error:
                dialler.errors[found.address] = error
    finally:
        dialler.close()
    raise _not_found(addresses, dialler.errors)


def _not_found(
    addresses: Sequence[Address], errors: dict[Address, GrassError]
) -> GrassError:
    first, *others = addresses
    error = errors.get(first) or unreachable(first, f"no answer within {CONNECT_S:g} s")
    if not others:
        return error
    places = ", ".join(map(str, others))
    return type(error)(f"{error.message}; nor was it found at {places}", error.hint)


def _secure(
    address: Address, plain: socket.socket, limit_s: float, find_token: FindToken
) -> HttpConnection:
    """Make a socket one under TLS, and check whose key was proved."""
    limit_s = max(_LEAST_S, limit_s)
    plain.settimeout(limit_s)
    try:
        channel = client_context().wrap_socket(plain)
    except TimeoutError:
        why = f"no TLS within {limit_s:.2g} s"
    except ssl.SSLError as error:
        reason = (error.reason or "it closed the connection").lower().replace("_", " ")
        why = f"what answers there does not speak TLS 1.3 ({reason})"
    except OSError as error:
        why = (error.strerror or "it closed the connection").lower()
    else:
        return _checked(address, channel, find_token)
    plain.close()
    raise unreachable(address, why)


def _checked(
    address: Address, channel: ssl.SSLSocket, find_token: FindToken
) -> HttpConnection:
    try:
        pin = _proved_pin(address, channel)
        token = find_token(address, pin)
    except GrassError:
        channel.close()
        raise
    channel.settimeout(None)
    return TlsConnection(channel, token, pin, address)


def _proved_pin(address: Address, channel: ssl.SSLSocket) -> str:
    certificate = channel.getpeercert(binary_form=True)
    try:
        return check_certificate(certificate or b"", time.time())
    except GrassError as error:
        raise type(error)(f"{address}: {error.message}", error.hint) from None
