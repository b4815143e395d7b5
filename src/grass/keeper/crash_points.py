"""Places where a test may have a process killed, to see what is left of its work.

`GRASS_CRASH_AT=name:n` in the environment of a daemon kills it, or the keeper it
starts, the n-th time it comes to the place of that name. Without the variable a place
costs one call of an empty function. The variable is taken out of the environment, so
that no job sees it.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "GRASS_CRASH_AT"
WISH = os.environ.pop(VARIABLE, "")


class Countdown:
    """Kills this process when a place has been passed often enough."""

    def __init__(self, wish: str) -> None:
        """Read the wish, `name:n`; without a number the first pass is meant."""
        self._name, _, times = wish.partition(":")
        self._left = int(times or 1)

    def passed(self, name: str) -> None:
        """Count one pass."""
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _go_on(name: str) -> None:
    """Do nothing."""


crash_point = Countdown(WISH).passed if WISH else _go_on
"""Tell that a place was reached; its name says in which process and before what."""


def passed_on() -> dict[str, str]:
    """Return what a keeper needs in its environment to crash as was wished."""
    return {VARIABLE: WISH} if WISH else {}
