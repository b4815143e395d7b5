"""Which exits would not outlive a power cut yet.

Most exits are forgotten within milliseconds, as soon as the broker has committed them,
and cost nothing here. What is kept for longer is synced, all of it at once and never
twice at the same time: a sync may hang with its disk.
"""

from __future__ import annotations


class Syncing:
    """Exits that are kept and not synced, and those that a sync is under way for."""

    def __init__(self) -> None:
        self._new: set[str] = set()
        self._under_way: set[str] | None = None

    @property
    def is_due(self) -> bool:
        """Tell whether a sync must be planned."""
        return bool(self._new) and self._under_way is None

    def note_exit(self, id: str) -> None:
        """Have an exit synced that is on record."""
        self._new.add(id)

    def forget(self, id: str) -> None:
        """Leave an exit out that somebody else keeps now."""
        self._new.discard(id)

    def begin(self) -> bool:
        """Tell whether there is something to sync, and note that this begins."""
        if not self.is_due:
            return False
        self._under_way, self._new = self._new, set()
        return True

    def end(self, *, done: bool) -> None:
        """Note what came of a sync; what it failed for is due again."""
        if not done:
            self._new |= self._under_way or set()
        self._under_way = None
