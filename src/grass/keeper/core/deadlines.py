"""Deadlines of the keeper: one heap, at most one deadline per purpose and attempt.

Setting a deadline replaces the earlier one. Cancelled entries stay in the heap until
they come up or outnumber the live ones, so that a cancel costs nothing.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

Key = tuple[str, str]

_SLACK = 64
PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses between repeated checks and tries."""


def pause(tries: int) -> float:
    """Return how long to wait before the next check or try."""
    return PAUSES_S[min(tries, len(PAUSES_S) - 1)]


class Timers:
    """Deadlines by (purpose, attempt id)."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []

    def __contains__(self, key: Key) -> bool:
        """Tell whether a deadline is set."""
        return key in self._due

    def set(self, purpose: str, attempt: str, due: float) -> None:
        """Set the deadline, in place of an earlier one."""
        key = (purpose, attempt)
        self._due[key] = due
        heappush(self._heap, (due, key))
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = [(due, key) for key, due in self._due.items()]
            heapify(self._heap)

    def cancel(self, purpose: str, attempt: str) -> None:
        """Drop the deadline if there is one."""
        self._due.pop((purpose, attempt), None)

    def cancel_all(self, purposes: tuple[str, ...], attempt: str) -> None:
        """Drop several deadlines of an attempt."""
        due = self._due
        for purpose in purposes:
            due.pop((purpose, attempt), None)

    def next_due(self) -> float | None:
        """Return the earliest deadline, or None when nothing is set."""
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> list[Key]:
        """Remove and return every deadline that has come, earliest first."""
        taken = []
        while (due := self.next_due()) is not None and due <= now:
            key = heappop(self._heap)[1]
            del self._due[key]
            taken.append(key)
        return taken
