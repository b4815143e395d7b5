"""What all parts of the keeper's core share: attempts, deadlines, effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.keeper.core.deadlines import Timers

if TYPE_CHECKING:
    from grass.keeper.core.attempt import KeeperAttempt
    from grass.keeper.core.effects import Effect


class KeeperState:
    """The attempts that are not forgotten, and what is to be done next."""

    def __init__(self) -> None:
        self.attempts: dict[str, KeeperAttempt] = {}
        self.by_pid: dict[int, KeeperAttempt] = {}
        """Attempts whose main process is a child of this keeper."""
        self.live = 0
        """How many attempts have not exited."""
        self.timers = Timers()
        self._wanted: list[Effect] = []

    def want(self, effect: Effect) -> None:
        """Ask for something to be done at the end of this step."""
        self._wanted.append(effect)

    def take_effects(self) -> list[Effect]:
        """Return the wanted effects, in order, and start a new list."""
        wanted, self._wanted = self._wanted, []
        return wanted
