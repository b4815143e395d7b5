"""What the broker's memory holds for the features of attempts, each in a struct.

`State` holds one of each; the modules beside this one work on them.
"""

from collections import Counter

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
    may_return: bool
    """Whether another worker may have what its own lacks."""
    start: Start


class Returns(msgspec.Struct):
    """Attempts that workers were asked to return, and those they returned unasked."""

    asked: set[int] = set()
    """Jobs whose attempts were asked for."""
    in_a_row: dict[str, list[int]] = {}
    """Placement times of what a worker returned since it last began an attempt."""


class ForeignAttempt(msgspec.Struct):
    """An attempt that a worker has and this database does not have as running."""

    worker: str
    name: str
    units: Allocation
    running: bool
    """Whether its process exists; a start that has not begun is recalled."""
    pid: int | None = None
    started_at: int | None = None
    title: str = ""
    """The name of its job, as its worker knows it."""
    output: str | None = None
    job: int | None = None
    """The unfinished job of this database that it is of; None: of none."""
    stopping: bool = False
    to_end: bool = False
    """Whether a person has asked for its end."""
    is_over: bool = False
    """Whether this database has it as ended."""
    grace_s: float = 0.0


class Avoidance(msgspec.Struct):
    """Why jobs of a kind are not placed on a worker, and until when."""

    reason: str
    last_job: int
    """The newest job of the time when it was returned: later ones may find more."""
    until_us: int
    times: int = 0
    """How often it was tried again in vain."""
    over: bool = False
    """Whether the worker may be tried again, or was."""
    elsewhere: str = ""
    """The worker where such jobs run that fail here; empty: something is missing."""
    jobs: str = ""
    """What people call the jobs that fail here."""


class WorkerEnds(msgspec.Struct):
    """How jobs of a kind have ended on a worker."""

    failed: dict[int, float] = {}
    """For how many seconds those ran that failed at once, since one has not."""
    succeeded: bool = False
    """Whether the last one has."""
    looked_us: int | None = None
    """When it was last looked for others that run elsewhere."""


class AvoidedWorkers(msgspec.Struct):
    """The workers that jobs of some kinds are not placed on."""

    kinds: dict[str, dict[str, Avoidance]] = {}
    """By kind and worker."""
    queues: dict[str, str] = {}
    """The queue of each kind."""
    of_jobs: dict[int, str] = {}
    """Jobs that are of a kind of their own."""
    ends: dict[str, dict[str, WorkerEnds]] = {}
    """By kind and worker, for kinds of which no worker is avoided as well."""
    last_name: tuple[Common, Spec, str] | None = None
    """The last kind that was named, and of what."""
    next_us: int | None = None
    """When the next worker may be tried again."""
    gone: set[str] = set()
    """Workers that were disconnected since this broker has known them."""
    redirected: bool = False
    """Whether jobs were queued again that had been placed on such a worker."""


class ForeignAttempts:
    """The foreign attempts of all workers, which hold units there."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._known: dict[str, dict[str, ForeignAttempt]] = {}
        """By worker and name."""
        self._of_jobs = Counter[int]()
        self.reported: set[str] = set()
        """The workers that have reported their attempts to this broker."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._known)

    def __contains__(self, where: tuple[str, str]) -> bool:
        """Return whether a worker has such an attempt."""
        return self.get(*where) is not None

    def get(self, worker: str, name: str) -> ForeignAttempt | None:
        """Return one of a worker."""
        return self._known.get(worker, {}).get(name)

    def of(self, worker: str) -> list[ForeignAttempt]:
        """Return those of one worker."""
        return list(self._known.get(worker, {}).values())

    def runs(self, job: int) -> bool:
        """Return whether an attempt of this job is among them, and not over."""
        return job in self._of_jobs

    def hold(self, foreign: ForeignAttempt) -> None:
        """Keep a worker's units for one."""
        self._known.setdefault(foreign.worker, {})[foreign.name] = foreign
        if foreign.job is not None:
            self._of_jobs[foreign.job] += 1
        holder = f"{foreign.worker}/{foreign.name}"
        self._scheduler.occupy(holder, foreign.worker, foreign.units)

    def release(self, worker: str, name: str) -> None:
        """Free what one holds, if it holds anything."""
        foreign = self._known.get(worker, {}).pop(name, None)
        if foreign is None:
            return
        if not self._known[worker]:
            del self._known[worker]
        if foreign.job is not None:
            self._of_jobs[foreign.job] -= 1
            if not self._of_jobs[foreign.job]:
                del self._of_jobs[foreign.job]
        self._scheduler.release(f"{worker}/{name}")
