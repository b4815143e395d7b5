"""Threads that leave Ctrl-C to the main thread, and calls with a time limit.

A signal that is sent to a process is taken by any thread that is just being made, or
that makes one. Python then notes it, but the main thread sleeps on in its system call
and reacts late or never. So threads are made, and run, with SIGINT blocked.
"""

from __future__ import annotations

from _thread import TIMEOUT_MAX, allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    T = TypeVar("T")


class CtrlCForMain:
    """A block in which threads are made that never take Ctrl-C."""

    def __enter__(self) -> None:
        """Block the signal; a thread inherits that."""
        import signal  # Costs an import, and most commands make no thread.

        block = signal.SIG_BLOCK
        self._before: Iterable[int] = signal.pthread_sigmask(block, {signal.SIGINT})

    def __exit__(self, *_error: object) -> None:
        """Restore the mask; a signal that came meanwhile is taken here."""
        import signal

        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def call_within(limit_s: float, call: Callable[[], T]) -> T:
    """Return or raise what a call does; raise TimeoutError when that takes too long.

    The call itself goes on then, so it must use nothing that its caller uses.
    """
    given: list[T] = []
    raised: list[BaseException] = []
    over = allocate_lock()
    over.acquire()

    def make() -> None:
        try:
            given.append(call())
        except BaseException as error:  # noqa: BLE001 -- raised by the caller
            raised.append(error)
        finally:
            over.release()

    with CtrlCForMain():
        start_new_thread(make, ())
    if not over.acquire(timeout=min(limit_s, TIMEOUT_MAX)):
        raise TimeoutError
    if raised:
        raise raised[0]
    return given[0]
