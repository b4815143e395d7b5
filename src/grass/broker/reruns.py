"""Running ended jobs again, changed or as they were.

Such a job comes back into memory with its spec and environment, as if it had never
started; its attempts go on being counted.
"""

from copy import copy

from grass.broker import arrays, dependents, new_waits, waiting
from grass.broker.calls import Found, Rerun
from grass.broker.changing import Change, Edited
from grass.broker.enqueue import ends_of
from grass.broker.replies import Done
from grass.broker.state import State
from grass.broker.verbs import MOST_WARNINGS
from grass.errors import Busy, NotFound, Refused
from grass.model.job import Job, Spec
from grass.model.lifecycle import ENDED, JobState


def rerun(state: State, call: Rerun) -> Done:
    """Give ended jobs a new attempt; those that have not ended are left alone."""
    new_waits.catch_up(state)
    found = call.found or Found()
    left, edited = list[str](), list[Edited]()
    change = Change(state, call.changes)
    for number in dict.fromkeys(call.jobs):
        job = _ended(state, number, found)
        if job is None:
            left.append(f"job {number} has not ended")
        else:
            spec = _spec_of(state, job, found)
            edited.append(change.to(job, spec))
    if len(call.jobs) == 1 and not edited:
        raise Refused(left[0], f"`grass cancel {call.jobs[0]}` first")
    together = {one.job.id: one.open_after for one in edited}
    ends = ends_of(found)
    new_waits.check(state, together, ends, together)
    new_waits.remember(state, together.values(), ends)
    for one in edited:
        _revive(state, one, call, change)
    for one in edited:
        waiting.enter(state, one.job)
    new_waits.forget(state, (one.spec.after for one in edited))
    return Done([one.job.id for one in edited], left[:MOST_WARNINGS], bool(edited))


def _revive(state: State, one: Edited, call: Rerun, change: Change) -> None:
    job = one.job
    envs = call.found.envs if call.found is not None else {}
    if one.spec.base_env in envs:
        state.envs.restore(envs[one.spec.base_env])
    dependents.running_again(state, job.id)
    job.started_at = job.finished_at = job.exit_code = job.signal = job.reason = None
    job.stopping_since = job.not_before = None
    job.failures = job.losses = 0
    state.jobs[job.id] = job
    state.specs.restore(job.spec, one.old)
    state.specs.use(job.spec)
    arrays.join(state, job)
    change.apply(one)
    state.move_job(job, JobState.HELD if call.hold else JobState.WAITING)
    state.note_by(call.actor, "rerun", job.id, changed=sorted(call.changes))


def _ended(state: State, number: int, found: Found) -> Job | None:
    """Find a job that ended: in this batch, or as the store has it."""
    if number in state.jobs:
        return None
    known = state.changes.jobs.get(number)
    if known is None:
        if number not in found.jobs or number in state.changes.removed_jobs:
            raise NotFound(f"there is no job {number}")
        known = found.jobs[number].job
    # Whoever is told of its end is told of the job as it ended.
    return copy(known) if known.state in ENDED else None


def _spec_of(state: State, job: Job, found: Found) -> Spec:
    known = found.jobs.get(job.id)
    if known is not None and known.job.spec == job.spec:
        return known.spec
    if job.spec in state.specs.new:
        return state.specs.new[job.spec]
    raise Busy(f"job {job.id} has only just ended", "try again in a moment")
