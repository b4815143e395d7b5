"""Calls of the blocking client, and the same calls for coroutines.

Each call has a connection of its own, so that jobs can be used in any thread and after
a fork. A coroutine has its call made in a thread, under asyncio and trio alike. If it
is cancelled meanwhile the call is broken off, and the thread has ended before the
coroutine goes on.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING

from grass.client.client import Client
from grass.errors import GrassError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, ParamSpec, Self, TypeVar

    from grass.config import Home

    P = ParamSpec("P")
    T = TypeVar("T")

_LOOK_S = 0.02
"""How long after a call was broken off it is looked whether its thread has ended."""
_current: ContextVar[CallThread | None] = ContextVar("grass_thread", default=None)


class BrokenOff(GrassError):
    """The coroutine that waited for a call was cancelled."""


class Caller(Client):
    """A client that a cancelled coroutine breaks off for good."""

    def __init__(
        self,
        place: Home | None = None,
        *,
        may_start: bool = True,
        broker: str | None = None,
    ) -> None:
        super().__init__(place, may_start=may_start, broker=broker)
        self.work_for(_current.get())

    def work_for(self, thread: CallThread | None) -> None:
        """Be broken off when the coroutine of this thread is cancelled."""
        self._thread = thread
        if thread is not None:
            thread.caller = self

    def beside(self, *, may_start: bool | None = None) -> Self:
        """Return another client, for a thread that was started by this one."""
        other = super().beside(may_start=may_start)
        other.work_for(self._thread)
        return other

    def repeat(self, call: Callable[[], T], limit_s: float = 0.0) -> T:
        """Make a call that may be made twice, unless it was broken off."""

        def unless_broken_off() -> T:
            if self._thread is not None and self._thread.is_over:
                raise BrokenOff("the call was broken off")
            return call()

        return super().repeat(unless_broken_off, limit_s)


class CallThread:
    """Calls that are made one after the other in threads, for a coroutine."""

    def __init__(self) -> None:
        self.caller: Caller | None = None
        self.is_over = False
        self._is_busy = False

    async def call(self, call: Callable[[], T]) -> T:
        """Make a call while other tasks go on."""
        import anyio

        context = copy_context()
        context.run(_current.set, self)
        made = functools.partial(context.run, self._make, call)
        try:
            # A limiter of its own: a wait may last for days, and keeps nobody out.
            return await anyio.to_thread.run_sync(
                made, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
            )
        except anyio.get_cancelled_exc_class():
            self.is_over = True
            with anyio.CancelScope(shield=True):
                while self._is_busy:
                    # It may just have been about to connect.
                    if self.caller is not None:
                        self.caller.break_off()
                    await anyio.sleep(_LOOK_S)
            raise

    def _make(self, call: Callable[[], T]) -> T:
        self._is_busy = True
        try:
            if self.is_over:
                raise BrokenOff("the call was broken off")
            return call()
        finally:
            self._is_busy = False


def in_coroutines(call: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the form of a blocking call that coroutines await."""

    @functools.wraps(call)
    async def awaited(*args: P.args, **more: P.kwargs) -> T:
        return await CallThread().call(functools.partial(call, *args, **more))

    awaited.__name__ = f"{call.__name__}_async"
    awaited.__qualname__ = f"{call.__qualname__}_async"
    awaited.__doc__ = f"As `{call.__name__}`, in a coroutine."
    return awaited
