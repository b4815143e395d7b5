"""The broker's memory: everything unfinished, and what this batch has changed.

One task owns it, so there are no locks. It is filled from a `Snapshot` and is the same
again after a restart. Functions in the modules beside this one change it; each change
leaves its mark in `changes` (what to commit) or `outbox` (what to send once that is
committed). `take` hands both over and starts a new batch.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

import msgspec

from grass.broker.core.interning import EnvTable, SpecTable
from grass.broker.core.workers.declared_units import Declared
from grass.link.messages import ToWorker
from grass.log_lines import LogEvent
from grass.model.ids import AttemptId
from grass.model.job import DEFAULT_QUEUE, Attempt, Job, alike
from grass.model.journal import Kind
from grass.model.lifecycle import AttemptState, JobState, moved_attempt, moved_job
from grass.model.queue import Queue
from grass.model.resources import Allocation
from grass.scheduler import Scheduler
from grass.store.changes import Call, Changes, Event, json_text
from grass.store.interface import Snapshot

CALLS_KEPT_US = 3_600 * 1_000_000
"""How long a repeated call is recognised."""
CALLS_AT_HAND_US = 300 * 1_000_000
"""How long it is in memory; from then on only the store knows it (`model.keys`)."""

SCHEDULER = "scheduler"
"""The actor of what nobody asked for by name: starts and ends."""


if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.broker.core.jobs.array_limits import ArrayState
    from grass.broker.core.jobs.bulk_enqueue import Arrival
    from grass.broker.core.jobs.bulk_verbs import Bulk


class Effects(msgspec.Struct):
    """What follows from a batch: commit the changes first, then do the rest."""

    changes: Changes
    outbox: list[tuple[str, ToWorker]]
    moved: set[int]
    """Jobs whose state or attempt changed: whoever waits for one may look again."""
    ended: list[Job] = []
    """Jobs that ended."""
    log_events: list[LogEvent] = []


class Absence(msgspec.Struct):
    """A worker with a lease that is gone."""

    lease_s: float
    since_s: float | None = None
    """When that was noticed, by the clock of decisions; None: just now."""
    next_s: float | None = None
    """When the next of its attempts must be over."""


class Returns(msgspec.Struct):
    """What workers were asked to give back, and what they gave back unasked."""

    asked: set[int] = set()
    """Jobs whose attempts were asked for."""
    in_a_row: dict[str, list[int]] = {}
    """When each of those was placed that a worker gave back, and began none since."""


class Group(msgspec.Struct):
    """Jobs of one spec, which wait for the same others."""

    open: int = 0
    """How many of those are not met yet."""
    hopeless: str | None = None
    """Why it can never be met any more."""
    members: dict[int, None] = {}


class Waits(msgspec.Struct):
    """Who waits for which jobs, and for which times."""

    settled: dict[int, JobState]
    """How those jobs ended that somebody still names as a dependency."""
    dependents: dict[int, dict[int, None]] = {}
    """Who names a job: specs of groups, minus arrivals' first jobs, or 0 for a call."""
    groups: dict[int, Group] = {}
    """Those who wait, or are held, by their spec."""
    needs: dict[int, dict[int, tuple[str, ...]]] = {}
    """What each spec waits for, worked out once."""
    resolving: deque[list[int]] = msgspec.field(default_factory=deque)
    """Jobs whose group was settled, and that were not looked at yet."""
    timed: list[tuple[int, int]] = []
    """A heap of times and the jobs that wait for them."""
    looked_us: int = 0
    """What the clock showed when that was last looked at."""


class ReadinessNotes(msgspec.Struct):
    """What the journal tells of workers that cannot start jobs."""

    unable: set[str] = set()
    """Workers of which it tells last that they cannot."""
    noted_at: dict[str, int] = {}
    """When it was last told that a worker cannot."""


class Removals(msgspec.Struct):
    """Output that workers are to remove."""

    last: int
    """The largest number that was given out."""
    waiting: dict[str, dict[int, int]] = {}
    """The bytes of each removal, by worker and number."""
    sent: dict[str, int] = {}
    """What each worker was sent and has not answered."""
    failed: dict[str, set[int]] = {}
    """What each worker could not remove."""
    silent: set[str] = set()
    """Workers that confirm nothing."""
    logged: set[str] = set()
    """Workers whose failed removals have been logged."""


class State:
    """Queues, workers and unfinished jobs."""

    disk_full = False
    """Whether nothing is started, because the broker's disk has no room."""

    def __init__(self, snapshot: Snapshot, now_us: int) -> None:
        self.cluster = snapshot.cluster
        self.now_us = now_us
        self.last_job = snapshot.last_job
        self.paused = snapshot.paused
        self.queues = {queue.name: queue for queue in snapshot.queues}
        self.declared = Declared(snapshot.queues)
        """What the queues' views name."""
        self.workers = {worker.id: worker for worker in snapshot.workers}
        self.jobs: dict[int, Job] = {}
        self.attempts = {attempt.job: attempt for attempt in snapshot.attempts}
        self.specs = SpecTable(snapshot.last_spec, snapshot.specs)
        self.envs = EnvTable(snapshot.last_env, snapshot.envs)
        since = now_us - CALLS_AT_HAND_US
        self.calls = {one.key: one for one in snapshot.calls if one.at >= since}
        self.counts = dict.fromkeys(JobState, 0)
        self.counts.update({JobState(k): n for k, n in snapshot.counts.items()})
        self.output_bytes = snapshot.output_bytes
        self.removals = Removals(snapshot.last_removal)
        self.home_worker: str | None = None
        """The worker in the broker's own daemon; callers' environments go there."""
        self.absences: dict[str, Absence] = {}
        """Workers that end their attempts by themselves while they are cut off."""
        self.foreign: dict[tuple[str, str], str] = {}
        """Attempts of another database, by worker and id, and who holds their units."""
        self.pace: dict[tuple[str, int], float] = {}
        """How long jobs of a queue and spec run, in seconds, on a moving average."""
        self.handed: dict[int, float] = {}
        """Jobs handed ahead, and since when, the oldest first."""
        self.returns, self.readiness = Returns(), ReadinessNotes()
        self.leaders: list[int] = []
        """Jobs that just got units, and that others may be handed ahead to follow."""
        self.waits = Waits(settled=dict(snapshot.settled))
        self.arrays: dict[int, ArrayState] = {}
        self.array_fails = dict(snapshot.arrays)
        self.tokens = {token.name: token for token in snapshot.tokens}
        self.scheduler = Scheduler()
        self._begin_slices()
        self._start_batch()
        self._restore(snapshot)

    def _begin_slices(self) -> None:
        self.arriving: list[Arrival] = []
        """Large calls whose jobs are being made."""
        self.bulks: deque[Bulk] = deque()
        """Large calls that are worked off in slices, the first one first."""
        self.kept_back: list[tuple[set[int], Callable[[int], None]]] = []
        """Jobs that a large call acts on before they start, and what it does."""

    def _restore(self, snapshot: Snapshot) -> None:
        if DEFAULT_QUEUE not in self.queues:
            default = Queue(DEFAULT_QUEUE, self.now_us)
            self.queues[DEFAULT_QUEUE] = default
            self.changes.queues[DEFAULT_QUEUE] = default
        for number, worker, size in snapshot.removals:
            self.removals.waiting.setdefault(worker, {})[number] = size
        self.unfinished: Counter[str] = Counter()
        """How many jobs of each queue are in memory."""
        self.jobs.update((job.id, job) for job in snapshot.jobs)
        for common, count in alike(snapshot.jobs):
            self.specs.use(common.spec, count)
            self.unfinished[common.queue] += count

    def _start_batch(self) -> None:
        self.changes = Changes()
        self.outbox: list[tuple[str, ToWorker]] = []
        self.moved: set[int] = set()
        self.ended: list[Job] = []
        self.log_events: list[LogEvent] = []
        self.urgent = False

    @property
    def quiet(self) -> bool:
        """Tell whether nothing that this batch did was promised to anybody."""
        return not self.urgent and not self.outbox

    def take(self) -> Effects:
        """Hand over what this batch did, and begin the next."""
        self.changes.specs.update(self.specs.new)
        self.changes.envs.extend(self.envs.new)
        self.specs.new, self.envs.new = {}, []
        effects = Effects(
            self.changes, self.outbox, self.moved, self.ended, self.log_events
        )
        self._start_batch()
        return effects

    def remember(self, answered: Call) -> None:
        """Keep what a call was answered with, for as long as it is likely repeated."""
        self.calls[answered.key] = answered
        self.changes.calls.append(answered)
        for key, oldest in self.calls.items():
            if oldest.at >= self.now_us - CALLS_AT_HAND_US:
                break
            del self.calls[key]
            break

    def attempt_id(self, attempt: Attempt) -> str:
        """Name an attempt as workers and keepers know it."""
        return str(AttemptId(self.cluster, attempt.job, attempt.number))

    def attempts_on(self, worker: str) -> list[Attempt]:
        """Give the attempts that a worker holds, or is to hold."""
        return [one for one in self.attempts.values() if one.worker == worker]

    def note(self, kind: Kind, job: int | None = None, **data: object) -> None:
        """Write a line into the journal in the scheduler's name."""
        self.note_by(SCHEDULER, kind, job, **data)

    def note_by(
        self, actor: str, kind: Kind, job: int | None = None, **data: object
    ) -> None:
        """Write a line into the journal."""
        attempt = self.attempts.get(job) if job is not None else None
        number = attempt.number if attempt is not None else None
        text = json_text(data) if data else "{}"
        self.changes.events.append(Event(self.now_us, actor, kind, job, number, text))
        self.urgent = True

    def move_job(self, job: Job, state: JobState) -> None:
        """Change a job's state, along an arrow of the lifecycle."""
        self.counts[job.state] -= 1
        job.state = moved_job(job.state, state)
        self.counts[state] += 1
        self.moved.add(job.id)
        self.save_job(job)

    def save_job(self, job: Job) -> None:
        """Have the job written with this batch."""
        self.changes.jobs[job.id] = job
        self.urgent = True

    def move_attempt(self, attempt: Attempt, state: AttemptState) -> None:
        """Change an attempt's state, along an arrow of the lifecycle."""
        attempt.state = moved_attempt(attempt.state, state)
        self.save_attempt(attempt)

    def save_attempt(self, attempt: Attempt) -> None:
        """Have the attempt written with this batch."""
        self.changes.attempts[attempt.job, attempt.number] = attempt

    def hold_foreign(self, worker: str, name: str, units: Allocation) -> None:
        """Keep a worker's units for an attempt that is not ours."""
        holder = self.foreign[worker, name] = f"{worker}/{name}"
        self.scheduler.occupy(holder, worker, units)

    def release_foreign(self, worker: str, name: str) -> None:
        """Free what a worker's attempt that is not ours held, if it held anything."""
        holder = self.foreign.pop((worker, name), None)
        if holder is not None:
            self.scheduler.release(holder)

    def log(self, name: str, **fields: object) -> None:
        """Have an event logged once this batch is committed."""
        self.log_events.append(LogEvent(name, fields))

    def send(self, worker: str, message: ToWorker) -> None:
        """Have a message sent once this batch is committed."""
        self.outbox.append((worker, message))
