"""Waiting with a limit, and with one line of notice about what is waited for.

Imported only once something takes longer than usual.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from grass.client.connection import Broken
from grass.client.connection import tell as tell_on_stderr
from grass.errors import GrassError, NoAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.client.connection import HttpConnection

    Tell = Callable[[str], object]

LIMIT_S = 30.0
"""How long a peer that does not answer is waited for."""
TERM_OVER_S = 6.0
"""After this time a broker that does not answer leads no more, if there are others."""
MOMENT_S = 2.5
"""How long a wait lasts before a notice is given: longer than a daemon's restart."""
_PROBE_S = 1.0
_PAUSE_S = 0.01


class Patience:
    """A wait for something that sends no signal: it is looked for again and again."""

    def __init__(
        self, why: str, limit_s: float | None, tell: Tell, quiet_s: float | None = None
    ) -> None:
        """`why` says what is waited for; `quiet_s` is the time before the notice."""
        wait = "for it" if limit_s is None else f"up to {limit_s:.0f} s"
        self._text = f"{why}; waiting {wait}"
        self._began = time.monotonic()
        self._limit_s = limit_s
        self._quiet_s = MOMENT_S if quiet_s is None else quiet_s
        self._tell: Tell | None = tell

    def is_left(self, *, due: bool = False) -> bool:
        """Tell whether to wait on; give the notice when it is due."""
        lasted_s = time.monotonic() - self._began
        if self._tell is not None and (due or lasted_s >= self._quiet_s):
            self._tell(self._text)
            self._tell = None
        return self._limit_s is None or lasted_s < self._limit_s

    def pause(self) -> bool:
        """Sleep for a moment; tell whether to look again."""
        time.sleep(_PAUSE_S)
        return self.is_left()


class Silence:
    """A time during which nothing arrives on a connection.

    A daemon may work long on a call, and answers others meanwhile; or it answers none,
    because it was stopped or its machine is stuck. A small request over another
    connection tells which of the two it is.
    """

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection
        self._patience: Patience | None = None

    def probe(self, *, may_last: bool) -> None:
        """Ask for a sign of life; raise `NoAnswer` when none has come for too long.

        With `may_last` there is no limit, only a notice. Where another broker may lead
        by now, `Broken` is raised instead, and soon: the call may be repeated there.
        """
        why = f"{self._connection.peer} does not answer"
        others = self._connection.may_be_replaced
        if self._patience is None:
            usual_s = self._connection.answer_s or LIMIT_S
            limit_s = TERM_OVER_S if others else None if may_last else usual_s
            self._patience = Patience(why, limit_s, self._connection.tell, _PROBE_S)
        if self._answers():
            self._patience = None
        elif not self._patience.is_left(due=True):
            if others:
                raise Broken(why)
            raise NoAnswer(why, self._connection.next_step)

    def note(self) -> None:
        """Give the notice when it is due, also while a probe is being connected."""
        if self._patience is not None:
            self._patience.is_left()

    def _answers(self) -> bool:
        try:
            other = self._connection.open_another()
        except (GrassError, OSError):
            return False
        if other is None:
            # No process listens there any more: the connection itself will break.
            return True
        try:
            return other.answers_within(_PROBE_S)
        finally:
            other.close()


class Outage:
    """The clients of one command that are cut off, and the one notice about it.

    An outage begins with the first client that is cut off, and ends when all of them
    are connected again or have given up. A restart is over too soon for a notice.
    """

    def __init__(self) -> None:
        self.tell: Tell = tell_on_stderr
        """Called once in every outage that lasts."""
        self.told = ""
        """The notice about the present outage."""
        self._lost: set[object] = set()
        self._began = 0.0
        self._lock = allocate_lock()

    def note(self, client: object, text: str) -> None:
        """Note that a client is cut off; give the notice when it is due."""
        with self._lock:
            if not self._lost:
                self._began = time.monotonic()
            self._lost.add(client)
            if self.told or time.monotonic() - self._began < MOMENT_S:
                return
            self.told = text
        self.tell(text)

    def end(self, client: object) -> None:
        """Note that a client is connected, or tries no more."""
        with self._lock:
            self._lost.discard(client)
            if not self._lost:
                self.told = ""
