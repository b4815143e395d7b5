"""What people do to jobs: cancel, hold and release, suspend and continue.

A verb passes over jobs it has nothing to do to, and says so in a warning where only few
were named. Each answers with the jobs it touched; the wish is durable when it does.
"""

from collections.abc import Callable

from grass.broker import attempts, waiting
from grass.broker.calls import Cancel, Continue, Hold, Release, Suspend
from grass.broker.replies import Done
from grass.broker.state import State
from grass.link import messages
from grass.model.job import Job
from grass.model.lifecycle import JobState

MOST_WARNINGS = 10
_WAITING = (JobState.WAITING, JobState.QUEUED)


def cancel(state: State, call: Cancel) -> Done:
    """Make the wish durable: from now on no attempt of these jobs starts."""
    touched = []
    for number in call.jobs:
        job = state.jobs.get(number)
        if job is None:
            continue
        touched.append(number)
        state.note_by(call.actor, "cancelled", number)
        if job.state is JobState.RUNNING:
            _stop(state, job, call)
        else:
            if job.state is JobState.QUEUED:
                state.scheduler.remove(number)
            job.reason = "cancelled"
            attempts.finish(state, job, JobState.CANCELLED)
    return Done(jobs=touched, changed=bool(touched))


def hold(state: State, call: Hold) -> Done:
    """Keep jobs from starting."""
    return _each(state, call.jobs, lambda job: _hold(state, call.actor, job))


def release(state: State, call: Release) -> Done:
    """Let held jobs start when their turn comes."""
    return _each(state, call.jobs, lambda job: _release(state, call.actor, job))


def suspend(state: State, call: Suspend) -> Done:
    """Stop running jobs where they are; their units stay held."""
    return _each(state, call.jobs, lambda job: _suspend(state, call.actor, job))


def go_on(state: State, call: Continue) -> Done:
    """Let suspended jobs go on."""
    return _each(state, call.jobs, lambda job: _continue(state, call.actor, job))


def settle_suspended(state: State, job: Job, stands_still: bool) -> None:
    """Repeat a suspend or continue that a worker has missed."""
    if job.stopping_since is not None or job.id not in state.attempts:
        return
    if stands_still != (job.suspended_since is not None):
        _tell_worker(state, job)


def _tell_worker(state: State, job: Job) -> None:
    attempt = state.attempts[job.id]
    name = state.attempt_id(attempt)
    if job.suspended_since is None:
        state.send(attempt.worker, messages.Continue(name))
    else:
        state.send(attempt.worker, messages.Suspend(name))


def _each(state: State, jobs: list[int], act: Callable[[Job], str | None]) -> Done:
    """Do something to every job that has not ended; collect why not to the others."""
    done, left = Done(changed=False), list[str]()
    for number in jobs:
        job = state.jobs.get(number)
        problem = f"job {number} has ended" if job is None else act(job)
        if problem is None:
            done.jobs.append(number)
        else:
            left.append(problem)
    done.changed = bool(done.jobs)
    done.warnings = left[:MOST_WARNINGS]
    if len(left) > MOST_WARNINGS:
        done.warnings.append(f"and {len(left) - MOST_WARNINGS} more were left alone")
    return done


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
    state.move_job(job, JobState.WAITING)
    state.note_by(actor, "released", job.id)
    waiting.go_on(state, job)
    return None


def _suspend(state: State, actor: str, job: Job) -> str | None:
    attempt = state.attempts.get(job.id)
    if attempt is None or attempt.after is not None:
        return f"job {job.id} is {job.state}, not running"
    if job.suspended_since is not None:
        return f"job {job.id} is suspended already"
    if job.stopping_since is not None:
        return f"job {job.id} is being stopped"
    job.suspended_since = state.now_us
    state.save_job(job)
    state.moved.add(job.id)
    state.note_by(actor, "suspended", job.id)
    _tell_worker(state, job)
    return None


def _continue(state: State, actor: str, job: Job) -> str | None:
    if job.suspended_since is None:
        return f"job {job.id} is {job.state}, not suspended"
    job.suspended_since = None
    state.save_job(job)
    state.moved.add(job.id)
    state.note_by(actor, "continued", job.id)
    _tell_worker(state, job)
    return None


def _stop(state: State, job: Job, call: Cancel) -> None:
    attempt = state.attempts[job.id]
    if job.stopping_since is None:
        job.stopping_since = state.now_us
    state.save_job(job)
    default = state.specs[job.spec].grace_s
    grace = default if call.grace_s is None else call.grace_s
    stop = messages.Stop(state.attempt_id(attempt), grace, call.signal)
    state.send(attempt.worker, stop)
