"""Waiting for what nothing tells of: looked at again and again, but not for ever.

Whatever the journal tells, a pipe or a descriptor of a process, is waited for there.
What must come before a time that the program keeps is tried again with more time.
"""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60.0
"""How long anything may take that is sure to happen, on a machine with much to do."""
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.5
_PAUSE_SHARE = 0.1
"""Pauses are so much of what has passed: most looks run a command, whose processor time
the tests beside it need."""

_LIMITS_S = (0.4, 4.0, 40.0)
"""The first is enough, unless the machine has much to do."""

Seen = TypeVar("Seen")


def until(
    look: Callable[[], Seen],
    otherwise: str,
    holds: Callable[[Seen], object] = bool,
    within_s: float = PATIENCE_S,
) -> Seen:
    """Look until what is seen is right, and return it; say so if it never is."""
    began = time.monotonic()
    while not holds(seen := look()):
        passed_s = time.monotonic() - began
        assert passed_s < within_s, f"{otherwise}; last seen: {seen!r}"
        pause_s = max(_SHORTEST_PAUSE_S, _PAUSE_SHARE * passed_s)
        time.sleep(min(pause_s, _LONGEST_PAUSE_S))
    return seen


def in_time(play: Callable[[float], Seen | None], otherwise: str) -> Seen:
    """Play with a time limit that something must come before, and return what it gives.

    None says that it came too late: it is played again with a longer limit.
    """
    for limit_s in _LIMITS_S:
        if (seen := play(limit_s)) is not None:
            return seen
    raise AssertionError(otherwise)
