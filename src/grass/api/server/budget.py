"""How much is kept of what peers send, in all and of each.

The body of a request and the frame of a link are memory that somebody else decides
about. One budget for all peers bounds it, and a share for each keeps one of them from
using up what the others need.
"""

from collections import Counter

MIB = 2**20


class Budget:
    """Bytes that are kept of what peers send."""

    def __init__(self, most: int, share: int) -> None:
        self._most, self._share = most, share
        self._of: Counter[str] = Counter()
        self.kept = 0

    def take(self, peer: str, size: int) -> bool:
        """Keep so many more bytes of a peer, unless there is no room for them."""
        if self._of[peer] + size > self._share or self.kept + size > self._most:
            return False
        self._of[peer] += size
        self.kept += size
        return True

    def give(self, peer: str, size: int) -> None:
        """Keep so many bytes of a peer no more."""
        self.kept -= size
        self._of[peer] -= size
        if not self._of[peer]:
            del self._of[peer]


def room_for_bodies() -> Budget:
    """Make the budget for the bodies of all requests to a server."""
    return Budget(256 * MIB, 64 * MIB)


def local_room_for_bodies() -> Budget:
    """Make the budget for bodies over the own socket: the owner has no share."""
    return Budget(256 * MIB, 256 * MIB)


def room_for_frames() -> Budget:
    """Make the budget for all frames of links to a server."""
    return Budget(256 * MIB, 64 * MIB)
