"""Simulated connections: one way, in order, until closed or cut.

A channel behaves like one direction of a socket: what was sent before its sender died
still arrives, then the end does. A cut loses an unknown number of the last messages,
and all that is sent before a side notices. What survives a cut may arrive late, even
after the next connection is up.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from grass.keeper.protocol import LeasedEntry, LeaseVerb
from grass.link.messages import Heard, Heartbeat, ToBroker, ToWorker
from tests.simulation.world import Host, Life

T = TypeVar("T")

SLOWEST_US = 300


class Channel(Generic[T]):
    """One direction; messages arrive on the reader's host."""

    def __init__(
        self, host: Host, name: str, reader: Life, slowest_us: int = SLOWEST_US
    ) -> None:
        """Carry messages to a reader, which calls `listen`."""
        self.alive = True
        self._slowest_us = slowest_us
        self._host = host
        self._name = name
        self._reader = reader
        self._waiting: deque[T] = deque()
        self._arrived: Callable[[list[T]], None] = _discard
        self._ended: Callable[[], None] = _nothing
        self._scheduled = False
        self._quietly = False
        self._closing = False
        self._dropped = False
        self._not_before = 0

    def listen(
        self, arrived: Callable[[list[T]], None], ended: Callable[[], None]
    ) -> None:
        """Set the callbacks for messages and for the end."""
        self._arrived, self._ended = arrived, ended

    def send(self, message: T) -> None:
        """Send a message; dropped once closed or cut."""
        if not self._closing:
            self._waiting.append(message)
            self._schedule(quiet=_is_quiet(message))

    def close(self) -> None:
        """End it after what was sent; may be called twice."""
        if not self._closing:
            self._closing = True
            self._schedule()

    def cut(self, stall_us: int) -> None:
        """Lose the last messages; the rest, and the end, arrive after a while."""
        lost = self._host.rng.randint(0, len(self._waiting))
        for _ in range(lost):
            self._waiting.pop()
        self._not_before = self._host.now + stall_us
        self._closing = True
        self._schedule()

    def drop(self) -> None:
        """Stop reading: nothing arrives any more, not even the end."""
        self.alive = False
        self._closing = self._dropped = True

    def _schedule(self, *, quiet: bool = False) -> None:
        # A message that is not quiet, behind quiet ones, is an event of its own.
        if not self.alive or (self._scheduled and (quiet or not self._quietly)):
            return
        self._scheduled, self._quietly = True, quiet
        delay = self._host.between(self._slowest_us // 15, self._slowest_us)
        if self._not_before:
            delay = max(delay, self._not_before - self._host.now)
        self._host.after(delay, self._name, self._deliver, self, quiet=quiet)

    def _deliver(self) -> None:
        self._scheduled = False
        if not self._reader.alive:
            return
        if self._not_before > self._host.now:
            self._schedule()
            return
        self.arrive()
        if self._closing:
            self._tell_end()

    def arrive(self) -> None:
        """Deliver all that was sent, before anything from another channel."""
        batch = list(self._waiting)
        self._waiting.clear()
        if batch:
            self._arrived(batch)

    def _tell_end(self) -> None:
        # The last messages may have ended the reader.
        if self._reader.alive and not self._dropped:
            self.alive = False
            self._ended()


class Link:
    """Both directions between a worker and a broker."""

    def __init__(
        self,
        broker: Life,
        broker_host: Host,
        worker: Life,
        worker_host: Host,
        slowest_us: int,
    ) -> None:
        name = f"link {worker_host.name}>broker"
        to_broker = Channel[ToBroker](broker_host, name, broker, slowest_us)
        to_worker = Channel[ToWorker](worker_host, "link>worker", worker, slowest_us)
        self.to_broker, self.to_worker = to_broker, to_worker
        self.on_given_up: Callable[[], None] = _nothing
        """Called when the broker closes it by itself."""

    def close(self) -> None:
        """End both directions, as when one side hangs up or dies."""
        self.to_broker.close()
        self.to_worker.close()


def _is_quiet(message: object) -> bool:
    return isinstance(message, Heartbeat | Heard | LeaseVerb | LeasedEntry)


def _discard(_batch: object) -> None:
    """Discard messages of a channel without a listener."""


def _nothing() -> None:
    """Ignore the end of a channel without a listener."""
