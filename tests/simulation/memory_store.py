"""A store in memory, with all that a store promises: the simulation's disk.

It passes the same conformance suite as the real one. What is committed lives in a
`MemoryDisk`, which outlasts every store that was opened on it, as a file does. A commit
is whole and durable when it returns; what a disk may do instead is not for here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy, deepcopy
from threading import Lock
from time import monotonic

import msgspec

from grass.errors import StorageError
from grass.model.access import Token
from grass.model.brokers import BrokerPresence, Lease, SeenBroker
from grass.model.id_runs import Runs
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import ENDED, UNFINISHED, AttemptState, JobState
from grass.model.jobs.spec import Spec
from grass.model.pools import Pilot, Pool
from grass.model.queue import Queue, View
from grass.model.selectors import Selection
from grass.model.usage import held_sums
from grass.model.usage.held_sums import HeldSums
from grass.model.usage.profiles import Profile
from grass.model.worker import Worker
from grass.store.changes import AnsweredCall, Changes, Env, Removal, StoredEvent
from grass.store.interface import (
    ArrayTotals,
    AttemptSpan,
    JobDetails,
    JobFilter,
    Snapshot,
    SortedPage,
    Sorting,
)
from grass.store.sql import job_filters
from tests.simulation import memory_filters
from tests.simulation.memory_blobs import MemoryBlobs
from tests.simulation.memory_lead import MemoryLead
from tests.simulation.memory_spans import spans_since

_RECENT = 5000
_COMINGS = (
    "worker-connected",
    "worker-disconnected",
    "worker-able",
    "worker-unable",
    "worker-held-back",
)
_LIVE = (AttemptState.STARTING, AttemptState.RUNNING)


class MemoryDisk(msgspec.Struct):
    """The tables, as committed."""

    meta: dict[str, str]
    envs: dict[int, Env] = {}
    specs: dict[int, Spec] = {}
    queues: dict[str, Queue] = {}
    views: dict[tuple[str, str], View] = {}
    workers: dict[str, Worker] = {}
    jobs: dict[int, Job] = {}
    attempts: dict[int, dict[int, Attempt]] = {}
    events: list[StoredEvent] = []
    calls: dict[str, AnsweredCall] = {}
    arrivals: dict[int, int] = {}
    arrays: dict[int, int] = {}
    tokens: dict[str, Token] = {}
    pools: dict[str, Pool] = {}
    pilots: dict[str, Pilot] = {}
    profiles: dict[tuple[str, str], Profile] = {}
    removals: dict[int, Removal] = {}
    held_sums: HeldSums = {}
    last_event: int = 0
    blobs: dict[str, bytes] = {}
    lead: MemoryLead = msgspec.field(default_factory=MemoryLead)


def new_disk(cluster: str) -> MemoryDisk:
    """Make the disk of a new cluster, whose name is 16 hexadecimal digits."""
    return MemoryDisk({"cluster": cluster, "last_job": "0", "paused": "0"})


class MemoryStore:
    """One cluster's state on one disk."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.blobs = MemoryBlobs(disk.blobs, disk.lead.check)
        self._lock = Lock()
        self.now_s: Callable[[], float] = monotonic
        """The database's clock."""

    def commit(self, changes: Changes, epoch: int = 0) -> None:
        """Write all of it, or nothing and raise `StorageError`."""
        for job in changes.jobs.values():
            _check_job(job)
        with self._lock:
            self.disk.lead.check(epoch)
            self._write(changes)

    def take_lease(
        self,
        holder: str,
        address: str,
        term_s: float,
        epoch: int = 0,
        process: str = "",
    ) -> Lease:
        """Take or renew the lead for a term, if nobody else has it."""
        with self._lock:
            me = BrokerPresence(id=holder, process=process)
            self.disk.lead.check_process(me, self.now_s(), epoch)
            return self.disk.lead.take(
                holder, address, epoch, ends_s=self.now_s() + term_s, now_s=self.now_s()
            )

    def lease(self) -> Lease:
        """Return who leads."""
        return self.disk.lead.at(self.now_s())

    def announce(self, broker: BrokerPresence) -> None:
        """Note that a broker is there."""
        with self._lock:
            self.disk.lead.check_process(broker, self.now_s())
            self.disk.lead.seen[broker.id] = broker, self.now_s()

    def brokers(self) -> list[SeenBroker]:
        """Return all brokers that were announced."""
        return self.disk.lead.brokers(self.now_s())

    def unnamed_blobs(self, names: list[str]) -> list[str]:
        """Return those of these blobs that neither a spec nor a job names."""
        with self._lock:
            tasks = (spec.task for spec in self.disk.specs.values())
            named = {task.function for task in tasks if task is not None}
            named |= {job.arguments_blob for job in self.disk.jobs.values()}
        return [name for name in names if name not in named]

    def shrink(self) -> bool:
        """Do nothing: memory has no free pages to release."""
        return False

    def load(self, calls_since: int) -> Snapshot:
        """Read back what `commit` has written."""
        with self._lock:
            self._tidy(calls_since)
            return self._loaded()

    def shortage(self) -> StorageError | None:
        """Return None: memory is never full."""
        return None

    def consistent(self) -> AbstractContextManager[None]:
        """Do nothing: commits and reads take turns in the simulation."""
        return nullcontext()

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobDetails]:
        """Read one page of jobs."""
        with self._lock:
            page = memory_filters.page(self._known(), wanted)
            return [self._details(job) for job in page[:limit]]

    def sorted_jobs(
        self, wanted: JobFilter, sorting: Sorting, limit: int
    ) -> SortedPage:
        """Read one page of jobs in any order."""
        with self._lock:
            found = memory_filters.page(self._known(), wanted)
            page = memory_filters.in_order(found, sorting)
            more = sorting.place_of(page[limit - 1]) if len(page) > limit else None
            shown = [self._details(job) for job in page[:limit]]
            return SortedPage(shown, more, dict(Counter(job.state for job in found)))

    def counts(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count the jobs that a filter matches by their state."""
        with self._lock:
            page = memory_filters.page(self._known(), wanted)
            return dict(Counter(job.state for job in page))

    def queue_counts(self) -> dict[str, dict[JobState, int]]:
        """Count all jobs by queue and state."""
        found: dict[str, dict[JobState, int]] = {}
        with self._lock:
            for job in self._known():
                known = found.setdefault(job.queue, {})
                known[job.state] = known.get(job.state, 0) + 1
        return found

    def arrays(self, wanted: JobFilter, limit: int) -> list[int]:
        """Return arrays with a matching member, in the order of those members."""
        with self._lock:
            page = memory_filters.page(self._known(), wanted)
            found = dict.fromkeys(job.array for job in page if job.array is not None)
            return list(found)[:limit]

    def array_totals(
        self, arrays: list[int], wanted: JobFilter
    ) -> dict[int, ArrayTotals]:
        """Count the members of these arrays that match, by array."""
        with self._lock:
            known = self._known()
            matching = memory_filters.page(known, job_filters.counted(wanted))
        found = {}
        for first in arrays:
            members = [job for job in known if job.array == first]
            if not members:
                continue
            starts = [job.started_at for job in members if job.started_at is not None]
            ends = [job.finished_at for job in members if job.finished_at is not None]
            found[first] = ArrayTotals(
                first,
                max(job.id for job in members),
                dict(Counter(job.state for job in matching if job.array == first)),
                min(starts, default=None),
                max(ends, default=None),
            )
        return found

    def details(self, ids: list[int]) -> list[JobDetails]:
        """Read these jobs, those that exist, in order of id."""
        with self._lock:
            return [self._details(job) for job in self._these(ids)]

    def outcomes(self, ids: list[int]) -> list[Job]:
        """Read these jobs, those that exist, without spec and attempts."""
        with self._lock:
            return [copy(job) for job in self._these(ids)]

    def states(self, runs: Runs) -> dict[int, JobState]:
        """Read the states of the jobs in these ranges, those that exist."""
        with self._lock:
            return {
                job.id: job.state
                for first, last in runs
                for job in self._these(list(range(first, last + 1)))
            }

    def select(self, selection: Selection) -> list[int]:
        """Return the ids of all jobs of a selection, in order."""
        for one in selection:
            _check_text(one.project, one.name, one.queue)
        with self._lock:
            return sorted(job.id for job in selection.among(self._known()))

    def dependents(self, ids: list[int]) -> list[int]:
        """Return the cancelled jobs that had waited for these, and theirs in turn."""
        with self._lock:
            known = [self._details(job) for job in self._known()]
        waited = [one for one in known if "waited for job" in (one.job.reason or "")]
        found, grown = set[int](), True
        while grown:
            leaders = found | set(ids)
            new = {
                one.job.id
                for one in waited
                if any(not leaders.isdisjoint(after.jobs) for after in one.spec.after)
            }
            grown, found = not new <= found, found | new
        return sorted(found)

    def usage_before(self, at: int) -> tuple[int, int]:
        """Count jobs that ended before a time, and the bytes of their output."""
        ids = self.finished_before(at, len(self.disk.jobs))
        tries = [a for job in ids for a in self._attempts_of(job)]
        return len(ids), sum(one.output_bytes for one in tries)

    def ends_after(self, event: int, last: int) -> dict[str, int]:
        """Count the jobs up to an id that ended after an event, by how they did."""
        at = max((one.at for one in self.disk.events if one.seq <= event), default=0)
        ended = (job for job in self._known() if job.state in ENDED and job.id <= last)
        return dict(Counter(job.state for job in ended if (job.finished_at or 0) > at))

    def finished_before(self, at: int, limit: int, skip: int = 0) -> list[int]:
        """Return jobs that ended before a time, the oldest first, after some."""
        with self._lock:
            return [job.id for job in self._ended_before(at)[skip : skip + limit]]

    def owned_by(self, owner: str, ids: list[int]) -> list[int]:
        """Return those of these jobs that an owner has, in order of id."""
        with self._lock:
            return [job.id for job in self._these(ids) if job.owner == owner]

    def call(self, key: str) -> AnsweredCall | None:
        """Return the reply to an idempotency key, if it is known."""
        return self.disk.calls.get(key)

    def attempts_since(
        self, at: int, limit: int, after: AttemptSpan | None = None
    ) -> list[AttemptSpan]:
        """Read attempts of jobs that ended after a time, the last of them first."""
        with self._lock:
            tried = [
                (job, a) for job in self._known() for a in self._attempts_of(job.id)
            ]
            return spans_since(tried, at, limit, after)

    def held_since(self, at: int) -> HeldSums:
        """Read what forgotten attempts held that ended after a time, as sums."""
        with self._lock:
            sums = self.disk.held_sums.items()
            return {key: held for key, held in sums if held.ended_at >= at}

    def environments(self, origins: Mapping[int, str]) -> list[Env]:
        """Read these stored environments, each of which came from a machine."""
        with self._lock:
            return [self.disk.envs[n] for n in sorted(origins) if n in self.disk.envs]

    def events(
        self, after: int, limit: int, job: int | None, kinds: tuple[str, ...]
    ) -> list[StoredEvent]:
        """Read the journal after an event, the oldest first."""
        with self._lock:
            found = [
                line
                for line in self.disk.events
                if line.seq > after
                and (job is None or _tells_of(line, job))
                and (not kinds or line.kind in kinds)
            ]
            return found[:limit]

    def cluster(self) -> str:
        """Return the name of the cluster."""
        return self.disk.meta["cluster"]

    def tokens(self) -> list[Token]:
        """Return all tokens and codes, the oldest first."""
        known = [copy(token) for token in self.disk.tokens.values()]
        return sorted(known, key=lambda token: (token.created_at, token.name))

    def last_event(self) -> int:
        """Return the number of the journal's last event."""
        return self.disk.events[-1].seq if self.disk.events else 0

    def runtimes(self, name: str, limit: int) -> list[float]:
        """Return the seconds that the last successful jobs of a name ran."""
        with self._lock:
            ended = [job for job in self.disk.jobs.values() if job.finished_at]
            ended.sort(key=lambda job: -(job.finished_at or 0))
            last = [
                self.disk.attempts[job.id][job.attempts].ran_s
                for job in ended[:_RECENT]
                if job.common.name == name and job.state is JobState.SUCCEEDED
            ]
            return [ran_s for ran_s in last if ran_s is not None][:limit]

    def removal_paths(self, number: int) -> list[str]:
        """Return the files of a removal; none if it is not known."""
        known = self.disk.removals.get(number)
        return [] if known is None else list(known.paths)

    def release(self) -> None:
        """Do nothing: no thread has a connection."""

    def close(self) -> None:
        """Close the store; may be called twice."""

    def _write(self, changes: Changes) -> None:
        disk = self.disk
        disk.meta.update(changes.meta)
        disk.envs.update((env.id, env) for env in changes.envs)
        disk.specs.update(changes.specs)
        disk.workers.update(deepcopy(changes.workers))
        for key in changes.removed_views:
            disk.views.pop(key, None)
        for name in changes.removed_workers:
            disk.workers.pop(name, None)
        for name in changes.removed_queues:
            disk.queues.pop(name, None)
        for name, queue in changes.queues.items():
            disk.queues[name] = msgspec.structs.replace(queue, views={})
        disk.views.update(changes.views)
        disk.jobs.update((number, copy(job)) for number, job in changes.jobs.items())
        self._write_attempts(changes)
        disk.arrivals.update(changes.arrivals)
        for first in changes.removed_arrivals:
            disk.arrivals.pop(first, None)
        for first in changes.removed_arrays:
            disk.arrays.pop(first, None)
        disk.arrays.update(changes.arrays)
        self._write_tokens_and_profiles(changes)
        self._write_removals(changes)
        for event in changes.events:
            disk.last_event += 1
            disk.events.append(StoredEvent(disk.last_event, *event))
        disk.calls.update((call.key, call) for call in changes.calls)
        if changes.removed_jobs:
            self._remove_jobs(set(changes.removed_jobs))
        self._add_held(changes.held_sums)
        self._remove_unused(changes.unused_specs, changes.unused_envs)

    def _add_held(self, sums: HeldSums) -> None:
        if sums:
            known, oldest = self.disk.held_sums, held_sums.oldest_kept(sums)
            held_sums.add(known, sums)
            for key in [one for one in known if one.ended_in < oldest]:
                del known[key]

    def _write_tokens_and_profiles(self, changes: Changes) -> None:
        disk = self.disk
        for name in changes.removed_tokens:
            disk.tokens.pop(name, None)
        disk.tokens.update((name, copy(one)) for name, one in changes.tokens.items())
        for key in changes.removed_profiles:
            disk.profiles.pop(key, None)
        for name in changes.removed_pools:
            disk.pools.pop(name, None)
        disk.pools.update((name, copy(one)) for name, one in changes.pools.items())
        for mark in changes.removed_pilots:
            disk.pilots.pop(mark, None)
        disk.pilots.update((mark, copy(one)) for mark, one in changes.pilots.items())
        disk.profiles.update((key, copy(one)) for key, one in changes.profiles.items())

    def _write_attempts(self, changes: Changes) -> None:
        for job, number in changes.removed_attempts:
            self.disk.attempts.get(job, {}).pop(number, None)
        for (job, number), attempt in changes.attempts.items():
            self.disk.attempts.setdefault(job, {})[number] = copy(attempt)

    def _write_removals(self, changes: Changes) -> None:
        self.disk.removals.update((one.id, one) for one in changes.removals)
        for number in changes.removed_removals:
            self.disk.removals.pop(number, None)

    def _remove_jobs(self, gone: set[int]) -> None:
        disk = self.disk
        left = [line for line in disk.events if line.job not in gone]
        first = next((line.seq for line in left if line.job is not None), 0)
        disk.events = [
            line for line in left if line.seq >= first or line.kind not in _COMINGS
        ]
        for job in gone:
            disk.attempts.pop(job, None)
            disk.jobs.pop(job, None)

    def _remove_unused(self, specs: Iterable[int], envs: Iterable[int]) -> None:
        disk = self.disk
        for number in set(specs) - {job.spec for job in disk.jobs.values()}:
            disk.specs.pop(number, None)
        for number in set(envs) - {one.base_env for one in disk.specs.values()}:
            disk.envs.pop(number, None)

    def _tidy(self, calls_since: int) -> None:
        disk = self.disk
        disk.calls = {
            k: call for k, call in disk.calls.items() if call.at >= calls_since
        }
        for first, last in disk.arrivals.items():
            for number in range(first, last + 1):
                disk.jobs.pop(number, None)
        last = int(disk.meta["last_job"])
        for first, end in sorted(disk.arrivals.items(), reverse=True):
            last = first - 1 if end == last else last
        disk.meta["last_job"] = str(last)
        if disk.arrivals:
            disk.arrivals.clear()
            self._remove_unused(list(disk.specs), list(disk.envs))

    def _loaded(self) -> Snapshot:
        disk = self.disk
        jobs = [copy(job) for job in disk.jobs.values() if job.state in UNFINISHED]
        jobs.sort(key=lambda job: job.id)
        specs = {job.spec: disk.specs[job.spec] for job in jobs}
        envs = {spec.base_env for spec in specs.values()}
        afters = [after for spec in specs.values() for after in spec.after]
        counts: dict[str, int] = {}
        for job in disk.jobs.values():
            counts[job.state.value] = counts.get(job.state.value, 0) + 1
        tries = [a for known in disk.attempts.values() for a in known.values()]
        return Snapshot(
            cluster=disk.meta["cluster"],
            last_job=int(disk.meta["last_job"]),
            last_spec=max(disk.specs, default=0),
            last_env=max(disk.envs, default=0),
            paused=disk.meta["paused"] == "1",
            queues=self._queues(),
            workers=[_as_stored(disk.workers[name]) for name in sorted(disk.workers)],
            jobs=jobs,
            attempts=[a for job in jobs for a in self._live_attempt(job)],
            specs=specs,
            envs=[env for n, env in sorted(disk.envs.items()) if n in envs],
            calls=sorted(disk.calls.values(), key=lambda call: call.at),
            counts=counts,
            output_bytes=sum(one.output_bytes for one in tries)
            + sum(one.bytes for one in disk.removals.values()),
            last_removal=int(disk.meta.get("last_removal", "0")),
            removals=[(n, r.worker, r.bytes) for n, r in disk.removals.items()],
            arrays=dict(disk.arrays),
            tokens=self.tokens(),
            pools=[copy(one) for _, one in sorted(self.disk.pools.items())],
            pilots=[copy(one) for _, one in sorted(self.disk.pilots.items())],
            profiles=[copy(one) for _, one in sorted(self.disk.profiles.items())],
            dependency_ends={
                number: disk.jobs[number].state
                for first, last in runs_of(afters)
                for number in sorted(disk.jobs)
                if first <= number <= last and disk.jobs[number].state in ENDED
            },
        )

    def _queues(self) -> list[Queue]:
        queues = {name: copy(queue) for name, queue in self.disk.queues.items()}
        for queue in queues.values():
            queue.views = {}
        for (name, worker), view in sorted(self.disk.views.items()):
            queues[name].views[worker] = view
        return sorted(queues.values(), key=lambda q: (q.created_at, q.name))

    def _live_attempt(self, job: Job) -> list[Attempt]:
        attempt = self.disk.attempts.get(job.id, {}).get(job.attempts)
        if job.state is not JobState.RUNNING or attempt is None:
            return []
        return [copy(attempt)] if attempt.state in _LIVE else []

    def _attempts_of(self, job: int) -> list[Attempt]:
        known = self.disk.attempts.get(job, {})
        return [copy(known[number]) for number in sorted(known)]

    def _details(self, job: Job) -> JobDetails:
        attempts = self._attempts_of(job.id)
        return JobDetails(copy(job), self.disk.specs[job.spec], attempts)

    def _known(self) -> list[Job]:
        """Return all jobs except those that still arrive."""
        ranges = list(self.disk.arrivals.items())
        return [
            job
            for job in self.disk.jobs.values()
            if not any(first <= job.id <= last for first, last in ranges)
        ]

    def _these(self, ids: list[int]) -> list[Job]:
        wanted = set(ids)
        known = [job for job in self._known() if job.id in wanted]
        return sorted(known, key=lambda job: job.id)

    def _ended_before(self, at: int) -> list[Job]:
        ended = [job for job in self.disk.jobs.values() if job.state in ENDED]
        before = [j for j in ended if j.finished_at is not None and j.finished_at < at]
        return sorted(before, key=lambda job: job.finished_at or 0)


def _tells_of(line: StoredEvent, job: int) -> bool:
    """Tell whether an event is about a job, or about the call that added it."""
    if line.kind != "enqueued" or line.job is None:
        return line.job == job
    last = msgspec.json.decode(line.data).get("last", line.job)
    return bool(line.job <= job <= last)


def _as_stored(worker: Worker) -> Worker:
    return msgspec.structs.replace(deepcopy(worker), connected=False)


def _check_text(*texts: str | None) -> None:
    for text in texts:
        if text is not None and not text.isascii():
            try:
                text.encode()
            except UnicodeError as error:
                raise StorageError("the disk takes only text") from error


def _check_job(job: Job) -> None:
    _check_text(job.common.name, job.project, job.owner, job.queue)
    if abs(job.priority) >= 2**63:
        raise StorageError("the disk takes only numbers of 64 bits")
