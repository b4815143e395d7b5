"""Limits on the memory that requests and links of peers may use.

A peer decides how large the body of a request or the frame of a link is. One budget
limits the sum over all peers, and a share limits each of them.
"""

from collections import Counter

MIB = 2**20


class Budget:
    """Bytes that are reserved for peers."""

    def __init__(self, most: int, share: int) -> None:
        self._most, self._share = most, share
        self._by_peer: Counter[str] = Counter()
        self.reserved = 0

    def reserve(self, peer: str, size: int) -> bool:
        """Reserve bytes for a peer; False: that would exceed a limit."""
        if (
            self._by_peer[peer] + size > self._share
            or self.reserved + size > self._most
        ):
            return False
        self._by_peer[peer] += size
        self.reserved += size
        return True

    def release(self, peer: str, size: int) -> None:
        """Release bytes of a peer."""
        self.reserved -= size
        self._by_peer[peer] -= size
        if not self._by_peer[peer]:
            del self._by_peer[peer]


def body_budget() -> Budget:
    """Return the budget for request bodies of other machines."""
    return Budget(256 * MIB, 64 * MIB)


def local_body_budget() -> Budget:
    """Return the budget for request bodies on the Unix socket, without shares."""
    return Budget(256 * MIB, 256 * MIB)


def frame_budget() -> Budget:
    """Return the budget for unread frames of links."""
    return Budget(256 * MIB, 64 * MIB)
