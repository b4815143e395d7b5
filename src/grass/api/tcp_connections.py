"""Connections from other machines: how many there may be, and for how long.

A connection is unidentified until one of its requests has shown a valid token. It has a
short time for that, and there is room for few of them: a new one replaces the oldest
from the network that has most, so that a flood from one network only displaces itself.
A connection whose token is revoked or expires is closed at once. The number of wrong
codes from a network is limited as well.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network

from grass.api.budget import frame_budget
from grass.errors import Refused
from grass.model.access import Token

IDENTIFY_S = 10.0
"""How long a connection may take to show a valid token."""
MOST_UNIDENTIFIED = 256
MOST_CONNECTIONS = 4096
SHARE_OF_ONE = 8
"""One token may have this fraction of all connections."""
RESERVED_PLACES = 64
"""Only for tokens with few connections, so that several others cannot use all."""
FEW = 8
_IPV4_IN_IPV6 = "::ffff:"
_SUBSCRIBER_BITS = 64
"""The prefix that one subscriber of IPv6 usually has."""
MOST_WRONG = 20
"""Wrong codes of one network within a minute."""
MOST_NETWORKS = 10_000
_MINUTE_S = 60.0
MOST_REFUSALS = 8
"""How many requests of an unidentified connection are answered with a refusal."""


class TcpConnection:
    """One connection from another machine."""

    def __init__(
        self, connections: "TcpConnections", host: str, hang_up: Callable[[], None]
    ) -> None:
        self.host = host.removeprefix(_IPV4_IN_IPV6)
        self.network = _network(self.host)
        self.token: Token | None = None
        self.shown = b""
        """The hash of the secret in its last request."""
        self._all = connections
        self._hang_up = hang_up
        self._refusals = 0
        self._reserved = "", 0
        """The peer and the bytes that are reserved for its unread frames."""
        self._deadline: asyncio.TimerHandle | None = None
        self._closed = False
        self.close_within(IDENTIFY_S)

    def identify(self, token: Token, shown: bytes) -> bool:
        """Keep the connection open for a valid token; False: that has too many."""
        before = self.token
        if self._closed or (before is token and self.shown == shown):
            return True
        is_new = before is None or before.name != token.name
        if is_new and not self._all.has_room_for(token.name):
            return False
        self.token, self.shown = token, shown
        self._cancel_deadline()
        if token.expires_at is not None:
            left = token.expires_at - time.time_ns() // 1000
            self.close_within(left / 1_000_000)
        self._all.mark_identified(self)
        return True

    def refused(self) -> bool:
        """Count a request without a valid token; return whether it was the last."""
        self._refusals += 1
        return self.token is None and self._refusals >= MOST_REFUSALS

    def reserve(self, size: int) -> bool:
        """Reserve memory for unread frames instead of before; False: there is none.

        A closed connection reserves nothing, though pieces of a frame may be left.
        """
        size = 0 if self._closed else size
        frames, (peer, before) = self._all.frames, self._reserved
        frames.release(peer, before)
        peer = self.network if self.token is None else self.token.name
        fits = frames.reserve(peer, size)
        self._reserved = peer, size if fits else 0
        return fits

    def drop(self) -> None:
        """Close the connection."""
        if not self._closed:
            self.closed()
            self._hang_up()

    def closed(self) -> None:
        """Remove a connection that was closed; may be called twice."""
        self.reserve(0)
        self._closed = True
        self._cancel_deadline()
        self._all.forget(self)

    def close_within(self, seconds: float) -> None:
        """Close the connection after a time, unless that is cancelled."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(max(0.0, seconds), self.drop)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class TcpConnections:
    """All connections from other machines."""

    def __init__(self, most_connections: int = MOST_CONNECTIONS) -> None:
        self.most_connections = most_connections
        self.unidentified: dict[TcpConnection, None] = {}
        """The oldest first."""
        self.identified: dict[TcpConnection, None] = {}
        self.frames = frame_budget()

    def accept(self, host: str, hang_up: Callable[[], None]) -> TcpConnection | None:
        """Add a connection, closing another one if needed; None: there is no room."""
        if len(self.unidentified) >= MOST_UNIDENTIFIED:
            self.drop_unidentified()
        elif len(self.unidentified) + len(self.identified) >= self.most_connections:
            if not self.unidentified:
                return None
            self.drop_unidentified()
        connection = TcpConnection(self, host, hang_up)
        self.unidentified[connection] = None
        return connection

    def mark_identified(self, connection: TcpConnection) -> None:
        """Move a connection to those that have shown a token."""
        self.unidentified.pop(connection, None)
        self.identified[connection] = None

    def forget(self, connection: TcpConnection) -> None:
        """Remove a connection."""
        self.unidentified.pop(connection, None)
        self.identified.pop(connection, None)

    def has_room_for(self, token: str) -> bool:
        """Return whether this token may have one more connection."""
        tokens = (connection.token for connection in self.identified)
        number = sum(one is not None and one.name == token for one in tokens)
        left = self.most_connections - len(self.identified)
        if number >= FEW and left <= RESERVED_PLACES:
            return False
        return number < max(FEW, self.most_connections // SHARE_OF_ONE)

    def drop_unidentified(self) -> None:
        """Close the oldest unidentified connection of the network that has most."""
        if self.unidentified:
            counts = Counter(one.network for one in self.unidentified)
            network, _ = counts.most_common(1)[0]
            next(one for one in self.unidentified if one.network == network).drop()

    def drop_revoked(self, tokens: Mapping[str, Token]) -> None:
        """Close connections whose token is not valid any more."""
        for connection in list(self.identified):
            shown = connection.token
            now = None if shown is None else tokens.get(shown.name)
            if now is None or not now.fits(connection.shown):
                connection.drop()

    def close(self) -> None:
        """Close unidentified connections; the server ends the others."""
        for connection in list(self.unidentified):
            connection.drop()


class WrongCodes:
    """Counts wrong codes by network, within a minute."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._until = 0.0

    def check(self, network: str, now_s: float) -> None:
        """Raise if a network has tried too many."""
        if now_s >= self._until or len(self._counts) > MOST_NETWORKS:
            self._counts.clear()
            self._until = now_s + _MINUTE_S
        if self._counts.get(network, 0) >= MOST_WRONG:
            raise Refused(
                "too many wrong codes came from this address",
                "wait a minute, then paste the line as it was printed",
            )

    def note(self, network: str) -> None:
        """Count a wrong code."""
        self._counts[network] = self._counts.get(network, 0) + 1


def _network(host: str) -> str:
    """Return the network of an address: one IPv4 address, or one IPv6 prefix."""
    try:
        known = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if known.version == 4:
        return host
    return str(ip_network((known, _SUBSCRIBER_BITS), strict=False))
