"""Attempts after they were placed: their start, their end, and retries.

A worker's messages are applied only to attempts that it holds. Judging an outcome is a
pure step (`outcomes`); recording it is the last one. `placing` makes attempts.
"""

import signal

from msgspec.structs import replace

from grass.broker.core.attempts import (
    avoided,
    foreign,
    held_back,
    more_memory,
    prefetch,
)
from grass.broker.core.attempts.outcomes import (
    FORGOTTEN,
    WANT_OF_MEMORY,
    backoff_s,
    outcome,
    retried,
)
from grass.broker.core.calls import Done, NoteInnerType
from grass.broker.core.jobs import array_limits, dependency_graph, eligibility
from grass.broker.core.profiles import learning
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.keeper.exit_reasons import CUT_OFF
from grass.link.messages import (
    RECALLED,
    Exited,
    Overran,
    ProfileNoted,
    Resync,
    Returned,
    Search,
    Shrink,
    Started,
    Stop,
)
from grass.model.amount_text import size_text
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import Spec
from grass.model.worker import Worker

_TERMINATED = 128 + signal.SIGTERM
TAKEN_BACK = "its worker was taken back by the engine"
MOST_RETURNS = 20
"""A worker that returns this many placements in a row is drained."""


def live(state: State, name: str) -> tuple[Job, Attempt] | None:
    """Find the job and attempt of a message, if that attempt is the present one."""
    identity = attempt_id(name)
    attempt = state.attempts.get(identity.job)
    if identity.cluster != state.cluster or attempt is None:
        return None
    if attempt.number != identity.number:
        return None
    return state.jobs[identity.job], attempt


def is_about(attempt: Attempt, placed_at: int) -> bool:
    """Tell an attempt from another one that has or had its number.

    It may have been returned before; or the database was restored from a backup, and
    the worker has one that was placed meanwhile. Until the start both are told apart by
    the time of placement; a worker has only one attempt of a name.
    """
    starting = attempt.state is AttemptState.STARTING
    return not starting or placed_at in (0, attempt.started_at)


def _held_by(
    state: State,
    worker: str,
    message: Started | Exited | Returned | ProfileNoted | Overran,
) -> tuple[Job, Attempt] | None:
    """Find a present attempt, if it is this worker's."""
    found = live(state, message.attempt)
    if found is None or found[1].worker != worker:
        return None
    return found if is_about(found[1], message.placed_at) else None


def started(state: State, worker: str, message: Started) -> None:
    """Note that the process exists; this need not be committed at once."""
    found = _held_by(state, worker, message)
    if found is None:
        foreign.started(state, worker, message)
        return
    job, attempt = found
    state.note_before(job)
    begun(state, job, attempt, message.ran_s)
    attempt.pid = message.pid
    attempt.output = message.output
    attempt.output_offset = message.output_offset
    attempt.stderr, attempt.stderr_offset = message.stderr, message.stderr_offset
    attempt.usage = message.usage
    state.batch.changes.jobs[job.id] = job
    state.save_attempt(attempt)
    state.batch.moved.add(job.id)


def overran(state: State, worker: str, message: Overran) -> None:
    """Note that an attempt uses more of a GPU than it reserved."""
    found = _held_by(state, worker, message)
    if found is not None:
        facts = {"used": message.used, "asked": message.reserved}
        sizes = {what: size_text(size) for what, size in facts.items()}
        state.note("overran", found[0].id, unit=f"gpu:{message.unit}", **sizes)


def begun(state: State, job: Job, attempt: Attempt, ran_s: float) -> None:
    """Mark an attempt as running, for this long already, unless it is.

    The time of its start is counted back on the broker's clock, not before placement.
    """
    if attempt.state is AttemptState.STARTING:
        state.returns.in_a_row.pop(attempt.worker, None)
        avoided.began(state, job, attempt.worker)
        state.move_attempt(attempt, AttemptState.RUNNING)
        since = max(attempt.started_at, state.now_us - int(ran_s * 1e6))
        attempt.started_at = job.started_at = min(since, state.now_us)


def exited(state: State, worker: str, message: Exited) -> None:
    """Record an end, free its units, and have the worker forget it."""
    found = _held_by(state, worker, message)
    foreign.exited(state, worker, message)
    if found is None and attempt_id(message.attempt).cluster != state.cluster:
        # Its own broker has not heard of it yet: the worker keeps it until then.
        return
    state.batch.send_forget(worker, message.attempt)
    if found is None:
        return
    job, attempt = found
    if message.reason == CUT_OFF:
        # The same whether the broker hears of it in time or only counts the time.
        message = replace(message, lost=True)
    elif _is_taken_back(state, job, message):
        message = replace(message, lost=True, reason=TAKEN_BACK)
        state.pools.taken_back.add(worker)
    state.returns.in_a_row.pop(worker, None)
    end = AttemptState.LOST if message.lost else AttemptState.EXITED
    attempt.output_bytes = message.output_bytes
    attempt.max_rss, attempt.cpu_s = message.max_rss, message.cpu_s
    attempt.peak, attempt.result = message.peak, message.result
    state.totals.output_bytes += message.output_bytes
    if attempt.output is None:
        attempt.output, attempt.stderr = message.output, message.stderr
        attempt.usage = message.usage
    _end(state, job, attempt, end, message)


def _is_taken_back(state: State, job: Job, message: Exited) -> bool:
    """Tell whether an engine has ended a job with the worker that it had lent.

    Engines send SIGTERM to all processes of a job of theirs. It says nothing of the
    job, which has neither failed nor was it stopped here. A shell may see it end a
    program first, and exits with the code for that.
    """
    ended = message.signal == signal.SIGTERM or message.exit_code == _TERMINATED
    unasked = ended and message.reason is None
    attempt = state.attempts[job.id]
    return (
        unasked
        and job.stopping_since is None
        and state.pools.has_worker(attempt.worker)
    )


def profile_noted(state: State, worker: str, message: ProfileNoted) -> None:
    """Learn from an attempt that still runs."""
    found = _held_by(state, worker, message)
    if found is not None:
        learning.noted(state, *found, message)
        _shrink(state, *found)


def note_inner_type(state: State, call: NoteInnerType) -> Done:
    """Learn of a job that it runs a function whose memory may be known."""
    job, attempt = state.jobs.get(call.job), state.attempts.get(call.job)
    if job is None or attempt is None:
        return Done(changed=False)
    if not learning.inherit(state, job, attempt, call.job_type):
        return Done(changed=False)
    _shrink(state, job, attempt)
    return Done([job.id])


def _shrink(state: State, job: Job, attempt: Attempt) -> None:
    """Have an attempt that is measured alone keep only what it needs of its GPU."""
    spec, worker = state.specs[job.spec], state.workers[attempt.worker]
    if not spec.auto_vram or not worker.shrinks:
        return
    kept = state.scheduler.packed(job.id, spec.request)
    if kept is not None and state.scheduler.follower(job.id) is None:
        state.scheduler.shrink(job.id, kept)
        attempt.allocation = kept
        state.save_attempt(attempt)
        send_shrink(state, attempt)


def returned(state: State, worker: str, message: Returned) -> None:
    """Queue a job again whose attempt the worker returned without starting it."""
    found = _held_by(state, worker, message)
    if found is None:
        foreign.returned(state, worker, message.attempt)
        return
    job, attempt = found
    if attempt.state is not AttemptState.STARTING:
        return
    if job.stopping_since is not None:
        _never_started(state, job, attempt, "cancelled before it started")
        return
    if message.missing:
        _missing_there(state, job, attempt, message)
        return
    asked = job.id in state.returns.asked
    take_back(state, job, attempt, message.reason)
    process = state.specs[job.spec].asks_again
    if state.scheduler.withholds(worker, attempt.allocation, process):
        # The worker has said what it lacks: nothing is placed on that again.
        return
    if not asked:
        _count_return(state, state.workers[worker], attempt, message.reason)
    if message.reason != RECALLED:
        # The worker's free units differ from ours: nothing more is placed there
        # before it has reported all its attempts.
        state.scheduler.remove_worker(attempt.worker)
        state.batch.send(attempt.worker, Resync())


def _missing_there(state: State, job: Job, attempt: Attempt, message: Returned) -> None:
    """Place a job elsewhere, or end it where every worker lacks what it names."""
    avoided.note_return(state, job, attempt.worker, message)
    if not avoided.has_host(state, job):
        avoided.try_older(state, job)
    if avoided.has_host(state, job):
        name = registry.name_of(state, attempt.worker)
        take_back(state, job, attempt, message.reason, worker=name)
        return
    reason = avoided.failure(state, job, attempt.worker)
    ended = Exited(state.attempt_id(attempt), state.now_us, reason=reason)
    _end(state, job, attempt, AttemptState.EXITED, ended)


def _count_return(state: State, worker: Worker, attempt: Attempt, reason: str) -> None:
    """Drain a worker that starts nothing of what it is sent, and does not say why.

    Otherwise jobs would be placed and returned without end, each time in the journal.
    """
    placed = state.returns.in_a_row.setdefault(worker.id, [])
    # Attempts placed together count once: one cause may return all of them.
    if worker.unable or attempt.started_at in placed[-1:]:
        return
    placed.append(attempt.started_at)
    if len(placed) >= MOST_RETURNS and not worker.draining:
        worker.draining = True
        worker.draining_reason = f"it gave back {len(placed)} starts in a row: {reason}"
        state.batch.changes.workers[worker.id] = worker
        state.scheduler.remove_worker(worker.id)
        why = worker.draining_reason
        state.note("drained", worker=worker.id, name=worker.name, reason=why)


def take_back(
    state: State, job: Job, attempt: Attempt, reason: str, **facts: str
) -> None:
    """Undo a placement of which nothing was run: the job is queued in its old place."""
    state.note("returned", job.id, reason=reason, **facts)
    # Nothing was run, so the number was never used: the next attempt takes it.
    state.batch.changes.attempts.pop((job.id, attempt.number), None)
    state.batch.changes.removed_attempts.append((job.id, attempt.number))
    job.attempts -= 1
    job.started_at = job.suspended_since = None
    del state.attempts[job.id]
    prefetch.release(state, attempt)
    state.move_job(job, JobState.QUEUED)
    eligibility.queue_job(state, job)


def _never_started(state: State, job: Job, attempt: Attempt, reason: str) -> None:
    """End a job whose attempt no worker ever saw."""
    ended = Exited(state.attempt_id(attempt), state.now_us, reason=reason)
    _end(state, job, attempt, AttemptState.EXITED, ended)


def lose(state: State, job: Job, attempt: Attempt, reason: str) -> None:
    """Mark an attempt as lost: its outcome cannot be known."""
    ended = Exited(state.attempt_id(attempt), state.now_us, reason=reason, lost=True)
    _end(state, job, attempt, AttemptState.LOST, ended)


def send_shrink(state: State, attempt: Attempt) -> None:
    """Have a worker free what an attempt had at its start and has no more."""
    if state.workers[attempt.worker].shrinks:
        shrink = Shrink(state.attempt_id(attempt), attempt.allocation)
        state.batch.send(attempt.worker, shrink)


def send_search(state: State, job: Job, attempt: Attempt) -> None:
    """Have a worker look for an attempt of which it has no record."""
    spec = state.specs[job.spec]
    search = Search(
        state.attempt_id(attempt),
        attempt.allocation,
        ran_s=max(0, state.now_us - attempt.started_at) / 1e6,
        grace_s=spec.grace_s,
        time_limit_s=spec.time_limit_s,
        output=attempt.output,
        stderr=attempt.stderr,
        usage=attempt.usage,
        title=job.name,
    )
    state.batch.send(attempt.worker, search)


def send_stop(state: State, job: Job, attempt: Attempt) -> None:
    """Repeat a stop that a worker may have missed."""
    grace_s = state.specs[job.spec].grace_s
    state.batch.send(attempt.worker, Stop(state.attempt_id(attempt), grace_s))


def _end(
    state: State, job: Job, attempt: Attempt, end: AttemptState, ended: Exited
) -> None:
    # By the broker's own clock: retention compares it with that one.
    attempt.finished_at = state.now_us
    attempt.ran_s = ended.ran_s
    if ended.ran_s is None:
        attempt.ran_s = max(0, state.now_us - attempt.started_at) / 1e6
    attempt.exit_code, attempt.signal = ended.exit_code, ended.signal
    attempt.reason, attempt.cause = ended.reason, ended.cause
    state.move_attempt(attempt, end)
    job.exit_code, job.signal, job.reason = ended.exit_code, ended.signal, ended.reason
    prefetch.release(state, attempt)
    prefetch.note_duration(state, job, attempt)
    end_of_job = outcome(job, ended)
    # With the outcome the journal alone tells how every job ended.
    facts = {"exit_code": ended.exit_code, "signal": ended.signal}
    state.note("finished", job.id, state=end_of_job, **facts)
    learning.ended(state, job, attempt, ended, end_of_job)
    held_back.ended(state, job, attempt, ended, end_of_job)
    del state.attempts[job.id]
    job.suspended_since = None
    spec = state.specs[job.spec]
    if retried(job, spec, end_of_job, ended):
        if ended.cause in WANT_OF_MEMORY:
            more_memory.request(state, job, attempt, ended)
        _try_again(state, job, spec, end_of_job, ended)
    else:
        finish(state, job, end_of_job)


def _try_again(
    state: State, job: Job, spec: Spec, end: JobState, ended: Exited
) -> None:
    if end is JobState.LOST:
        job.losses += 1
        state.note("requeued", job.id, times=job.losses)
        state.move_job(job, JobState.QUEUED)
        if job.reason == FORGOTTEN:
            # It may still run: only a user can know that it does not.
            state.move_job(job, JobState.HELD)
            state.note("held", job.id, reason=job.reason)
    elif ended.blamed:
        # It was not at fault, so this is none of its own failures.
        state.note("retried", job.id, times=job.failures, reason=ended.reason)
        state.move_job(job, JobState.QUEUED)
    else:
        job.failures += 1
        state.note("retried", job.id, times=job.failures)
        pause_us = int(backoff_s(spec, job.failures) * 1_000_000)
        job.not_before = state.now_us + pause_us if pause_us else None
        state.move_job(job, JobState.WAITING if pause_us else JobState.QUEUED)
    eligibility.enter(state, job)


def finish(state: State, job: Job, end: JobState) -> None:
    """End a job: it leaves memory, and is read from the store from now on."""
    job.finished_at = state.now_us
    state.move_job(job, end)
    array_limits.count_end(state, job, end)
    array_limits.leave(state, job)
    dependency_graph.leave(state, job)
    dependency_graph.ended(state, job)
    state.batch.ended.append(job)
    avoided.leave(state, job)
    state.specs.release(job.spec)
    del state.jobs[job.id]
    state.totals.unfinished[job.queue] -= 1


def give_up(state: State, job: Job, reason: str) -> None:
    """Cancel a job that can never start."""
    job.reason = reason
    state.note("cancelled", job.id, reason=reason)
    finish(state, job, JobState.CANCELLED)
