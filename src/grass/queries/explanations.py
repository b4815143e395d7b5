"""Why a job waits, with numbers, or how it ended: the answer of `grass explain`."""

import time
from collections.abc import Callable
from shlex import quote

from grass.broker.core.state import State
from grass.broker.core.workers import leases, registry
from grass.broker.shell.service import Broker
from grass.errors import GrassError, NotFound
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.endings import exit_meaning, killed
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import ENDED, AttemptState, JobState
from grass.model.jobs.spec import Spec
from grass.model.resources import units_json
from grass.model.times import rfc3339
from grass.model.usage.attempt_usage import AttemptUsage
from grass.queries.cluster_documents import WorkerNames
from grass.queries.constraints import (
    DISK_FULL,
    States,
    absence,
    prospects,
    queued_constraints,
    waiting_constraints,
)
from grass.queries.documents import EstimateReply, ExplainReply, HolderReply
from grass.queries.estimates import (
    MOST_NAMES,
    RUNS,
    Estimate,
    History,
    end_of,
    end_of_all,
    simulate,
    snapshot_for,
    unfinished,
)
from grass.queries.job_documents import why_waiting
from grass.queries.output.output_sources import last_lines
from grass.queries.profile_documents import learned_lines
from grass.queries.usage_documents import usage_fields, usage_now
from grass.scheduler.reasons.explanation import Explanation
from grass.scheduler.worker_units import Holder
from grass.store.interface import JobDetails, Store

LAST_LINES = 20
MOST_SHOWN = 100
"""Dependencies and holders; the open ones come first."""


async def explanation(
    broker: Broker, details: JobDetails, forgotten: WorkerNames
) -> ExplainReply:
    """Explain why a job waits, or how it ended."""
    job = broker.state.jobs.get(details.job.id, details.job)
    if job.state in ENDED:
        return _with_usage(await _ended(broker, details), details, None)
    why = _why(broker.state, job, forgotten)
    reply = ExplainReply(job.id, job.state, why, attempts=job.attempts)
    reply.learned = learned_lines(broker.state, details.spec, job)
    if job.state is JobState.QUEUED:
        await _queued(broker, job, reply, forgotten)
    elif job.state is not JobState.RUNNING:
        await _waiting(broker, job, details.spec, reply)
    else:
        uses = await usage_now(broker, [details])
        _with_usage(reply, details, uses.get(job.id))
    return reply


def _with_usage(
    reply: ExplainReply, details: JobDetails, usage: AttemptUsage | None
) -> ExplainReply:
    fields = usage_fields(details, usage)
    reply.usage, reply.usage_note = fields["usage"], fields["usage_note"]
    return reply


def _why(state: State, job: Job, forgotten: WorkerNames) -> str:
    if job.state is not JobState.RUNNING:
        return why_waiting(job, state, time.monotonic(), forgotten) or "starts now"
    attempt = state.attempts.get(job.id)
    if attempt is not None and not state.workers[attempt.worker].connected:
        return _unreachable(state, job, attempt)
    if job.stopping_since is not None:
        return f"it is being stopped since {rfc3339(job.stopping_since)}"
    if job.suspended_since is not None:
        return f"it is suspended; `grass continue {job.id}` lets it go on"
    verb = "runs"
    if attempt is not None and attempt.state is AttemptState.STARTING:
        verb = f"is being started on `{registry.name_of(state, attempt.worker)}`"
    return f"it {verb} since {rfc3339(job.started_at)}"


def _unreachable(state: State, job: Job, attempt: Attempt) -> str:
    """Say that a job's worker is disconnected, and what ends that state."""
    worker = state.workers[attempt.worker]
    if worker.id == state.daemon.home_worker:
        return _not_reported(state)
    stopping = "it is to be stopped, but " if job.stopping_since is not None else ""
    forget = f"`grass workers forget {quote(worker.name)}`"
    ends = [f"when `{worker.name}` is back", f"by {forget}"]
    over_at = leases.over_at(state, attempt)
    if over_at is not None:
        left_s = max(0, round(over_at - time.monotonic()))
        ends.append(f"in {left_s} s, when its lease is over and it is lost")
    return f"{stopping}{absence(state, worker)}; that ends {', or '.join(ends)}"


def _not_reported(state: State) -> str:
    """Say that this daemon's own worker has not reported yet."""
    full = f"; {DISK_FULL}" if state.daemon.disk_full else ""
    return f"it ran when it was last heard of; the worker here reports soon{full}"


async def _queued(
    broker: Broker, job: Job, reply: ExplainReply, forgotten: WorkerNames
) -> None:
    state = broker.state
    try:
        reason = state.scheduler.explain(job.id, time.monotonic())
        position = reply.position = state.scheduler.position(job.id)
    except NotFound:
        return
    spec = state.specs[job.spec]
    reply.constraints = list(queued_constraints(state, spec, reason, forgotten))
    reply.holders = _holders(state, job, reason)
    reply.workers = prospects(state, spec, reason, forgotten)
    reply.overtaken = reason.overtaken
    snapshot = snapshot_for(state, job, reason, position)
    if snapshot is not None:
        history = await history_of(broker, snapshot.names())
        _set_estimate(reply, simulate(snapshot, history, _now()))


async def _waiting(broker: Broker, job: Job, spec: Spec, reply: ExplainReply) -> None:
    state, now = broker.state, _now()
    states = await _dependencies(broker, spec)
    reply.constraints = list(waiting_constraints(job, spec, states, now))
    if job.state is JobState.HELD:
        return
    times = [at for at in (spec.begin_at, job.not_before) if at is not None]
    open_ones = [one for one in states if one in state.jobs and not job.met]
    if not open_ones and times:
        _set_start_time(reply, max(times))
    if not 0 < len(open_ones) < MOST_SHOWN:
        return
    running = [state.attempts.get(one) for one in open_ones]
    names = {state.jobs[one].common.name for one in open_ones}
    history = await history_of(broker, names)
    _set_estimate(reply, _after_all(state, running, history, [now, *times]))


def _after_all(
    state: State, running: list[Attempt | None], history: History, times: list[int]
) -> Estimate | None:
    """Estimate when the last of several running jobs ends; None: one has no history."""
    ends, runs = list(times), 0
    for attempt in running:
        job = None if attempt is None else state.jobs.get(attempt.job)
        known = history.get(job.common.name) if job is not None else None
        if attempt is None or not known:
            return None
        ends.append(end_of(attempt.started_at, known, times[0]))
        runs += len(known)
    return Estimate(max(ends), runs)


async def end_estimate(broker: Broker, ids: list[int]) -> EstimateReply:
    """Estimate when all of these jobs have ended."""
    jobs = unfinished(broker.state, ids)
    names = {job.name for job in jobs}
    if not 0 < len(names) <= MOST_NAMES:
        return EstimateReply()
    found = end_of_all(jobs, await history_of(broker, names), _now())
    if found is None:
        return EstimateReply()
    return EstimateReply(rfc3339(found.at), found.runs)


def _set_estimate(reply: ExplainReply, found: Estimate | None) -> None:
    if found is not None and found.runs:
        reply.estimated_start_at = rfc3339(found.at)
        runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
        reply.estimate_from = f"median of {runs}"


def _set_start_time(reply: ExplainReply, at: int) -> None:
    reply.estimated_start_at = rfc3339(at)
    reply.estimate_from = "the time it waits for"


async def _dependencies(broker: Broker, spec: Spec) -> States:
    """Return the states of dependencies."""
    state = broker.state
    states = await broker.read(lambda db: db.states(runs_of(spec.after)))
    return states | {job: state.jobs[job].state for job in states.keys() & state.jobs}


async def history_of(broker: Broker, names: set[str]) -> History:
    """Return how long earlier runs took, for the first `MOST_NAMES` of these names."""
    chosen = sorted(names)[:MOST_NAMES]
    return await broker.read(_runs(chosen))


def _runs(names: list[str]) -> Callable[[Store], History]:
    return lambda store: {name: store.runtimes(name, RUNS) for name in names}


def _holders(state: State, job: Job, reason: Explanation) -> list[HolderReply]:
    """List the jobs that hold what is short: units, or places among running jobs."""
    names: list[Holder] = list(reason.holders)
    if reason.queue_full is not None or reason.limiter_full is not None:
        same_array = reason.limiter_full is not None
        names += [
            number
            for number in state.attempts
            if (state.jobs[number].array == job.array and same_array)
            or (state.jobs[number].queue == job.queue and not same_array)
        ]
    shown = list(dict.fromkeys(names))[:MOST_SHOWN]
    return [_holder(state, one) for one in shown]


def _holder(state: State, holder: Holder) -> HolderReply:
    units = units_json(state.scheduler.allocation(holder) or {})
    job = state.jobs.get(holder) if isinstance(holder, int) else None
    attempt = state.attempts.get(holder) if isinstance(holder, int) else None
    since = rfc3339(attempt.started_at) if attempt is not None else None
    if job is None:
        return HolderReply(None, str(holder), units, since)
    return HolderReply(job.id, job.name, units, since)


async def _ended(broker: Broker, details: JobDetails) -> ExplainReply:
    job = details.job
    last = details.attempts[-1] if details.attempts else None
    reply = ExplainReply(job.id, job.state, how_ended(job), attempts=job.attempts)
    reply.exit_code, reply.signal = job.exit_code, job.signal
    if last is None:
        return reply
    reply.max_rss, reply.cpu_s = last.max_rss, last.cpu_s
    reply.took_s = last.ran_s
    try:
        data = await last_lines(broker, details, LAST_LINES)
    except GrassError:
        # The file or its worker is gone.
        return reply
    reply.last_lines, reply.frames_left_out = last_frames(data, LAST_LINES)
    return reply


def last_frames(data: bytes, lines: int) -> tuple[list[str], int]:
    """Return the last lines, each as a terminal ends up showing it.

    A progress bar writes a line again and again, with a carriage return before each
    frame: the last frame that is not empty counts. Also returns how many are left out.
    """
    shown, left_out = list[str](), 0
    text = data.decode(errors="replace").removesuffix("\n")
    for line in text.split("\n")[-lines:] if text else []:
        frames = [frame for frame in line.split("\r") if frame] or [""]
        shown.append(frames[-1])
        left_out += len(frames) - 1
    return shown, left_out


def how_ended(job: Job) -> str:
    """Say how a job has ended: for what reason, by which signal, with which code."""
    if job.reason:
        return job.reason
    if job.state is JobState.CANCELLED:
        return "it was cancelled"
    if job.signal is not None:
        return killed(job.signal, by_grass=False)
    if job.exit_code is None:
        return "exit code unknown"
    meaning = exit_meaning(job.exit_code)
    return f"exit code {job.exit_code}{f': {meaning}' if meaning else ''}"


def _now() -> int:
    return time.time_ns() // 1000
