"""Connections to a broker on another machine: TLS, its key, and this machine's token.

TLS proves that the other side holds a key, and the key says which broker it is: nothing
is sent, above all no token, before it is that of a broker that this machine has joined.
Addresses prove nothing.

A broker may have several addresses, and a name may stand for several places, IPv4 and
IPv6, of which some lead nowhere. All of them are connected to side by side, each with a
small head start over the next one. Together they have the time that one alone would
have. Names are resolved anew each time.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import time
from errno import EINPROGRESS
from typing import TYPE_CHECKING, Any, NamedTuple

from grass.client.connection import HttpConnection
from grass.client.credentials import Credentials
from grass.errors import GrassError, NoBroker, Unauthorized, Untrusted, UsageError
from grass.model.addresses import read_address
from grass.tls.pins import check_certificate, check_pin, client_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grass.client.credentials import JoinedBroker
    from grass.config import Home
    from grass.model.addresses import Address, Invitation

    OnWait = Callable[[], object]
    """Called again and again while a connection is being made."""
    FindToken = Callable[[Address, str], str | None]
    """Returns the token for the key that was proved at an address, or refuses it."""

CONNECT_S = 10.0
"""How long a connection with its handshake may take, wherever it is looked for."""
HEAD_START_S = 0.25
_HANDSHAKE_S = 3.0
"""How long a handshake may take while there are other places to try."""
_LEAST_S = 1.0
"""How long a handshake may take where connecting took all the time."""

_JOIN = "paste the line that it prints: grass join HOST:PORT/PIN/CODE"
_HINT = "is its daemon running there, and is the port open to this machine?"
_OTHER_NAME = (
    "start the broker with --advertise HOST:PORT, a name or address that is known here"
)
_QUIET_S = 15
"""How long a connection may be idle before the kernel probes the other side."""
_DEAD_MS = 30_000


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

    def __init__(self, channel: ssl.SSLSocket, token: str | None, pin: str) -> None:
        super().__init__(channel)
        self._secure, self._token = channel, token
        self.pin = pin
        """The key that the broker has proved."""
        if token is not None:
            self._fields += f"Authorization: Bearer {token}\r\n"

    def detached(self) -> tuple[ssl.SSLSocket, str | None]:
        """Hand over the socket and the token, to whom speaks another protocol."""
        return self._secure, self._token


def note_brokers(home: Home, connection: HttpConnection, told: str) -> None:
    """Note where the brokers of the cluster are that a connection leads to."""
    assert isinstance(connection, TlsConnection)
    with contextlib.suppress(GrassError, OSError):
        addresses = [read_address(text) for text in told.split(",")]
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
    addresses: Sequence[Address], find_token: FindToken, on_wait: OnWait
) -> HttpConnection:
    """Connect where it works; where it works nowhere, name all addresses."""
    deadline = time.monotonic() + CONNECT_S
    dialler = _Dialler(addresses, on_wait)
    try:
        while (found := dialler.next(deadline)) is not None:
            limit_s = CONNECT_S if dialler.is_exhausted else _HANDSHAKE_S
            try:
                return _secure(
                    *found, min(limit_s, deadline - time.monotonic()), find_token
                )
            except (NoBroker, Untrusted) as error:
                dialler.errors[found.address] = error
    finally:
        dialler.close()
    raise _not_found(addresses, dialler.errors)


def _not_found(
    addresses: Sequence[Address], errors: dict[Address, GrassError]
) -> GrassError:
    first, *others = addresses
    error = errors.get(first) or _unreachable(
        first, f"no answer within {CONNECT_S:g} s"
    )
    if not others:
        return error
    places = ", ".join(map(str, others))
    return type(error)(f"{error.message}; nor was it found at {places}", error.hint)


def _unreachable(address: Address, why: str, hint: str = _HINT) -> NoBroker:
    return NoBroker(f"the broker at {address} cannot be reached: {why}", hint)


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
    raise _unreachable(address, why)


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
    return TlsConnection(channel, token, pin)


def _proved_pin(address: Address, channel: ssl.SSLSocket) -> str:
    certificate = channel.getpeercert(binary_form=True)
    try:
        return check_certificate(certificate or b"", time.time())
    except GrassError as error:
        raise type(error)(f"{address}: {error.message}", error.hint) from None


class _Dialled(NamedTuple):
    address: Address
    channel: socket.socket


class _Dialler:
    """TCP connections that are being made to the places of several addresses."""

    def __init__(self, addresses: Sequence[Address], on_wait: OnWait) -> None:
        self._on_wait = on_wait
        self.errors: dict[Address, GrassError] = {}
        """What went wrong at each address."""
        self._unresolved = list(addresses)
        self._places: list[tuple[Address, socket.AddressFamily, Any]] = []
        self._pending: dict[int, _Dialled] = {}

    @property
    def is_exhausted(self) -> bool:
        """Tell whether there is no other place to try."""
        return not (self._unresolved or self._places or self._pending)

    def next(self, deadline: float) -> _Dialled | None:
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
            self.errors[address] = _unreachable(address, _reason(error))
            return
        self._pending[channel.fileno()] = one = _Dialled(address, channel)
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
            self.errors[address] = _unreachable(address, reason, _OTHER_NAME)
            return
        self._places = [(address, family, place) for family, _, _, _, place in found]

    def _poll(self, wait_s: float) -> _Dialled | None:
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

    def _drop(self, one: _Dialled, number: int) -> None:
        reason = os.strerror(number).lower()
        self.errors[one.address] = _unreachable(one.address, reason)
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
