"""The attempts of this machine and the units that each of them holds or inherits.

What always holds: an attempt that follows another one holds nothing itself; when the
one before it leaves, it has the same units at once, so nobody comes in between.
"""

from grass.worker.held import Held
from grass.worker.ledger import Ledger


class Books:
    """Who is here, who holds what, and who takes over from whom."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.attempts: dict[str, Held] = {}
        self.ledger = Ledger()
        self.heirs: dict[str, str] = {}
        """Who takes over whose units."""

    def take_in(self, attempt: str, held: Held) -> None:
        """Add an attempt, with units of its own or behind another one."""
        self.attempts[attempt] = held
        if held.after is None:
            self.ledger.hold(held.allocation)
        else:
            self.heirs[held.after] = attempt

    def let_go(self, attempt: str, held: Held) -> None:
        """Take an attempt's units back, and give them to who follows it."""
        heir = self.heirs.pop(attempt, None)
        if held.after is not None:
            self.heirs.pop(held.after, None)
        else:
            self.ledger.release(held.allocation)
        if heir is not None and heir in self.attempts:
            self.attempts[heir].after = held.after
            if held.after is None:
                self.ledger.hold(self.attempts[heir].allocation)
            else:
                self.heirs[held.after] = heir
