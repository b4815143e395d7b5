"""A link within one daemon: two ends that hand messages to each other's owner.

Sending never waits and never calls the other side from within: messages that are sent
together arrive together, in order, on the next turn of the event loop. Closing either
end tells both owners, once, after what was sent before has arrived.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Out = TypeVar("Out")
In = TypeVar("In")


class LinkEnd(Generic[Out, In]):
    """One side of a link."""

    def __init__(self) -> None:
        """Belong to nobody yet; `pair` joins two ends, `listen` names the owner."""
        self._peer: LinkEnd[In, Out] | None = None
        self._waiting: list[In] = []
        self._scheduled = False
        self._arrived: Callable[[list[In]], None] | None = None
        self._ended: Callable[[], None] | None = None
        self.closed = False
        self.refusal = ""
        """Why this side refused the other, if it did."""

    def listen(
        self, arrived: Callable[[list[In]], None], ended: Callable[[], None]
    ) -> None:
        """Have messages handed over from now on, also those that came before."""
        self._arrived, self._ended = arrived, ended
        self._schedule()

    def send(self, message: Out) -> None:
        """Hand a message to the other side; after a close it goes nowhere."""
        if not self.closed and self._peer is not None:
            self._peer.take(message)

    def take(self, message: In) -> None:
        """Keep a message for the owner of this end."""
        self._waiting.append(message)
        self._schedule()

    def close(self, refusal: str = "") -> None:
        """End the link for both sides; may be called twice."""
        self.refusal = refusal
        for end in (self, self._peer):
            if end is not None and not end.closed:
                end.closed = True
                end.hang_up()

    def hang_up(self) -> None:
        """Tell the owner, after what still waits."""
        self._schedule()

    def join(self, peer: "LinkEnd[In, Out]") -> None:
        """Make the other end this one's peer."""
        self._peer = peer

    def _schedule(self) -> None:
        if self._arrived is not None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        batch, self._waiting = self._waiting, []
        if batch and self._arrived is not None:
            self._arrived(batch)
        if self.closed and self._ended is not None:
            ended, self._ended = self._ended, None
            ended()


def pair() -> tuple[LinkEnd[Out, In], LinkEnd[In, Out]]:
    """Make the two ends of one link."""
    near: LinkEnd[Out, In] = LinkEnd()
    far: LinkEnd[In, Out] = LinkEnd()
    near.join(far)
    far.join(near)
    return near, far
