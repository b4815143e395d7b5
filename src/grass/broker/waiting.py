"""Jobs that may not start yet: for another job, for a time, or because they are held.

A job waits while one of its dependencies is open or its time has not come. Once all its
dependencies were met they are not looked at again (`Job.met`); until then they are what
they are now: running a job again makes those wait for it that still wait. A dependency
that can no longer be met cancels who waits for it, and who waits for that one in turn.

An end may concern a hundred thousand jobs, so what follows from it is done in slices.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from grass.broker import arrays
from grass.broker.state import State
from grass.errors import NeverFits, NotFound
from grass.model.dependencies import After, met
from grass.model.job import Job, Spec
from grass.model.lifecycle import ENDED, JobState
from grass.model.times import rfc3339

SLICE = 1000


def check(state: State, after: tuple[After, ...], found: dict[int, JobState]) -> None:
    """Refuse dependencies on jobs that never were, or that can never be met.

    `found` tells how jobs ended that memory does not know; it is remembered.
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
        _watch_time(state, job)
    go_on(state, job)


def go_on(state: State, job: Job) -> None:
    """Let a job stand in line if nothing keeps it any more."""
    if job.state is JobState.WAITING and _may_start(state, job):
        leave(state, job)
        job.met = True
        state.move_job(job, JobState.QUEUED)
    if job.state is JobState.QUEUED:
        stand_in_line(state, job)


def stand_in_line(state: State, job: Job) -> None:
    """Hand a queued job to the scheduler."""
    spec = state.specs[job.spec]
    state.scheduler.enqueue(
        job.id,
        job.queue,
        spec.request,
        job.priority,
        limiter=arrays.limiter_of(job, spec),
    )


def leave(state: State, job: Job) -> None:
    """Forget what a job waited for."""
    if state.waits.open.pop(job.id, None) is not None:
        forget(state, _needs(state, job), job.id)


def ended(state: State, job: Job) -> None:
    """Note an end: those who wait for it are looked at in the next slice."""
    if job.id in state.waits.dependents:
        state.waits.settled[job.id] = job.state
        state.waits.resolving.append((job.id, list(state.waits.dependents[job.id])))


def running_again(state: State, job: int) -> None:
    """Open the dependencies on a job anew that had ended.

    Whoever that end concerned has been looked at before: nothing is resolving.
    """
    if state.waits.settled.pop(job, None) is not None:
        for dependent in state.waits.dependents.get(job, ()):
            if dependent in state.waits.open:
                state.waits.open[dependent] += 1


def advance(state: State) -> list[tuple[Job, str]]:
    """Look at one slice of those who waited for an end.

    Returns the jobs that can never start now, and why.
    """
    hopeless: list[tuple[Job, str]] = []
    if not state.waits.resolving:
        return hopeless
    leader, dependents = state.waits.resolving[0]
    for number in dependents[:SLICE]:
        job = state.jobs.get(number)
        if job is not None and number in state.waits.dependents.get(leader, ()):
            _resolve(state, job, leader, hopeless)
    del dependents[:SLICE]
    if not dependents:
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
        if job is not None and _starts_at(state, job) == at:
            return at
        heappop(state.waits.timed)
    return None


def why(state: State, job: Job) -> str:
    """Say in one line why a held or waiting job does not start."""
    if job.state is JobState.HELD:
        return f"held; `grass release {job.id}` lets it start"
    if state.waits.open.get(job.id):
        return _open_text(state, job)
    at = _starts_at(state, job)
    if job.not_before is not None and job.not_before == at:
        return f"retry {job.failures} at {rfc3339(at)}"
    return f"begins at {rfc3339(at)}" if at else "starts with the next decision"


def _open_text(state: State, job: Job) -> str:
    still = [
        number
        for number in _needs(state, job)
        if number not in state.waits.settled or number in state.jobs
    ]
    first = state.jobs.get(still[0]) if still else None
    if first is None:
        return "waits for other jobs to end"
    more = f" and {len(still) - 1} more" if len(still) > 1 else ""
    need = _needs(state, job)[first.id][0]
    wish = "end" if need == "any" else "succeed" if need == "succeeded" else "fail"
    return f"waits for job {first.id} ({first.state}){more} to {wish}"


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


def _register(state: State, job: Job) -> None:
    open_ones = 0
    for dependency, wanted in _needs(state, job).items():
        state.waits.dependents.setdefault(dependency, {})[job.id] = None
        known = _state_of(state, dependency, {})
        over = known is None or known in ENDED
        if known is not None and over:
            state.waits.settled[dependency] = known
            if all(met(need, known) for need in wanted):
                continue
        open_ones += 1
        if over:
            # Pruned, or ended otherwise while nobody looked: it will not end again.
            state.waits.resolving.append((dependency, [job.id]))
    state.waits.open[job.id] = open_ones


def _resolve(
    state: State, job: Job, leader: int, hopeless: list[tuple[Job, str]]
) -> None:
    end = state.waits.settled.get(leader)
    wanted = _needs(state, job)[leader]
    if end is None:
        hopeless.append((job, f"job {leader}, which it waited for, is forgotten"))
    elif not all(met(need, end) for need in wanted):
        wish = " and ".join(wanted)
        hopeless.append((job, f"waited for job {leader}:{wish}, which is {end}"))
    else:
        state.waits.open[job.id] -= 1
        if job.state is JobState.WAITING:
            go_on(state, job)


def _may_start(state: State, job: Job) -> bool:
    return _all_met(state, job) and _starts_at(state, job) <= state.now_us


def _all_met(state: State, job: Job) -> bool:
    if job.met:
        return True
    if job.id not in state.waits.open:
        _register(state, job)
    return state.waits.open[job.id] == 0


def _starts_at(state: State, job: Job) -> int:
    return max(state.specs[job.spec].begin_at or 0, job.not_before or 0)


def _watch_time(state: State, job: Job) -> None:
    at = _starts_at(state, job)
    if at > state.now_us:
        heappush(state.waits.timed, (at, job.id))


def _needs(state: State, job: Job) -> dict[int, tuple[str, ...]]:
    """Give what a job waits for; worked out once for all jobs of a spec."""
    known = state.waits.needs.get(job.spec)
    if known is None:
        if len(state.waits.needs) >= 1000:
            state.waits.needs.clear()
        known = {}
        for after in state.specs[job.spec].after:
            known[after.job] = (*known.get(after.job, ()), after.need)
        state.waits.needs[job.spec] = known
    return known
