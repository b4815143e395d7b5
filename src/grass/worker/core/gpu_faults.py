"""Whose fault it was that clients of one MPS server died of a fault of their GPU.

All clients of a server are told of a fault, and not which of them caused it. The one
that ended first is taken for it: it met the fault where it arose, while others learn of
it with their next call.
"""

SPAN_S = 60.0
"""Clients that end of a fault so long after the first one are its victims."""


class GpuFaults:
    """The last fault of each GPU that is shared by MPS."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, float]] = {}

    def culprit(self, unit: str, attempt: str, now_s: float) -> str:
        """Note that an attempt ended of a fault; return the one that ended first."""
        first, at_s = self._first.get(unit, (attempt, float("-inf")))
        if now_s - at_s > SPAN_S:
            first = attempt
            self._first[unit] = attempt, now_s
        return first
