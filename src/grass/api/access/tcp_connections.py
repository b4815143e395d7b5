"""Who is at the door: every connection from another machine, known or not.

A connection is a stranger until one of its requests has shown a token that counts. It
has a short time for that, and there is room for few strangers: the next one takes the
place of the oldest from the address that has most, so that a flood from one place
drowns itself. A connection whose token is revoked or expires is dropped at once,
whatever it is in the middle of.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network

from grass.api.server.budget import room_for_frames
from grass.model.token import Token

IDENTIFY_S = 10.0
"""How long a connection may take to show who it is."""
MOST_STRANGERS = 256
MOST_CONNECTIONS = 4096
SHARE_OF_ONE = 8
"""One token may have this part of all connections: none keeps all others out."""
LAST_PLACES = 64
"""Kept for tokens that have few connections, so that several cannot do so either."""
FEW = 8
_IPV4_IN_IPV6 = "::ffff:"
_HOME_BITS = 64
"""What one subscriber usually has of IPv6."""
MOST_REFUSALS = 8
"""How many requests of one stranger are answered with a refusal."""


class Guest:
    """One connection, from its first byte to its last."""

    def __init__(
        self, guests: "Guests", host: str, hang_up: Callable[[], None]
    ) -> None:
        self.host = host.removeprefix(_IPV4_IN_IPV6)
        self.place = _place(self.host)
        """Where it comes from, however many addresses there are."""
        self.token: Token | None = None
        self.shown = b""
        """The hash of the secret that it showed last."""
        self._guests = guests
        self._hang_up = hang_up
        self._refusals = 0
        self._kept = "", 0
        """Whose share has how many bytes of its frames that are not read yet."""
        self._deadline: asyncio.TimerHandle | None = None
        self._left = False
        self.drop_within(IDENTIFY_S)

    def identified(self, token: Token, shown: bytes) -> bool:
        """Let the guest stay, with a token that counts; False: it has too many."""
        before = self.token
        if self._left or (before is token and self.shown == shown):
            return True
        is_new = before is None or before.name != token.name
        if is_new and not self._guests.has_room_for(token.name):
            return False
        self.token, self.shown = token, shown
        self._stop_clock()
        if token.expires_at is not None:
            left = token.expires_at - time.time_ns() // 1000
            self.drop_within(left / 1_000_000)
        self._guests.trust(self)
        return True

    def refused(self) -> bool:
        """Count a request that showed no good token; tell whether it was the last."""
        self._refusals += 1
        return self.token is None and self._refusals >= MOST_REFUSALS

    def keeps(self, size: int) -> bool:
        """Count the bytes that are kept of its frames; False: there is no room.

        Of a connection that is over nothing counts, though pieces of a frame are left.
        """
        size = 0 if self._left else size
        frames, (peer, before) = self._guests.frames, self._kept
        frames.give(peer, before)
        peer = self.place if self.token is None else self.token.name
        fits = frames.take(peer, size)
        self._kept = peer, size if fits else 0
        return fits

    def drop(self) -> None:
        """Hang up."""
        if not self._left:
            self.left()
            self._hang_up()

    def left(self) -> None:
        """Note that the connection is over; may be called twice."""
        self.keeps(0)
        self._left = True
        self._stop_clock()
        self._guests.forget(self)

    def drop_within(self, seconds: float) -> None:
        """Hang up after a time, unless something else is decided before."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(max(0.0, seconds), self.drop)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Guests:
    """All connections from other machines."""

    def __init__(self, most_connections: int = MOST_CONNECTIONS) -> None:
        self.most_connections = most_connections
        self.strangers: dict[Guest, None] = {}
        """The oldest first."""
        self.known: dict[Guest, None] = {}
        self.frames = room_for_frames()

    def arrive(self, host: str, hang_up: Callable[[], None]) -> Guest | None:
        """Take a new connection in, making room for it; None: there is none."""
        if len(self.strangers) >= MOST_STRANGERS:
            self.drop_a_stranger()
        elif len(self.strangers) + len(self.known) >= self.most_connections:
            if not self.strangers:
                return None
            self.drop_a_stranger()
        guest = Guest(self, host, hang_up)
        self.strangers[guest] = None
        return guest

    def trust(self, guest: Guest) -> None:
        """Count a guest as known from now on."""
        self.strangers.pop(guest, None)
        self.known[guest] = None

    def forget(self, guest: Guest) -> None:
        """Count a guest no more."""
        self.strangers.pop(guest, None)
        self.known.pop(guest, None)

    def has_room_for(self, token: str) -> bool:
        """Tell whether one more connection of this token leaves room for others."""
        tokens = (guest.token for guest in self.known)
        number = sum(one is not None and one.name == token for one in tokens)
        left = self.most_connections - len(self.known)
        if number >= FEW and left <= LAST_PLACES:
            return False
        return number < max(FEW, self.most_connections // SHARE_OF_ONE)

    def drop_a_stranger(self) -> None:
        """Drop the oldest stranger from where most of them are."""
        if self.strangers:
            crowd = Counter(guest.place for guest in self.strangers)
            place, _ = crowd.most_common(1)[0]
            next(guest for guest in self.strangers if guest.place == place).drop()

    def sweep(self, tokens: Mapping[str, Token]) -> None:
        """Drop those whose token counts no more."""
        for guest in list(self.known):
            shown = guest.token
            now = None if shown is None else tokens.get(shown.name)
            if now is None or not now.fits(guest.shown):
                guest.drop()

    def close(self) -> None:
        """Drop every stranger; those who are known are the server's to end."""
        for guest in list(self.strangers):
            guest.drop()


def _place(host: str) -> str:
    """Name the network that an address is of; IPv6 gives everybody very many."""
    try:
        known = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if known.version == 4:
        return host
    return str(ip_network((known, _HOME_BITS), strict=False))
