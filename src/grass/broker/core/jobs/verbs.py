"""Verbs on jobs: cancel, hold and release, suspend and continue, signal.

A verb skips jobs that it does not apply to, with a warning where only few were named.
The reply names the jobs that were changed, and the change is durable then. Very many
jobs are done in slices (`bulk_calls`).
"""

from collections.abc import Callable

from grass.broker.core.attempts import tracking
from grass.broker.core.calls import (
    Cancel,
    ContinueJobs,
    Done,
    HoldJobs,
    ReleaseJobs,
    SignalJobs,
    SuspendJobs,
)
from grass.broker.core.jobs import bulk_calls, dependency_graph, eligibility
from grass.broker.core.jobs.bulk_calls import BulkCall, Slices, Work
from grass.broker.core.state import State
from grass.link import messages
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.signals import short_name

MOST_WARNINGS = 10
_WAITING = (JobState.WAITING, JobState.QUEUED)
_ActOnJob = Callable[[Job], str | None]
"""Changes a job, or returns why it does not."""


def cancel(state: State, call: Cancel) -> Done | BulkCall:
    """Cancel jobs: no attempt of them starts any more, and running ones are stopped."""
    return bulk_calls.begin_each(state, call.jobs, _cancel_all(state, call))


def hold(state: State, call: HoldJobs) -> Done | BulkCall:
    """Keep jobs from starting."""
    verb = _Verb(state, lambda job: _hold(state, call.actor, job))
    slices = bulk_calls.each_before_start(state, call.jobs, verb.act)
    return bulk_calls.begin_each(state, call.jobs, verb.work(slices))


def release(state: State, call: ReleaseJobs) -> Done | BulkCall:
    """Release held jobs."""
    return _each(state, call.jobs, lambda job: _release(state, call.actor, job))


def suspend(state: State, call: SuspendJobs) -> Done | BulkCall:
    """Stop the processes of running jobs; their units stay held."""
    return _each(state, call.jobs, lambda job: _suspend(state, call.actor, job))


def continue_jobs(state: State, call: ContinueJobs) -> Done | BulkCall:
    """Continue suspended jobs."""
    return _each(state, call.jobs, lambda job: _continue(state, call.actor, job))


def signal(state: State, call: SignalJobs) -> Done | BulkCall:
    """Send one signal to every process of running jobs."""
    return _each(state, call.jobs, lambda job: _signal(state, call, job))


def _each(state: State, jobs: list[int], act: _ActOnJob) -> Done | BulkCall:
    verb = _Verb(state, act)
    work = verb.work(bulk_calls.each(jobs, verb.act))
    return bulk_calls.begin_each(state, jobs, work)


def repeat_suspension(state: State, job: Job, is_suspended: bool) -> None:
    """Repeat a suspend or continue that a worker has missed."""
    if job.stopping_since is not None or job.id not in state.attempts:
        return
    if is_suspended != (job.suspended_since is not None):
        _tell_worker(state, job)


def _tell_worker(state: State, job: Job) -> None:
    attempt = state.attempts[job.id]
    name = state.attempt_id(attempt)
    if job.suspended_since is None:
        state.batch.send(attempt.worker, messages.Continue(name))
    else:
        state.batch.send(attempt.worker, messages.Suspend(name))


class _Verb:
    """A verb that is applied to each job, with its reply."""

    def __init__(self, state: State, act: _ActOnJob) -> None:
        self._state = state
        self._act = act
        self._done = Done(changed=False)
        self._left = 0

    def act(self, number: int) -> None:
        job = self._state.jobs.get(number)
        problem = f"job {number} has ended" if job is None else self._act(job)
        if problem is None:
            self._done.jobs.append(number)
        else:
            self._left += 1
            if self._left <= MOST_WARNINGS:
                self._done.warnings.append(problem)

    def work(self, slices: Slices) -> Work:
        """Do all slices, and return the reply."""
        yield from slices
        done, more = self._done, self._left - MOST_WARNINGS
        done.changed = bool(done.jobs)
        if more > 0:
            done.warnings.append(f"and {more} more were left alone")
        return done


def _cancel_all(state: State, call: Cancel) -> Work:
    touched = list[int]()
    dependents = dependency_graph.cancelled_with(state, call.jobs)

    def act(number: int) -> None:
        job = state.jobs.get(number)
        if job is not None:
            touched.append(number)
            _cancel(state, job, call)

    yield from bulk_calls.each_before_start(state, call.jobs, act)
    return Done(jobs=touched, changed=bool(touched), dependents=dependents)


def _cancel(state: State, job: Job, call: Cancel) -> None:
    state.note_by(call.actor, "cancelled", job.id)
    if job.state is JobState.RUNNING:
        _stop(state, job, call)
        return
    if job.state is JobState.QUEUED:
        state.scheduler.remove(job.id)
    job.reason = "cancelled"
    tracking.finish(state, job, JobState.CANCELLED)


def _hold(state: State, actor: str, job: Job) -> str | None:
    if job.state not in _WAITING:
        return f"job {job.id} is {job.state}, not waiting to start"
    if job.state is JobState.QUEUED:
        state.scheduler.remove(job.id)
    state.move_job(job, JobState.HELD)
    state.note_by(actor, "held", job.id)
    return None


def _release(state: State, actor: str, job: Job) -> str | None:
    if job.state is not JobState.HELD:
        return f"job {job.id} is {job.state}, not held"
    if state.foreign.runs(job.id):
        return (
            f"job {job.id} stays held: an attempt of it still runs;"
            " see `grass workers foreign`"
        )
    if names := eligibility.unreported(state, job):
        return f"job {job.id} stays held: {eligibility.unreported_text(names)}"
    if job.reason == eligibility.RUNS_ELSEWHERE:
        job.reason = None
    state.move_job(job, JobState.WAITING)
    state.note_by(actor, "released", job.id)
    eligibility.queue_if_ready(state, job)
    return None


def _suspend(state: State, actor: str, job: Job) -> str | None:
    attempt = state.attempts.get(job.id)
    if attempt is None or attempt.after is not None:
        return f"job {job.id} is {job.state}, not running"
    if job.suspended_since is not None:
        return f"job {job.id} is suspended already"
    if job.stopping_since is not None:
        return f"job {job.id} is being stopped"
    _set_suspended(state, job, state.now_us)
    state.note_by(actor, "suspended", job.id)
    return None


def _continue(state: State, actor: str, job: Job) -> str | None:
    if job.suspended_since is None:
        return f"job {job.id} is {job.state}, not suspended"
    _set_suspended(state, job, None)
    state.note_by(actor, "continued", job.id)
    return None


def _set_suspended(state: State, job: Job, since: int | None) -> None:
    job.suspended_since = since
    state.save_job(job)
    state.batch.moved.add(job.id)
    _tell_worker(state, job)


def _signal(state: State, call: SignalJobs, job: Job) -> str | None:
    attempt = state.attempts.get(job.id)
    if attempt is None or attempt.after is not None:
        return f"job {job.id} is {job.state}, not running"
    if attempt.state is not AttemptState.RUNNING:
        return f"job {job.id} is only starting"
    worker = state.workers.get(attempt.worker)
    if worker is None or not worker.connected:
        # Sent later, it might come at a time when it means something else.
        return f"job {job.id} was not signalled: its worker is unreachable"
    state.note_by(call.actor, "signalled", job.id, signal=short_name(call.signal))
    sent = messages.Signal(state.attempt_id(attempt), call.signal)
    state.batch.send(attempt.worker, sent)
    return None


def _stop(state: State, job: Job, call: Cancel) -> None:
    attempt = state.attempts[job.id]
    if job.stopping_since is None:
        job.stopping_since = state.now_us
    # No job is prefetched behind one that is stopped.
    state.prefetched.sent.pop(job.id, None)
    state.save_job(job)
    default = state.specs[job.spec].grace_s
    grace = default if call.grace_s is None else call.grace_s
    stop = messages.Stop(state.attempt_id(attempt), grace, call.signal)
    state.batch.send(attempt.worker, stop)
