"""Daemon, workers and queues as people and programs see them.

All of it comes from memory, but for the names of workers that were forgotten: jobs go
on naming those, as where they ran or as where alone they may run, and the journal
knows them.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from grass.broker.core.attempts import avoided
from grass.broker.core.attempts.attempt_memory import ForeignAttempt
from grass.broker.core.attempts.foreign import short_name
from grass.broker.core.state import State
from grass.broker.core.workers import gpu_faults, registry, units
from grass.broker.core.workers.worker_memory import UnitNotes
from grass.broker.shell.service import Broker
from grass.errors import NotFound
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import JobState
from grass.model.queue import Queue
from grass.model.resources import GPU_KINDS, Capacity, request_json, units_json
from grass.model.times import rfc3339
from grass.model.worker import GpuFault, Worker
from grass.queries.documents import JsonObject
from grass.store.changes import StoredEvent
from grass.store.interface import JobDetails, Store

WORKER_FORGOTTEN = "worker-forgotten"
WAITING = (JobState.HELD, JobState.WAITING, JobState.QUEUED)
_PAGE = 1000

WorkerNames = Mapping[str, str]
"""The names of workers that were forgotten, by id."""


def daemon_document(
    version: str, started_at: int, state: State, jobs: Mapping[JobState, int]
) -> JsonObject:
    """Return the daemon, and totals over all jobs."""
    return {
        "pid": os.getpid(),
        "version": version,
        "started_at": rfc3339(started_at),
        "cluster": state.cluster,
        "paused": state.paused,
        "jobs": {name.value: jobs.get(name, 0) for name in JobState},
        "output_bytes": min(max(0, state.totals.output_bytes), 2**63 - 1),
    }


def worker_document(worker: Worker, state: State) -> JsonObject:
    """Return a worker: its address, units, and free amounts."""
    capacity = units.known_capacity(state, worker)
    origins = units.origins(worker, capacity)
    return {
        "id": worker.id,
        "name": worker.name,
        **_connection(worker, state),
        "foreign": [_foreign(one, state) for one in state.foreign.of(worker.id)],
        "running": sum(one.worker == worker.id for one in _running(state)),
        "capacity": units_json(capacity),
        "free": units_json(_free(worker, state)),
        "origin": origins,
        "drained": {kind: list(names) for kind, names in worker.drained.items()},
        **_unit_notes(worker, state),
        "devices": {
            kind: {name: unit.details for name, unit in found.items() if unit.details}
            for kind, found in worker.found.items()
            if any(unit.details for unit in found.values())
        },
    }


def _foreign(attempt: ForeignAttempt, state: State) -> JsonObject:
    """Return an attempt that runs there and that the database knows nothing of."""
    return {
        "attempt": short_name(state, attempt.name),
        "name": attempt.title or None,
        "running": attempt.running,
        "pid": attempt.pid,
        "started_at": rfc3339(attempt.started_at),
        "units": units_json(attempt.units),
        "output": attempt.output,
        "job": attempt.job,
        "stopping": attempt.stopping,
        "kept": attempt.name in state.workers[attempt.worker].kept_attempts,
    }


def _free(worker: Worker, state: State) -> Capacity:
    """Return the free amounts, of GPUs with a fault 0; none for an unknown worker."""
    try:
        free = state.scheduler.spare(worker.id)
    except NotFound:
        return {}
    for fault in worker.gpu_faults.values():
        for kind in GPU_KINDS:
            if fault.unit in free.get(kind, {}):
                free[kind][fault.unit] = 0
    return free


def _unit_notes(worker: Worker, state: State) -> JsonObject:
    """Return what no job can have of a worker's GPUs, and why."""
    notes = state.unit_notes.get(worker.id, UnitNotes())
    faults = worker.gpu_faults.values()
    return {
        "withheld": units_json(notes.withheld),
        "strangers": notes.strangers,
        "faults": {fault.unit: fault_document(worker, fault) for fault in faults},
    }


def fault_document(worker: Worker, fault: GpuFault) -> JsonObject:
    """Return why a GPU takes no job; `why` has it all in one line."""
    return {
        "reason": fault.reason,
        "since": rfc3339(fault.since),
        "works_since": rfc3339(fault.works_since),
        "acknowledged": not fault.needs_acknowledgement,
        "why": gpu_faults.sentence(worker, fault),
    }


def _connection(worker: Worker, state: State) -> JsonObject:
    """Return the state of a worker's connection."""
    own = worker.connected and worker.id == state.daemon.home_worker
    return {
        "connected": worker.connected,
        "unreachable_since": None if worker.connected else rfc3339(worker.heard_at),
        "draining": worker.draining,
        "draining_reason": worker.draining_reason or None,
        "unable": worker.unable or None,
        "held_back": [
            {"jobs": one.jobs, "reason": one.reason, "until": rfc3339(one.until_us)}
            for one in avoided.held_back(state, worker.id)
        ],
        "address": worker.address,
        "labels": list(worker.labels),
        "lease_s": worker.lease_s,
        "enforces": list(worker.enforces),
        # The worker in this daemon sends no heartbeats.
        "heard_at": None if own else rfc3339(worker.heard_at),
        "clock_skew_s": registry.reported_skew_s(worker),
    }


def _running(state: State) -> Iterator[Attempt]:
    """Yield the attempts that hold units; others were only sent ahead."""
    return (one for one in state.attempts.values() if one.after is None)


def queue_document(
    queue: Queue, state: State, jobs: Mapping[JobState, int]
) -> JsonObject:
    """Return a queue with its views and counts of jobs."""
    default = queue.default_request
    return {
        "name": queue.name,
        "paused": queue.paused,
        "paused_reason": queue.paused_reason,
        "max_fails": queue.max_fails,
        "fails": queue.fails,
        "max_running": queue.max_running,
        "enforce": queue.enforce,
        "default_request": None if default is None else request_json(default),
        "running": jobs.get(JobState.RUNNING, 0),
        "waiting": sum(jobs.get(one, 0) for one in WAITING),
        "views": {
            registry.name_of(state, worker): {
                "capacity": units_json(view.capacity),
                "command": list(view.prefix),
                "cwd": view.cwd,
            }
            for worker, view in queue.views.items()
        },
    }


class ForgottenNames:
    """Looks up names of forgotten workers when they are asked for, and keeps them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._read_to = 0

    async def of_jobs(self, broker: Broker, jobs: Sequence[JobDetails]) -> WorkerNames:
        """Return the names of forgotten workers in these jobs."""
        asked = {job.spec.worker for job in jobs if job.spec.worker is not None}
        asked |= {one.worker for job in jobs for one in job.attempts}
        return await self.of(broker, asked)

    async def of(self, broker: Broker, workers: Iterable[str]) -> WorkerNames:
        """Return the names of all forgotten workers, reading those of these ids."""
        unknown = set(workers) - broker.state.workers.keys() - self._names.keys()
        if unknown:
            after = self._read_to
            last, found = await broker.read(lambda db: _forgotten(db, after))
            self._read_to = max(self._read_to, last)
            self._names.update(map(_named, found))
        return self._names


def _forgotten(store: Store, after: int) -> tuple[int, list[StoredEvent]]:
    last, found = store.last_event(), list[StoredEvent]()
    while page := store.events(after, _PAGE, None, (WORKER_FORGOTTEN,)):
        found += page
        after = page[-1].seq
    return max(last, after), found


def _named(event: StoredEvent) -> tuple[str, str]:
    data = msgspec.json.decode(event.data)
    return str(data["worker"]), str(data["name"])
