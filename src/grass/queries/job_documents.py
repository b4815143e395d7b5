"""Jobs as JSON documents, as `grass show` prints them.

Jobs come from the store, so only committed changes are shown. Flags and the reason why
a job waits come from memory.
"""

from operator import attrgetter

from msgspec.structs import replace

from grass.broker.core.jobs import eligibility
from grass.broker.core.profiles.learning import learns_from
from grass.broker.core.state import State
from grass.broker.core.workers import restored
from grass.errors import NotFound
from grass.model.jobs.commands import split_assignments
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.job_types import type_of
from grass.model.jobs.lifecycle import UNFINISHED, AttemptState, JobState
from grass.model.jobs.placeholders import fill_command, values_of
from grass.model.jobs.spec import SHOWN_AS_STORED, Spec, asked_json
from grass.model.jobs.task_call import shown_call
from grass.model.resources import units_json
from grass.model.times import rfc3339
from grass.queries import constraints
from grass.queries.cluster_documents import WorkerNames
from grass.queries.documents import JsonObject
from grass.queries.listing import ArrayView, is_ahead, last_attempt
from grass.queries.pool_waits import pool_words
from grass.queries.profile_documents import learned_lines
from grass.queries.usage_documents import use_json
from grass.store.interface import JobDetails

_WAITING = frozenset({JobState.HELD, JobState.WAITING, JobState.QUEUED})


def job_document(
    details: JobDetails, state: State, now_s: float, forgotten: WorkerNames
) -> JsonObject:
    """Return a job as a document."""
    job, spec, attempts = details.job, details.spec, details.attempts
    last = last_attempt(details)
    if is_ahead(job, last):
        return _ahead_document(details, state, now_s, forgotten)
    running = last is not None and job.state is JobState.RUNNING
    prefix = _prefix(job, spec, state)
    command = [*prefix, *_words(job, spec)]
    return {
        "id": job.id,
        "name": job.name,
        "project": job.project,
        "owner": job.owner,
        "queue": job.queue,
        "state": job.state,
        "flags": _flags(job, last, state),
        "unreachable": _unreachable(job, last, state),
        "unreachable_since": _unreachable_since(job, last, state),
        "command": command,
        "prefix": list(prefix),
        "filled_command": _filled(job, spec, command, last),
        "params": job.params,
        "shell": job.shell or spec.task is not None,
        "request": asked_json(spec),
        "allocation": units_json(last.allocation) if last and running else {},
        "worker": last and _name(state, last.worker, forgotten),
        "pid": last.pid if last and running else None,
        "guest": None if spec.guest is None else spec.guest[0],
        "task": None if spec.task is None else spec.task.name,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "reason": _reason(job, state, now_s, forgotten),
        "priority": job.priority,
        "cwd": spec.cwd or _queue_directory(job, spec, state),
        **_options(job, spec, state, forgotten),
        "created_at": rfc3339(job.created_at),
        "started_at": rfc3339(job.started_at),
        "finished_at": rfc3339(job.finished_at),
        "ran_s": last.ran_s if last and job.finished_at is not None else None,
        "stopping_since": rfc3339(job.stopping_since),
        "suspended_since": rfc3339(job.suspended_since),
        "attempts": [_attempt(one, state, forgotten) for one in attempts],
        "output": last.output if last else None,
    }


def _ahead_document(
    details: JobDetails, state: State, now_s: float, forgotten: WorkerNames
) -> JsonObject:
    """Return a job that was only sent ahead as one that is queued.

    It holds nothing, and may yet be recalled.
    """
    before = details.attempts[-1].after
    job = replace(details.job, state=JobState.QUEUED, started_at=None)
    waiting = JobDetails(job, details.spec, details.attempts[:-1])
    document = job_document(waiting, state, now_s, forgotten)
    return {**document, "reason": f"starts when job {before} ends"}


def array_document(view: ArrayView, reason: str | None) -> JsonObject:
    """Return an array as a whole; `reason` is why its next member waits."""
    job, totals = view.shown.job, view.totals
    unfinished = any(state in UNFINISHED for state in totals.states)
    return {
        "id": totals.first,
        "last": totals.last,
        "name": job.common.name,
        "project": job.project,
        "queue": job.queue,
        "owner": job.owner,
        "command": _words(job, view.shown.spec),
        "shell": job.shell or view.shown.spec.task is not None,
        "request": asked_json(view.shown.spec),
        "total": sum(totals.states.values()),
        "states": {one.value: totals.states.get(one, 0) for one in JobState},
        "created_at": rfc3339(job.created_at),
        "started_at": rfc3339(totals.started_at),
        "finished_at": None if unfinished else rfc3339(totals.finished_at),
        "reason": reason,
        "params": list(job.params),
    }


def _words(job: Job, spec: Spec) -> list[str]:
    """Return what a job runs; a task as a call of its function."""
    return list(job.words) if spec.task is None else [shown_call(spec.task)]


def _options(job: Job, spec: Spec, state: State, forgotten: WorkerNames) -> JsonObject:
    """Return the options of a job besides command and request."""
    return {
        "index": job.index,
        "array": job.array,
        "after": [str(one) for one in sorted(spec.after, key=attrgetter("first"))],
        # Values may be secrets.
        "variables": list(dict(spec.env)),
        "begin_at": rfc3339(spec.begin_at),
        "not_before": rfc3339(job.not_before),
        "retries_left": max(0, spec.retries - job.failures),
        "wanted_worker": spec.worker and _name(state, spec.worker, forgotten),
        "job_type": type_of(spec, job) if learns_from(spec) else None,
        "learned": learned_lines(state, spec, job),
        **{name: getattr(spec, name) for name in SHOWN_AS_STORED},
    }


def outcome_document(job: Job) -> JsonObject:
    """Return only how a job ended, as many may be asked for at once."""
    return {
        "id": job.id,
        "name": job.name,
        "state": job.state,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "reason": job.reason,
    }


def _unreachable(job: Job, last: Attempt | None, state: State) -> bool:
    """Return whether a job runs on an unreachable worker."""
    if last is None or job.state is not JobState.RUNNING:
        return False
    return constraints.is_unreachable(state, last)


def _unreachable_since(job: Job, last: Attempt | None, state: State) -> str | None:
    if last is None or not _unreachable(job, last, state):
        return None
    worker = state.workers.get(last.worker)
    return None if worker is None else rfc3339(worker.heard_at)


def _flags(job: Job, last: Attempt | None, state: State) -> list[str]:
    flags = []
    if job.state is JobState.RUNNING:
        if job.stopping_since is not None:
            flags.append("stopping")
        if last is not None and last.state is AttemptState.STARTING:
            flags.append("starting")
        if job.suspended_since is not None:
            flags.append("suspended")
        if _unreachable(job, last, state):
            flags.append("unreachable")
    return flags


def _prefix(job: Job, spec: Spec, state: State) -> tuple[str, ...]:
    """Return the queue's part of what ran, or of what would run now."""
    queue = state.queues.get(job.queue)
    return spec.prefix if queue is None or job.attempts else queue.prefix


def _filled(
    job: Job, spec: Spec, command: list[str], last: Attempt | None
) -> list[str]:
    """Return a command with what is known of its placeholders: units once it ran."""
    if spec.raw or spec.verbatim or not any("{" in word for word in command):
        return command
    tried = None if job.state in _WAITING else last
    values = values_of(
        id=job.id,
        name=job.name,
        project=job.project,
        index=job.index,
        params=job.params,
        attempt=None if tried is None else tried.number,
        allocation=None if tried is None else tried.allocation,
    )
    return fill_command(command, values, job.params, shell=job.shell)


def hide_values(job: Job, document: JsonObject) -> None:
    """Hide the values of environment variables at the beginning of a command."""
    assignments, _ = split_assignments(job.words)
    if not assignments or document["command"] != list(job.words):
        return
    hidden = [f"{name}=…" for name, _ in assignments]
    for field in {"command", "filled_command"} & document.keys():
        document[field] = [*hidden, *document[field][len(hidden) :]]


def _queue_directory(job: Job, spec: Spec, state: State) -> str | None:
    queue = state.queues.get(job.queue)
    return spec.queue_cwd if queue is None or job.attempts else queue.cwd


def why_waiting(
    job: Job, state: State, now_s: float, forgotten: WorkerNames
) -> str | None:
    """Explain in one line why a job does not start; None: it has started."""
    known = state.jobs.get(job.id)
    if known is None or known.state not in _WAITING:
        return None
    if known.state is not JobState.QUEUED:
        return eligibility.why(state, known)
    if state.daemon.disk_full:
        return constraints.DISK_FULL
    if awaited := state.awaited():
        return restored.reason(awaited)
    try:
        reason = state.scheduler.explain(job.id, now_s)
    except NotFound:
        return "just arriving"
    if reason.worker is None and reason.gate() is None:
        spec = state.specs[known.spec]
        said, words = constraints.no_worker(state, spec, reason, forgotten), None
    else:
        said = reason.text(constraints.told(state))
        words = pool_words(state, known) if reason.gate() is None else None
    texts = said, words, constraints.avoided_words(state, known)
    return "; ".join(filter(None, texts))


def _reason(job: Job, state: State, now_s: float, forgotten: WorkerNames) -> str | None:
    if job.state not in _WAITING:
        return job.reason
    # Memory may be ahead of the store: then the job has just started.
    return why_waiting(job, state, now_s, forgotten) or "starts now"


def _name(state: State, worker: str, forgotten: WorkerNames) -> str:
    known = state.workers.get(worker)
    return forgotten.get(worker, worker) if known is None else known.name


def _attempt(attempt: Attempt, state: State, forgotten: WorkerNames) -> JsonObject:
    return {
        "number": attempt.number,
        "state": attempt.state,
        "worker": _name(state, attempt.worker, forgotten),
        "allocation": units_json(attempt.allocation),
        "pid": attempt.pid,
        "started_at": rfc3339(attempt.started_at),
        "finished_at": rfc3339(attempt.finished_at),
        "ran_s": attempt.ran_s,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "reason": attempt.reason,
        "cause": attempt.cause,
        "output": attempt.output,
        "output_offset": attempt.output_offset,
        "output_bytes": attempt.output_bytes,
        "stderr": attempt.stderr,
        "stderr_offset": attempt.stderr_offset,
        "max_rss": attempt.max_rss,
        "cpu_s": attempt.cpu_s,
        "peak": use_json(attempt.peak),
    }
