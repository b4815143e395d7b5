"""Warns and stops enforced attempts that use more of a shared GPU than they reserved.

A device that an attempt has for itself is not looked at: it takes from no other. An
attempt is warned once; one that is to be stopped has some seconds to free the memory.
"""

from typing import NamedTuple

from grass.keeper.protocol import StopVerb
from grass.link.messages import Overran
from grass.model.amount_text import size_text
from grass.worker.core.attempt_table import AttemptTable
from grass.worker.core.usage.overruns import STOPPED, Overrun, overruns, shares
from grass.worker.core.usage.samples import Sample

PATIENCE_S = 10.0
"""How long an attempt may use too much after the warning, before it is stopped."""
STOP = "stop"
GRACE_S = 15.0


class Findings(NamedTuple):
    """What follows from a look."""

    warnings: list[Overran]
    stops: list[StopVerb]


class Watchdog:
    """Which attempts use too much, and since when."""

    def __init__(self, table: AttemptTable) -> None:
        self._table = table
        self._since: dict[str, float] = {}
        self._warned: set[str] = set()

    def sampled(self, sample: Sample, now_s: float) -> Findings:
        """Note a look; return who is to be warned, and who is to be stopped."""
        found = Findings([], [])
        over = self._over(sample)
        self._since = {name: self._since.get(name, now_s) for name in over}
        self._warned &= self._table.attempts.keys()
        for name, overrun in over.items():
            attempt = self._table.attempts[name]
            if name not in self._warned:
                self._warned.add(name)
                found.warnings.append(_warning(overrun, attempt.notes.placed_at))
            is_late = now_s - self._since[name] >= PATIENCE_S
            stops = attempt.notes.enforce == STOP and not attempt.stopping
            if stops and is_late:
                attempt.stopping = True
                found.stops.append(_stop(overrun))
        return found

    def _over(self, sample: Sample) -> dict[str, Overrun]:
        """Return the enforced attempts that use too much of a GPU that others share."""
        known = self._table.attempts
        if not any(one.notes.enforce for one in known.values() if not one.exited):
            return {}
        allocations = self._table.reserved()
        return {
            one.attempt: one
            for one in overruns(sample, allocations)
            if one.attempt in allocations
            and known[one.attempt].notes.enforce
            and shares(one.unit, allocations)
        }


def _warning(one: Overrun, placed_at: int) -> Overran:
    return Overran(one.attempt, one.unit, one.used, one.reserved, placed_at)


def _stop(one: Overrun) -> StopVerb:
    used, asked = size_text(one.used), size_text(one.reserved)
    reason = f"{STOPPED} used {used} of {asked} on gpu {one.unit}"
    return StopVerb(one.attempt, grace=GRACE_S, reason=reason)
