"""The attempts of this machine and the units that each of them holds or inherits.

What always holds: an attempt that follows another one holds nothing itself; when the
one before it leaves, it has the same units at once, so nobody comes in between.

This machine may have worked for another broker before. What it ran for that one goes
on, and how it ended is kept until that broker hears of it; but not without end, as it
may be gone for good.
"""

from grass.model.ids import attempt_id
from grass.worker.core.held_attempt import Held
from grass.worker.core.unit_ledger import Ledger

MOST_KEPT = 500
"""How many exits are kept for brokers that this machine does not work for now."""
MOST_REFUSALS = 1_000
"""How many starts that were given back are remembered."""


class Books:
    """Who is here, who holds what, and who takes over from whom."""

    def __init__(self) -> None:
        self.attempts: dict[str, Held] = {}
        self.ledger = Ledger()
        self.heirs: dict[str, str] = {}
        """Who takes over whose units."""
        self.cluster: str | None = None
        """Whose broker this machine works for; None: none has answered yet."""
        self._given_back: dict[str, int] = {}

    def give_back(self, attempt: str, placed_at: int) -> None:
        """Note that a placement is never begun here: the broker is told so."""
        if placed_at:
            self._given_back.pop(attempt, None)
            self._given_back[attempt] = placed_at
        if len(self._given_back) > MOST_REFUSALS:
            del self._given_back[next(iter(self._given_back))]

    def was_given_back(self, attempt: str, placed_at: int) -> bool:
        """Tell whether the broker may have placed the job anew by now."""
        return bool(placed_at) and self._given_back.get(attempt) == placed_at

    def is_foreign(self, attempt: str) -> bool:
        """Tell whether an attempt is of another broker than the present one."""
        return self.cluster is not None and attempt_id(attempt).cluster != self.cluster

    def drop_oldest(self) -> list[str]:
        """Take out the exits that have been kept too long for other brokers."""
        kept = [
            (held.exited.at, name)
            for name, held in self.attempts.items()
            if held.exited is not None and self.is_foreign(name)
        ]
        dropped = [name for _, name in sorted(kept)[: max(0, len(kept) - MOST_KEPT)]]
        for name in dropped:
            del self.attempts[name]
        return dropped

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
