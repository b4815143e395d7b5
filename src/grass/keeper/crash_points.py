"""Points in the code at which a test can kill the process.

`GRASS_CRASH_AT=name:n` in the environment of a daemon kills it, or the keeper it
starts, the n-th time it reaches the point of that name. Without the variable a point
costs one call of an empty function. The variable is removed from the environment, so
that no job sees it.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "GRASS_CRASH_AT"
CRASH_AT = os.environ.pop(VARIABLE, "")


class Countdown:
    """Kills this process when a point has been reached often enough."""

    def __init__(self, crash_at: str) -> None:
        """Read `name:n`; without a number the first time is meant."""
        self._name, _, times = crash_at.partition(":")
        self._left = int(times or 1)

    def reached(self, name: str) -> None:
        """Count one time."""
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _go_on(name: str) -> None:
    """Do nothing."""


crash_point = Countdown(CRASH_AT).reached if CRASH_AT else _go_on
"""Note that a point is reached; its name tells the process and what comes next."""


def passed_on() -> dict[str, str]:
    """Return the environment variable for a keeper, if it is set."""
    return {VARIABLE: CRASH_AT} if CRASH_AT else {}
