"""Jobs that may not start yet: for another job, for a time, or because they are held.

A job waits while one of its dependencies is open or its time has not come. Once all its
dependencies were met they are not looked at again (`Job.met`); until then they are what
they are now: running a job again makes those wait for it that still wait. A dependency
that can no longer be met cancels who waits for it, and who waits for that one in turn.

Jobs of one spec wait together, as a group: an array of thousands that waits for another
one costs what the two cost, not their product. An end may still concern a hundred
thousand jobs, so what follows from it is done in slices.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from grass.broker import arrays
from grass.broker.state import Group, State
from grass.errors import NeverFits, NotFound
from grass.model.dependencies import After, met
from grass.model.job import Job, Spec
from grass.model.lifecycle import ENDED, JobState
from grass.model.times import rfc3339

SLICE = 1000
MOST_NEEDS = 1000
_WISHES = {"any": "end", "succeeded": "succeed", "failed": "fail"}


def check(state: State, after: tuple[After, ...], found: dict[int, JobState]) -> None:
    """Refuse dependencies on jobs that never were, or that can never be met.

    `found` tells how jobs ended that memory does not know.
    """
    found = _kept(state, found)
    for job, need in after:
        known = _state_of(state, job, found)
        if known is None:
            raise NotFound(f"--after {job}: there is no job {job}")
        if met(need, known) is False:
            raise NeverFits(
                f"--after {job}:{need} can never be met: job {job} is {known}",
                f"`grass rerun {job}` first, or wait for another job",
            )


def remember(
    state: State, after: tuple[After, ...], found: dict[int, JobState], holder: int
) -> None:
    """Keep how jobs ended, or end, for a holder.

    That is minus the first job of an arrival, or 0 for the call being applied.
    """
    found = _kept(state, found)
    for job, _ in after:
        state.waits.dependents.setdefault(job, {})[holder] = None
        known = _state_of(state, job, found)
        if known in ENDED:
            state.waits.settled[job] = known


def forget(state: State, dependencies: Iterable[int], holder: int) -> None:
    """Let go of what was remembered for a holder."""
    for dependency in dependencies:
        dependents = state.waits.dependents.get(dependency)
        if dependents is not None:
            dependents.pop(holder, None)
            if not dependents:
                del state.waits.dependents[dependency]
                state.waits.settled.pop(dependency, None)


def first_state(state: State, spec: Spec, *, hold: bool) -> JobState:
    """Tell where a new job begins."""
    if hold:
        return JobState.HELD
    later = spec.begin_at is not None and spec.begin_at > state.now_us
    return JobState.WAITING if spec.after or later else JobState.QUEUED


def enter(state: State, job: Job) -> None:
    """Let an unfinished job wait for whatever it has to wait for."""
    if job.state in (JobState.HELD, JobState.WAITING):
        _all_met(state, job)
    go_on(state, job)


def go_on(state: State, job: Job) -> None:
    """Let a job stand in line if nothing keeps it any more."""
    if job.state is JobState.WAITING and _all_met(state, job):
        _wait_for_time(state, job)
    if job.state is JobState.QUEUED:
        stand_in_line(state, job)


def _wait_for_time(state: State, job: Job) -> None:
    """Let a job that waits for nothing else go on, at its time.

    Only such a job has a timer: one that was held when its time came could find, at its
    release, that the clock was set back meanwhile.
    """
    at = _starts_at(state, job)
    if at > state.now_us:
        heappush(state.waits.timed, (at, job.id))
    else:
        leave(state, job)
        job.met = True
        state.move_job(job, JobState.QUEUED)


def stand_in_line(state: State, job: Job) -> None:
    """Hand a queued job to the scheduler."""
    spec = state.specs[job.spec]
    state.scheduler.enqueue(
        job.id,
        job.queue,
        spec.request,
        job.priority,
        worker=spec.worker,
        labels=frozenset(spec.labels),
        limiter=arrays.limiter_of(job, spec),
    )


def leave(state: State, job: Job) -> None:
    """Forget what a job waited for."""
    group = state.waits.groups.get(job.spec)
    if group is None or job.id not in group.members:
        return
    del group.members[job.id]
    if not group.members:
        del state.waits.groups[job.spec]
        forget(state, _needs(state, job.spec), job.spec)


def ended(state: State, job: Job) -> None:
    """Note an end: those who wait for it are looked at in the next slices."""
    holders = state.waits.dependents.get(job.id)
    if holders is None:
        return
    state.waits.settled[job.id] = job.state
    for spec in holders:
        group = state.waits.groups.get(spec)
        if group is not None:
            _settle(state, group, _needs(state, spec)[job.id], job)


def running_again(state: State, job: int) -> None:
    """Open the dependencies on a job anew that had ended.

    Whoever that end concerned has been looked at before: nothing is resolving.
    """
    if state.waits.settled.pop(job, None) is not None:
        for spec in state.waits.dependents.get(job, ()):
            if spec in state.waits.groups:
                state.waits.groups[spec].open += 1


def advance(state: State) -> list[tuple[Job, str]]:
    """Look at one slice of those who waited for an end.

    Returns the jobs that can never start now, and why.
    """
    hopeless: list[tuple[Job, str]] = []
    if not state.waits.resolving:
        return hopeless
    members = state.waits.resolving[0]
    for number in members[:SLICE]:
        job = state.jobs.get(number)
        group = None if job is None else state.waits.groups.get(job.spec)
        if job is None or group is None or number not in group.members:
            continue
        if group.hopeless is not None:
            hopeless.append((job, group.hopeless))
        elif job.state is JobState.WAITING:
            go_on(state, job)
    del members[:SLICE]
    if not members:
        state.waits.resolving.popleft()
    return hopeless


def due(state: State) -> None:
    """Let jobs go on whose time has come."""
    while state.waits.timed and state.waits.timed[0][0] <= state.now_us:
        job = state.jobs.get(heappop(state.waits.timed)[1])
        if job is not None and job.state is JobState.WAITING:
            go_on(state, job)


def next_time(state: State) -> int | None:
    """Tell for which time the next job waits."""
    while state.waits.timed:
        at, number = state.waits.timed[0]
        job = state.jobs.get(number)
        if job is not None and _waits_until(state, job) == at:
            return at
        heappop(state.waits.timed)
    return None


def _waits_until(state: State, job: Job) -> int | None:
    """Tell for which time a job waits, if it waits for nothing else."""
    if job.state is not JobState.WAITING or open_dependencies(state, job):
        return None
    return _starts_at(state, job)


def open_dependencies(state: State, job: Job) -> int:
    """Count what a job still waits for."""
    group = None if job.met else state.waits.groups.get(job.spec)
    return 0 if group is None else group.open


def why(state: State, job: Job) -> str:
    """Say in one line why a held or waiting job does not start."""
    if job.state is JobState.HELD:
        return f"held; `grass release {job.id}` lets it start"
    still_open = open_dependencies(state, job)
    if still_open:
        return _open_text(state, job, still_open)
    at = _starts_at(state, job)
    if job.not_before is not None and job.not_before == at:
        return f"retry {job.failures} at {rfc3339(at)}"
    return f"begins at {rfc3339(at)}" if at else "starts with the next decision"


def _open_text(state: State, job: Job, still_open: int) -> str:
    needs = _needs(state, job.spec)
    first = next((one for one in needs if one not in state.waits.settled), None)
    known = None if first is None else state.jobs.get(first)
    if first is None or known is None:
        return "waits for other jobs to end"
    more = f" and {still_open - 1} more" if still_open > 1 else ""
    wishes = {need for wanted in needs.values() for need in wanted}
    wish = _WISHES[wishes.pop()] if len(wishes) == 1 else "end as asked"
    return f"waits for job {first} ({known.state}){more} to {wish}"


def _state_of(state: State, number: int, found: dict[int, JobState]) -> JobState | None:
    """Find a job's state: in memory, in this batch, or as the store had it."""
    if number in state.jobs:
        return state.jobs[number].state
    changed = state.changes.jobs.get(number)
    if changed is not None:
        # One that has neither ended nor is in memory is still on its way in.
        return changed.state if changed.state in ENDED else None
    if number in state.waits.dependents and number in state.waits.settled:
        return state.waits.settled[number]
    return found.get(number)


def _kept(state: State, found: dict[int, JobState]) -> dict[int, JobState]:
    """Leave out what was forgotten since the store was read."""
    gone = set(state.changes.removed_jobs)
    if not gone:
        return found
    return {number: end for number, end in found.items() if number not in gone}


def _group_of(state: State, job: Job) -> Group:
    """Let a job wait with the others of its spec."""
    group = state.waits.groups.get(job.spec)
    if group is None:
        group = state.waits.groups[job.spec] = _new_group(state, job.spec)
    if job.id not in group.members:
        group.members[job.id] = None
        if group.hopeless is not None:
            state.waits.resolving.append([job.id])
    return group


def _new_group(state: State, spec: int) -> Group:
    group = Group()
    for dependency, wanted in _needs(state, spec).items():
        state.waits.dependents.setdefault(dependency, {})[spec] = None
        known = _state_of(state, dependency, {})
        if known is not None and known in ENDED:
            state.waits.settled[dependency] = known
            if all(met(need, known) for need in wanted):
                continue
            group.hopeless = _unmet(dependency, wanted, known)
        elif known is None:
            group.hopeless = f"job {dependency}, which it waited for, is forgotten"
        group.open += 1
    return group


def _settle(state: State, group: Group, wanted: tuple[str, ...], leader: Job) -> None:
    if not all(met(need, leader.state) for need in wanted):
        group.hopeless = _unmet(leader.id, wanted, leader.state)
    else:
        group.open -= 1
    if group.hopeless is not None or group.open == 0:
        state.waits.resolving.append(list(group.members))


def _unmet(leader: int, wanted: tuple[str, ...], end: JobState) -> str:
    return f"waited for job {leader}:{' and '.join(wanted)}, which is {end}"


def _all_met(state: State, job: Job) -> bool:
    if job.met or not state.specs[job.spec].after:
        return True
    return _group_of(state, job).open == 0


def _starts_at(state: State, job: Job) -> int:
    return max(state.specs[job.spec].begin_at or 0, job.not_before or 0)


def _needs(state: State, spec: int) -> dict[int, tuple[str, ...]]:
    """Give what jobs of a spec wait for; worked out once for all of them."""
    known = state.waits.needs.get(spec)
    if known is None:
        if len(state.waits.needs) >= MOST_NEEDS:
            state.waits.needs.clear()
        known = {}
        for after in state.specs[spec].after:
            known[after.job] = (*known.get(after.job, ()), after.need)
        state.waits.needs[spec] = known
    return known
