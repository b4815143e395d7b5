"""Waiting for what nothing tells of: looked at again and again, but not for ever.

Whatever the journal tells, a pipe or a descriptor of a process, is waited for there.
"""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60.0
"""How long anything may take that is sure to happen, on a machine with much to do."""
_PAUSE_S = 0.005

Seen = TypeVar("Seen")


def until(
    look: Callable[[], Seen],
    otherwise: str,
    holds: Callable[[Seen], object] = bool,
    within_s: float = PATIENCE_S,
) -> Seen:
    """Look until what is seen is right, and return it; say so if it never is."""
    deadline = time.monotonic() + within_s
    while not holds(seen := look()):
        assert time.monotonic() < deadline, f"{otherwise}; last seen: {seen!r}"
        time.sleep(_PAUSE_S)
    return seen
