"""A client for a screen: it repeats nothing, starts no daemon, and can be broken off.

A command waits for a daemon that is away. A screen shows that it is away, with the age
of what is shown, and asks again a moment later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from grass.cli.printing.streams import safe
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.config import Home
from grass.errors import GrassError, NoAnswer, NoDaemon, NotFound, Unauthorized

T = TypeVar("T")
Connect = Callable[[], "Reader"]

AWAY = (Broken, NoDaemon, Unauthorized, OSError)
"""What a call raises that got no answer, or that is not let in any more."""
JOIN_S = 5.0
_LOOK_S = 0.02


class Reader(Client):
    """A client whose calls fail at once while the daemon is away."""

    def __init__(self, place: Home | None = None, broker: str | None = None) -> None:
        super().__init__(place, may_start=False, broker=broker)
        self.outage.tell = _give_up
        self._is_over = False

    def break_off(self) -> None:
        """Break the present call off, and every later one."""
        self._is_over = True
        super().break_off()

    def repeat(self, call: Callable[[], T], limit_s: float = 0.0) -> T:
        """Make a call once."""
        del limit_s
        if self._is_over:
            raise Broken("it was broken off")
        return call()


def _give_up(text: str) -> None:
    """Stop waiting for a daemon that is there and does not answer."""
    raise NoAnswer(text)


def why_lost(error: BaseException) -> str:
    """Say in a line why a call failed."""
    if isinstance(error, NotFound) and "/stream" in error.message:
        return "the daemon is of an earlier version: `grass restart`; jobs run on"
    if isinstance(error, GrassError):
        return safe(error.message)
    return "the daemon went away"


class ReadingThread:
    """A thread that reads over a connection of its own."""

    def __init__(self, connect: Connect, work: Callable[[Reader], None]) -> None:
        """`work` ends soon after it was told to and its call was broken off."""
        self._reader = connect()
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        with CtrlCForMain():
            self._thread.start()

    def break_off(self) -> None:
        """Have what it waits for raise `Broken`."""
        self._reader.break_off()

    def join(self, limit_s: float = JOIN_S) -> None:
        """Wait for its end; what it waits for is broken off."""
        deadline = time.monotonic() + limit_s
        while self._thread.is_alive() and time.monotonic() < deadline:
            # It may just have been about to connect.
            self._reader.break_off()
            self._thread.join(_LOOK_S)

    def _run(self) -> None:
        with self._reader:
            self._work(self._reader)
