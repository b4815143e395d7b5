"""What the keeper waits for: descriptors, and who acts when one is ready."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Act = Callable[[], None]


class Waiting:
    """The descriptors that are waited for."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: dict[int, Act] = {}

    def watch(self, descriptor: int, ready: Act) -> None:
        """Call `ready` whenever the descriptor has something.

        Raises OSError when the kernel will not have it, and then nothing is watched.
        """
        self._register(descriptor, select.EPOLLIN, ready)

    def watch_for_end(self, descriptor: int, ready: Act) -> None:
        """Call `ready` when the other side of the descriptor has hung up."""
        self._register(descriptor, select.EPOLLHUP, ready)

    def _register(self, descriptor: int, mask: int, ready: Act) -> None:
        self._epoll.register(descriptor, mask)
        self._ready[descriptor] = ready

    def also_for_room(self, descriptor: int, wanted: bool) -> None:
        """Wait besides until the descriptor takes more, or no longer do."""
        room = select.EPOLLOUT if wanted else 0
        self._epoll.modify(descriptor, select.EPOLLIN | room)

    def unwatch(self, descriptor: int) -> None:
        """Stop waiting for the descriptor, if it was waited for."""
        if self._ready.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def sleep(self, longest_s: float | None) -> Iterator[Act]:
        """Wait until something is ready, and give who acts on it."""
        for descriptor, _ in self._epoll.poll(longest_s):
            # Whoever acted before may have ended the wait for this one.
            ready = self._ready.get(descriptor)
            if ready is not None:
                yield ready
