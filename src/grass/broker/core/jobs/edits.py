"""Changing jobs that have not started: all that a call names, or none.

Very many jobs are first all checked and then changed, both in slices. One that ends
between its check and its change is left alone.
"""

from grass.broker.core.calls import Done, Edit
from grass.broker.core.jobs import (
    bulk_verbs,
    dependency_edits,
    dependency_graph,
    eligibility,
)
from grass.broker.core.jobs.bulk_verbs import Bulk, Work
from grass.broker.core.jobs.changes import Change
from grass.broker.core.jobs.enqueue import ends_of
from grass.broker.core.state import State
from grass.errors import Refused
from grass.model.dependencies import After
from grass.model.job import Job
from grass.model.lifecycle import JobState


def edit(state: State, call: Edit) -> Done | Bulk:
    """Change jobs that have not started: all of them, or none."""
    return bulk_verbs.begin(state, _edit(state, call), call.found)


def _edit(state: State, call: Edit) -> Work:
    yield from dependency_edits.catch_up(state)
    found = (yield call.wanted) if call.wanted else None
    ends, waits = ends_of(found), dict[int, tuple[After, ...]]()
    change, kept = Change(state, call.changes), dependency_edits.Remembered(state)
    numbers = list(dict.fromkeys(call.jobs))

    def check(number: int) -> None:
        job = _not_started(state, number)
        waits[number] = change.to(job, state.specs[job.spec]).open_after
        kept.remember(waits[number], ends)

    try:
        yield from bulk_verbs.work_off(numbers, check)
        if "after" in call.changes:
            dependency_edits.check(state, waits, ends, {})
        done = Done()
        act = _act(state, call, change, done)
        yield from bulk_verbs.work_off_before_start(state, numbers, act)
    finally:
        kept.forget()
    left = len(numbers) - len(done.jobs)
    if left:
        done.warnings.append(f"{left} jobs have ended meanwhile and were left alone")
    return done


def _act(state: State, call: Edit, change: Change, done: Done) -> bulk_verbs.Act:
    def act(number: int) -> None:
        job = state.jobs.get(number)
        if job is None or job.state is JobState.RUNNING:
            return
        one = change.to(job, state.specs[job.spec])
        _take_out(state, job)
        change.apply(one)
        eligibility.enter(state, job)
        state.note_by(call.actor, "edited", number, changed=sorted(call.changes))
        done.jobs.append(number)

    return act


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
    dependency_graph.leave(state, job)
