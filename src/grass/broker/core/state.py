"""The broker's memory: everything unfinished, and what the present batch changes.

One task owns it, so there are no locks. It is filled from a `Snapshot` and is the same
again after a restart. Functions of the modules in the rooms change it; each change is
recorded in `batch`. The structs that hold a feature's memory are defined in the
feature's room.
"""

from collections import Counter

import msgspec

from grass.broker.core.attempts.attempt_memory import (
    AlikeStart,
    AvoidedWorkers,
    ForeignAttempts,
    Prefetched,
    Returns,
)
from grass.broker.core.batch import Batch
from grass.broker.core.interning import EnvTable, SpecTable
from grass.broker.core.jobs.job_memory import (
    AnsweredCalls,
    Arrays,
    BulkWork,
    Dependencies,
    Removals,
    StartTimes,
)
from grass.broker.core.pools.pool_memory import PoolMemory
from grass.broker.core.profiles.profile_memory import Profiles
from grass.broker.core.workers.worker_memory import (
    Absence,
    Declared,
    ReadinessNotes,
    UnitNotes,
)
from grass.errors import StorageError
from grass.model.amount_text import WHOLE
from grass.model.ids import AttemptId
from grass.model.jobs.job import DEFAULT_QUEUE, Attempt, Job, alike
from grass.model.jobs.lifecycle import AttemptState, JobState, moved_attempt, moved_job
from grass.model.journal import EventKind
from grass.model.queue import Queue
from grass.scheduler import Scheduler
from grass.store.bodies import json_text
from grass.store.changes import Event
from grass.store.interface import Snapshot

SCHEDULER = "scheduler"
"""The actor of what no user asked for by name: starts and ends."""


class Totals(msgspec.Struct):
    """What is counted, so that it need not be collected."""

    states: dict[JobState, int]
    """Jobs in each state, ended ones included."""
    output_bytes: int
    """Of all output that is kept."""
    unfinished: Counter[str] = msgspec.field(default_factory=Counter)
    """Jobs in memory, by queue."""


class DaemonFlags(msgspec.Struct):
    """What holds while this daemon runs, for every state that is loaded meanwhile."""

    home_worker: str | None = None
    """The worker in the broker's own daemon; callers' environments go there."""
    shared: bool = False
    """Whether other brokers may have led, on whose machines callers were."""
    starts_jobs: bool = True
    most_strangers: int = WHOLE // 10
    """How much of a GPU's memory strangers may use before it gives no share."""
    jobs_per_gpu: int | None = None
    """How many jobs a GPU may have; None: as many as fit."""
    acknowledge_s: float | None = None
    """How long a GPU must work before its fault counts as acknowledged; None: never."""
    shortage: StorageError | None = None
    """Set while the disk is full: nothing is added or started until it has room."""

    @property
    def disk_full(self) -> bool:
        """Whether nothing is started, because the broker's disk has no room."""
        return self.shortage is not None

    def apply_to(self, state: "State") -> None:
        """Use these flags in a state."""
        state.daemon = self
        state.scheduler.set_most_strangers(self.most_strangers)
        state.scheduler.set_jobs_per_gpu(self.jobs_per_gpu)
        self.apply_pause(state)

    def apply_pause(self, state: "State") -> None:
        """Place jobs in a state, or none for now."""
        starts_jobs = self.starts_jobs and not self.disk_full
        held = state.paused or not starts_jobs or bool(state.awaited())
        state.scheduler.set_paused(held)


class State:
    """Queues, workers and unfinished jobs."""

    def __init__(self, snapshot: Snapshot, now_us: int) -> None:
        self.cluster = snapshot.cluster
        self.daemon = DaemonFlags()
        self.now_us = now_us
        self.last_job = snapshot.last_job
        self.paused = snapshot.paused
        self.restored_last_job = snapshot.restored_last_job
        self.queues = {queue.name: queue for queue in snapshot.queues}
        self.workers = {worker.id: worker for worker in snapshot.workers}
        self.jobs: dict[int, Job] = {}
        self.attempts = {attempt.job: attempt for attempt in snapshot.attempts}
        self.tokens = {token.name: token for token in snapshot.tokens}
        self.moved_from = snapshot.home_worker
        self.specs = SpecTable(snapshot.last_spec, snapshot.specs)
        self.envs = EnvTable(snapshot.last_env, snapshot.envs)
        self.scheduler = Scheduler()
        self.batch = Batch()
        counts = {JobState(name): count for name, count in snapshot.counts.items()}
        states = dict.fromkeys(JobState, 0) | counts
        self.totals = Totals(states, snapshot.output_bytes)
        self._make_features(snapshot)
        self._restore(snapshot)

    def _make_features(self, snapshot: Snapshot) -> None:
        self.dependencies = Dependencies(ends=dict(snapshot.dependency_ends))
        # The next time is compared with that of the load: the clock may be set back.
        self.start_times = StartTimes(checked_us=self.now_us)
        self.arrays = Arrays(stored_fails=dict(snapshot.arrays))
        self.bulk = BulkWork()
        self.answered = AnsweredCalls(snapshot.calls, self.now_us)
        self.removals = Removals(snapshot.last_removal)
        self.prefetched = Prefetched()
        self.returns = Returns()
        self.avoided = AvoidedWorkers()
        self.last_start: AlikeStart | None = None
        self.foreign = ForeignAttempts(self.scheduler)
        self.declared = Declared(snapshot.queues)
        self.absences: dict[str, Absence] = {}
        """Workers that end their attempts by themselves while they are cut off."""
        self.readiness = ReadinessNotes()
        self.profiles = Profiles(snapshot.profiles)
        self.pools = PoolMemory(snapshot.pools, snapshot.pilots)
        self.unit_notes: dict[str, UnitNotes] = {}
        """What workers say of their GPUs."""

    def _restore(self, snapshot: Snapshot) -> None:
        if DEFAULT_QUEUE not in self.queues:
            default = Queue(DEFAULT_QUEUE, self.now_us)
            self.queues[DEFAULT_QUEUE] = default
            self.batch.changes.queues[DEFAULT_QUEUE] = default
        for number, worker, size in snapshot.removals:
            self.removals.waiting.setdefault(worker, {})[number] = size
        self.jobs.update((job.id, job) for job in snapshot.jobs)
        for common, count in alike(snapshot.jobs):
            self.specs.use(common.spec, count)
            self.totals.unfinished[common.queue] += count

    def take(self) -> Batch:
        """Return the present batch, and begin the next."""
        batch = self.batch
        batch.changes.specs.update(self.specs.new)
        batch.changes.envs.extend(self.envs.new)
        self.specs.new, self.envs.new = {}, []
        self.pools.move_to(batch.changes)
        batch.engine_effects, self.pools.effects = self.pools.effects, []
        self.batch = Batch()
        return batch

    def attempt_id(self, attempt: Attempt) -> str:
        """Return the name of an attempt, as workers and keepers know it."""
        return str(AttemptId(self.cluster, attempt.job, attempt.number))

    def attempts_on(self, worker: str) -> list[Attempt]:
        """Return the attempts that were placed on a worker."""
        return [one for one in self.attempts.values() if one.worker == worker]

    def unreported(self) -> list[str]:
        """Return the names of workers that have not reported to this broker yet."""
        return [
            worker.name
            for worker in self.workers.values()
            if worker.id not in self.foreign.reported
            and self.pools.pool_of(worker.id) is None
        ]

    def awaited(self) -> list[str]:
        """Return the workers that a queued job of a restored database waits for."""
        last = self.restored_last_job
        queued = last and any(
            job.state is JobState.QUEUED and job.id <= last
            for job in self.jobs.values()
        )
        return self.unreported() if queued else []

    def note(self, kind: EventKind, job: int | None = None, **data: object) -> None:
        """Write a line into the journal in the scheduler's name."""
        self.note_by(SCHEDULER, kind, job, **data)

    def note_by(
        self, actor: str, kind: EventKind, job: int | None = None, **data: object
    ) -> None:
        """Write a line into the journal."""
        attempt = self.attempts.get(job) if job is not None else None
        number = attempt.number if attempt is not None else None
        text = json_text(data) if data else "{}"
        event = Event(self.now_us, actor, kind, job, number, text)
        self.batch.changes.events.append(event)
        self.batch.urgent = True

    def move_job(self, job: Job, state: JobState) -> None:
        """Change a job's state, along an arrow of the lifecycle."""
        self.totals.states[job.state] -= 1
        if JobState.RUNNING in (job.state, state):
            self.note_before(job)
        job.state = moved_job(job.state, state)
        self.totals.states[state] += 1
        self.batch.moved.add(job.id)
        self.save_job(job)

    def note_before(self, job: Job) -> None:
        """Note how the store has a job that a worker's messages or a start change.

        This comes before the first change of a batch; of others it is not noted.
        """
        if job.id not in self.batch.changes.jobs:
            self.batch.changes.before.setdefault(job.id, (job.state, job.common))

    def save_job(self, job: Job) -> None:
        """Write the job with this batch."""
        self.batch.changes.jobs[job.id] = job
        self.batch.urgent = True

    def move_attempt(self, attempt: Attempt, state: AttemptState) -> None:
        """Change an attempt's state, along an arrow of the lifecycle."""
        attempt.state = moved_attempt(attempt.state, state)
        self.save_attempt(attempt)

    def save_attempt(self, attempt: Attempt) -> None:
        """Write the attempt with this batch."""
        self.batch.changes.attempts[attempt.job, attempt.number] = attempt
