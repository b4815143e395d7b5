"""Changing jobs that have not started: all that a call names, or none."""

from grass.broker import dependents, new_waits, waiting
from grass.broker.calls import Edit
from grass.broker.changing import Change
from grass.broker.enqueue import ends_of
from grass.broker.replies import Done
from grass.broker.state import State
from grass.errors import Refused
from grass.model.job import Job
from grass.model.lifecycle import JobState


def edit(state: State, call: Edit) -> Done:
    """Change jobs that have not started: all of them, or none."""
    new_waits.catch_up(state)
    numbers = list(dict.fromkeys(call.jobs))
    jobs = [_not_started(state, number) for number in numbers]
    ends = ends_of(call.found)
    change = Change(state, call.changes)
    edited = [change.to(job, state.specs[job.spec]) for job in jobs]
    if "after" in call.changes:
        waits = {one.job.id: one.spec.after for one in edited}
        new_waits.check(state, waits, ends, {})
    new_waits.remember(state, (one.open_after for one in edited), ends)
    for one in edited:
        _take_out(state, one.job)
        change.apply(one)
        waiting.enter(state, one.job)
        state.note_by(call.actor, "edited", one.job.id, changed=sorted(call.changes))
    new_waits.forget(state, (one.spec.after for one in edited))
    return Done(jobs=numbers)


def _not_started(state: State, number: int) -> Job:
    job = state.jobs.get(number)
    if job is None:
        raise Refused(f"job {number} has ended", f"`grass rerun {number} --edit`")
    if job.state is JobState.RUNNING:
        raise Refused(f"job {number} runs already", f"`grass cancel {number}` first")
    return job


def _take_out(state: State, job: Job) -> None:
    if job.state is JobState.QUEUED:
        state.scheduler.remove(job.id)
        state.move_job(job, JobState.WAITING)
    dependents.leave(state, job)
