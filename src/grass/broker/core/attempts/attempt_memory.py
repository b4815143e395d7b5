"""What the broker's memory holds for the features of attempts, each in a struct.

`State` holds one of each; the modules beside this one work on them.
"""

import msgspec

from grass.link.messages import Start
from grass.model.jobs.job import Common
from grass.model.jobs.spec import Spec
from grass.model.queue import View
from grass.model.resources import Allocation
from grass.scheduler import Scheduler


class Prefetched(msgspec.Struct):
    """Jobs that were sent to workers ahead of their turn, and which may be."""

    durations: dict[tuple[str, int], float] = {}
    """How long jobs of a queue and spec run, in seconds, on a moving average."""
    most: dict[tuple[str, int], float] = {}
    """How many of them are sent ahead, at most."""
    sent: dict[int, float] = {}
    """Jobs sent ahead, and since when, the oldest first."""
    started: list[int] = []
    """Jobs that just got units, behind which others may be prefetched."""


class AlikeStart(msgspec.Struct):
    """The last start that was composed, without what was of its attempt alone."""

    made_of: tuple[Common, Spec, View]
    has_files: bool
    """Whether its worker has the caller's files."""
    start: Start


class Returns(msgspec.Struct):
    """Attempts that workers were asked to return, and those they returned unasked."""

    asked: set[int] = set()
    """Jobs whose attempts were asked for."""
    in_a_row: dict[str, list[int]] = {}
    """Placement times of what a worker returned since it last began an attempt."""


class ForeignAttempts:
    """Attempts of another database, which hold units of a worker."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._holders: dict[tuple[str, str], str] = {}
        """The holder of the units, by worker and attempt."""

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._holders)

    def __contains__(self, where: tuple[str, str]) -> bool:
        """Tell whether a worker has such an attempt."""
        return where in self._holders

    def of(self, worker: str) -> list[str]:
        """Name those of one worker."""
        return [name for where, name in self._holders if where == worker]

    def hold(self, worker: str, name: str, units: Allocation) -> None:
        """Keep a worker's units for one."""
        holder = self._holders[worker, name] = f"{worker}/{name}"
        self._scheduler.occupy(holder, worker, units)

    def release(self, worker: str, name: str) -> None:
        """Free what one holds, if it holds anything."""
        holder = self._holders.pop((worker, name), None)
        if holder is not None:
            self._scheduler.release(holder)
