"""The time during which a broker cannot be reached, told once and not too soon.

A restart of a daemon is over in a moment and not worth a word. What lasts longer is
told once, by a thread, because whoever tries to connect may be held up by just that.
The clients of one command share an outage: it begins with the first of them that is cut
off, and ends when all are connected again or have given up.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread  # `threading` costs an import

from grass.client.threads import CtrlCForMain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

MOMENT_S = 2.5
"""How long an outage may last without a word: longer than a daemon's restart takes."""


def _tell_nobody(_text: str) -> None:
    pass


class Outage:
    """Who is cut off, and what was said about it."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = _tell_nobody
        """Called once in every outage that lasts, from a thread."""
        self.told = ""
        """What was said about the outage that there is now."""
        self._lost: set[object] = set()
        self._over: LockType | None = None
        self._lock = allocate_lock()

    def begin(self, client: object, text: str) -> None:
        """Note that a client is cut off; nothing new when that is known."""
        with self._lock:
            self._lost.add(client)
            if self._over is None:
                self._over = allocate_lock()
                self._over.acquire()
                with CtrlCForMain():
                    start_new_thread(self._tell_later, (self._over, text))

    def end(self, client: object) -> None:
        """Note that a client is connected, or tries no more."""
        with self._lock:
            self._lost.discard(client)
            if self._over is not None and not self._lost:
                self._over.release()
                self._over, self.told = None, ""

    def _tell_later(self, over: LockType, text: str) -> None:
        if over.acquire(timeout=MOMENT_S):
            return
        with self._lock:
            if self._over is not over:
                return
            self.told = text
        self.tell(text)
