"""A link within one daemon: two ends, each a queue of messages for the other.

Sending never waits; receiving takes all that has come, so that a burst is handled as
one batch. Closing either end ends both.
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

Out = TypeVar("Out")
In = TypeVar("In")


class LinkEnd(Generic[Out, In]):
    """One side of a link."""

    def __init__(self, incoming: deque[In], outgoing: deque[Out]) -> None:
        """Take the two queues; `pair` makes ends that belong together."""
        self._incoming = incoming
        self._outgoing = outgoing
        self._arrived = asyncio.Event()
        self._peer: LinkEnd[In, Out] = self  # type: ignore[assignment]
        self.closed = False

    def send(self, message: Out) -> None:
        """Hand a message to the other side; after a close it goes nowhere."""
        if not self.closed:
            self._outgoing.append(message)
            self._peer.wake()

    async def receive(self) -> list[In]:
        """Wait for messages and take all of them; an empty list means closed."""
        while not self._incoming and not self.closed:
            await self._arrived.wait()
            self._arrived.clear()
        batch = list(self._incoming)
        self._incoming.clear()
        return batch

    def wake(self) -> None:
        """Have `receive` look again."""
        self._arrived.set()

    def close(self) -> None:
        """End the link for both sides; may be called twice."""
        for end in (self, self._peer):
            end.closed = True
            end.wake()


def pair() -> tuple[LinkEnd[Out, In], LinkEnd[In, Out]]:
    """Make the two ends of one link."""
    there: deque[Out] = deque()
    back: deque[In] = deque()
    near: LinkEnd[Out, In] = LinkEnd(back, there)
    far: LinkEnd[In, Out] = LinkEnd(there, back)
    near._peer, far._peer = far, near  # noqa: SLF001 -- both ends are this module's
    return near, far
