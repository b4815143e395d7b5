"""The lease: until when attempts may live without a word from the daemon.

A worker that is to end its jobs when it is cut off renews the lease with every answer
of its broker. The time is of the boot clock, so it goes on while the machine sleeps,
and it is on record, so that a successor keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grass.keeper.events import Entry

CUT_OFF = "cut off from the broker"
LONGEST_SLEEP_S = 1.0
"""While there is a lease the clock is looked at this often: a machine that slept
through its end must notice soon after it wakes."""


class Lease:
    """One deadline for all attempts."""

    def __init__(self) -> None:
        """Begin without one."""
        self.until: float | None = None
        self.over = False

    def set(self, until: float | None) -> None:
        """Let attempts live until then; None: without end."""
        self.until, self.over = until, False

    def runs_out(self, now: float) -> bool:
        """Tell, once, that the time has come."""
        if self.over or self.until is None or now < self.until:
            return False
        self.over = True
        return True

    def entries(self) -> list[Entry]:
        """Give what must be on record."""
        return [] if self.until is None else [self.entry()]

    def entry(self) -> Entry:
        """Give the note of this lease."""
        return {"e": "lease", "until": self.until}

    def restore(self, entries: list[Entry]) -> None:
        """Take over what a predecessor had on record."""
        for entry in entries:
            if entry.get("e") == "lease":
                self.until = entry["until"]
