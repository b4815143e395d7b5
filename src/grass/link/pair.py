"""A link within one daemon: two ends that hand messages to each other's owner.

Sending never waits and never calls the other side from within: messages that are sent
together arrive together, in order, on the next turn of the event loop. Closing either
end tells both owners, once, after what was sent before has arrived.

An owner that fails while it takes messages may have lost them. Then the far one is told
to settle what that left undone, as it does on every new connection to another machine.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from grass.logs import EventLog

log = EventLog(__name__)

SETTLE_S = 1.0
"""How long after a failure: one that comes back each time must not fill the log."""

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
        self.on_defect: Callable[[], None] = self.close
        """What is done when the owner failed to take what arrived."""
        self.closed = False

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
            self._hand_over(batch, self._arrived)
        if self.closed and self._ended is not None:
            ended, self._ended = self._ended, None
            ended()

    def _hand_over(self, batch: list[In], arrived: Callable[[list[In]], None]) -> None:
        try:
            arrived(batch)
        except Exception as error:  # noqa: BLE001 -- what it left undone is settled
            log.defect(error)
            self.on_defect()


def pair(settle: Out | None = None) -> tuple[LinkEnd[Out, In], LinkEnd[In, Out]]:
    """Make the two ends of one link.

    `settle` is what the far end hears after either owner failed; it has to answer with
    all that it knows. Without it the link ends then.
    """
    near: LinkEnd[Out, In] = LinkEnd()
    far: LinkEnd[In, Out] = LinkEnd()
    near.join(far)
    far.join(near)
    if settle is not None:
        near.on_defect = far.on_defect = lambda: _later(far, settle)
    return near, far


def _later(end: LinkEnd[In, Out], message: Out) -> None:
    asyncio.get_running_loop().call_later(SETTLE_S, end.take, message)
