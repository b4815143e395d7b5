"""A link as one side sees it, and the link within one daemon.

Messages that are sent together arrive together and in order. A link that is closed or
broken drops what is sent: both sides reconcile when they next connect.

Within one daemon a link is a pair of ends. Sending never waits and never calls the
other side directly: messages arrive on the next turn of the event loop. Closing either
end notifies both owners, once, after what was sent before has arrived. An owner that
raises while it takes messages may have lost them; then the worker is asked to report
everything, as it does on every new connection to another machine.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from grass.event_log import EventLog

log = EventLog(__name__)

RESYNC_S = 1.0
"""The delay after a failure, so that a repeated one does not fill the log."""

Out_contra = TypeVar("Out_contra", contravariant=True)
Out = TypeVar("Out")
In = TypeVar("In")


class Link(Protocol[Out_contra, In]):
    """One side of a link."""

    def listen(
        self, arrived: Callable[[list[In]], None], ended: Callable[[], None]
    ) -> None:
        """Deliver messages from now on, also those that arrived before."""

    def send(self, message: Out_contra) -> None:
        """Send a message to the other side; never waits."""

    def close(self, refusal: str = "") -> None:
        """End the link for both sides; may be called twice.

        A `refusal` is sent to the other side where the transport can carry it.
        """


class LinkEnd(Generic[Out, In]):
    """One side of a link within one daemon; a `Link`."""

    def __init__(self) -> None:
        """Start unconnected; `pair` connects two ends, `listen` sets the owner."""
        self._peer: LinkEnd[In, Out] | None = None
        self._waiting: list[In] = []
        self._scheduled = False
        self._arrived: Callable[[list[In]], None] | None = None
        self._ended: Callable[[], None] | None = None
        self.on_defect: Callable[[], None] = self.close
        """Called when the owner raised on what arrived."""
        self.closed = False

    def listen(
        self, arrived: Callable[[list[In]], None], ended: Callable[[], None]
    ) -> None:
        """Deliver messages from now on, also those that arrived before."""
        self._arrived, self._ended = arrived, ended
        self._schedule()

    def send(self, message: Out) -> None:
        """Send a message to the other side; dropped after a close."""
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
                end._schedule()  # noqa: SLF001 -- the other end of the same pair

    def connect(self, peer: "LinkEnd[In, Out]") -> None:
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
            try:
                self._arrived(batch)
            except Exception as error:  # noqa: BLE001 -- the peer reports all again
                log.defect(error)
                self.on_defect()
        if self.closed and self._ended is not None:
            ended, self._ended = self._ended, None
            ended()


def pair(resync: Out | None = None) -> tuple[LinkEnd[Out, In], LinkEnd[In, Out]]:
    """Make the two ends of one link.

    The second end gets `resync` after either owner raised, and has to answer with all
    that it knows. Without it the link ends then.
    """
    near: LinkEnd[Out, In] = LinkEnd()
    far: LinkEnd[In, Out] = LinkEnd()
    near.connect(far)
    far.connect(near)
    if resync is not None:
        near.on_defect = far.on_defect = lambda: _later(far, resync)
    return near, far


def _later(end: LinkEnd[In, Out], message: Out) -> None:
    asyncio.get_running_loop().call_later(RESYNC_S, end.take, message)
