"""Threads that leave Ctrl-C to the main thread.

A signal that is sent to a process is taken by any thread that is just being made, or
that makes one. Python then notes it, but the main thread sleeps on in its system call
and hears of it late or never. So threads are made, and run, with SIGINT blocked.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class CtrlCForMain:
    """A block in which threads are made that never take Ctrl-C."""

    def __enter__(self) -> None:
        """Block the signal; a thread inherits that."""
        import signal  # Costs an import, and most commands make no thread.

        block = signal.SIG_BLOCK
        self._before: Iterable[int] = signal.pthread_sigmask(block, {signal.SIGINT})

    def __exit__(self, *_error: object) -> None:
        """Have it as it was; one that came meanwhile is taken here."""
        import signal

        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
