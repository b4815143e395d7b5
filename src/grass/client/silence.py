"""Waiting for somebody who may never answer, with a word about it and with a limit.

A daemon may be long about a call, and then answers others meanwhile; or it answers
nobody, because it was stopped or its machine is stuck. So whoever hears nothing asks
something small over another connection. Only a daemon that does not answer that either
is given up. Imported only once nothing has come for a while.
"""

from __future__ import annotations

import time

from grass.errors import GrassError, NoAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.client.connection import Connection

LIMIT_S = 30.0
"""How long a peer that answers nobody is waited for."""
MOMENT_S = 2.5
"""How long a wait may last without a word."""
_PROBE_S = 1.0
_PAUSE_S = 0.01


class Silence:
    """A time during which nothing comes on a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dead_since: float | None = None
        self._told = False

    def look(self, *, may_last: bool) -> None:
        """Ask whether anybody is there; raises `NoAnswer` if not, for too long.

        With `may_last` there is no limit, only a word.
        """
        peer, now = self._connection.peer, time.monotonic()
        if self._answers():
            self._dead_since = None
            return
        if self._dead_since is None:
            self._dead_since = now
        if not self._told:
            self._told = True
            wait = "for it" if may_last else f"up to {LIMIT_S:.0f} s"
            self._connection.tell(f"{peer} does not answer; waiting {wait}")
        if not may_last and time.monotonic() - self._dead_since > LIMIT_S:
            raise NoAnswer(f"{peer} does not answer", self._connection.next_step)

    def _answers(self) -> bool:
        try:
            probe = self._connection.open_another()
        except (GrassError, OSError):
            return False
        if probe is None:
            # Nobody listens there any more: the connection itself tells what that is.
            return True
        try:
            return probe.answers_within(_PROBE_S)
        finally:
            probe.close()


class Patience:
    """A wait for something that nothing tells of: with a limit, and a word."""

    def __init__(self, why: str, limit_s: float, tell: Callable[[str], object]) -> None:
        """`why` says what is waited for."""
        self._text = f"{why}; waiting up to {limit_s:.0f} s"
        self._began = time.monotonic()
        self._limit_s = limit_s
        self._tell: Callable[[str], object] | None = tell

    def is_left(self) -> bool:
        """Tell whether to wait on, and say what for once it has taken a while."""
        lasted_s = time.monotonic() - self._began
        if self._tell is not None and lasted_s > MOMENT_S:
            self._tell(self._text)
            self._tell = None
        return lasted_s < self._limit_s

    def pause(self) -> bool:
        """Sleep for a moment; tells whether to look again."""
        time.sleep(_PAUSE_S)
        return self.is_left()
