"""Waiting for descriptors and for time: epoll, and the keeper's two clocks."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grass.keeper.core.keeper_events import KeeperEvent

    Act = Callable[[], None]
    Feed = Callable[[KeeperEvent], None]


def boot_s() -> float:
    """Return seconds since boot, the time the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def utc_us() -> int:
    """Return the present time in microseconds UTC."""
    return time.time_ns() // 1000


class Poller:
    """The descriptors that are waited for, each with a callback."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: dict[int, Act] = {}

    def watch(self, descriptor: int, ready: Act) -> None:
        """Call `ready` whenever the descriptor is readable.

        Raises OSError if the kernel refuses it; then nothing is watched.
        """
        self._register(descriptor, select.EPOLLIN, ready)

    def watch_for_end(self, descriptor: int, ready: Act) -> None:
        """Call `ready` when the other side of the descriptor has hung up."""
        self._register(descriptor, select.EPOLLHUP, ready)

    def _register(self, descriptor: int, mask: int, ready: Act) -> None:
        self._epoll.register(descriptor, mask)
        self._ready[descriptor] = ready

    def watch_writable(self, descriptor: int, wanted: bool) -> None:
        """Also wait until the descriptor is writable, or stop doing so."""
        writable = select.EPOLLOUT if wanted else 0
        self._epoll.modify(descriptor, select.EPOLLIN | writable)

    def unwatch(self, descriptor: int) -> None:
        """Stop waiting for the descriptor, if it was waited for."""
        if self._ready.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def sleep(self, longest_s: float | None) -> Iterator[Act]:
        """Wait until something is ready, and yield the callbacks."""
        for descriptor, _ in self._epoll.poll(longest_s):
            # An earlier callback may have unwatched this one.
            ready = self._ready.get(descriptor)
            if ready is not None:
                yield ready
