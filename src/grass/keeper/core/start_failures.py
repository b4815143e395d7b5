"""Why this machine cannot start jobs now: a state of the machine, not of a job.

Before an attempt can start its record must be written, its output opened and a process
forked. What fails is tried again without end, with growing pauses. Daemons are told
only after several failures, and when starts work again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.keeper.core import effects
from grass.keeper.core.deadlines import pause
from grass.keeper.protocol import AbleEntry, UnableEntry

if TYPE_CHECKING:
    from grass.keeper.core.keeper_state import KeeperState

RECORDS, PROCESSES, OUTPUT = "records", "processes", "output"
TOLD_AFTER = 5
"""How many tries fail, in about a second, before daemons are told."""
CALM_S = 10.0
"""After this long without a failure pauses are short again."""
_TIMER = ("try again", "")


class StartFailures:
    """Why starts fail, and when they are tried again."""

    def __init__(self, state: KeeperState) -> None:
        self.told: str | None = None
        """The reason that daemons know."""
        self._timers = state.timers
        self._want = state.want
        self._reasons: dict[str, str] = {}
        self._folder: str | None = None
        self._failures = 0
        self._calm_since = 0.0

    @property
    def may_try(self) -> bool:
        """Tell whether a start may be tried now, or only after a pause."""
        return _TIMER not in self._timers

    def failed(
        self, what: str, why: str, now: float, folder: str | None = None
    ) -> None:
        """Note a failure; `folder` is where no output could be created."""
        if not self._reasons and now >= self._calm_since + CALM_S:
            self._failures = 0
        self._reasons[what] = why
        self._folder = folder or self._folder
        self.try_again(now)
        if self._failures >= TOLD_AFTER:
            self._tell()

    def worked(self, what: str, now: float) -> None:
        """Note that something works."""
        if self._reasons.pop(what, None) is None:
            return
        if what == OUTPUT:
            self._folder = None
        if not self._reasons:
            self._calm_since = now
            self._timers.cancel(*_TIMER)
        self._tell()

    def try_again(self, now: float) -> None:
        """Plan a turn that tries again."""
        if self.may_try:
            self._timers.set(*_TIMER, now + pause(self._failures))
            self._failures += 1

    def probe(self) -> None:
        """Try whether programs can be started, as no start is due that would show."""
        if self._reasons.keys() & {PROCESSES, OUTPUT}:
            self._want(effects.Probe(self._folder))

    def _tell(self) -> None:
        why = next(iter(self._reasons.values()), None)
        if why != self.told and (why is None or self._failures >= TOLD_AFTER):
            self.told = why
            entry = AbleEntry() if why is None else UnableEntry(why)
            self._want(effects.Tell(entry))
