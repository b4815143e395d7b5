"""Dependencies of jobs, in groups, and what an end means for the dependents.

What jobs wait for is what it is now: running a job again makes those wait for it that
still wait. Jobs of one spec wait together, as a group: an array of thousands that waits
for another one costs what the two cost, not their product. How a job ended is kept for
as long as a dependent names it. Nothing here queues a job: `eligibility` does, for
the jobs in `unchecked`.
"""

from collections.abc import Iterable

from grass.broker.core.jobs.job_memory import DependencyGroup
from grass.broker.core.state import State
from grass.errors import NeverFits, NotFound
from grass.model.jobs.dependencies import HAS_ENDED, VERBS, After, met
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState

MOST_NEEDS = 1000


def unmeetable(
    state: State, after: tuple[After, ...], found: dict[int, JobState]
) -> tuple[After, JobState] | None:
    """Return a dependency on a job that ended in another way, and how it ended.

    Dependencies on jobs that never were are refused. `found` tells how jobs ended that
    memory does not know.
    """
    found = _kept(state, found)
    first: tuple[After, JobState] | None = None
    for one in after:
        known = _state_of(state, one.job, found)
        if known is None:
            raise NotFound(f"--after {one.job}: there is no job {one.job}")
        if first is None and met(one.need, known) is False:
            first = one, known
    return first


def check(state: State, after: tuple[After, ...], found: dict[int, JobState]) -> None:
    """Refuse dependencies on jobs that never were, or that can never be met."""
    unmet = unmeetable(state, after, found)
    if unmet is not None:
        one, end = unmet
        raise NeverFits(
            f"--after {one} can never be met: job {one.job} is {end}",
            f"`grass rerun {one.job}` first, or wait for another job",
        )


def remember(
    state: State, after: tuple[After, ...], found: dict[int, JobState], holder: int
) -> None:
    """Keep how jobs ended, or end, for a holder.

    A holder is minus the first job of an enqueue, or 0 for the call being applied.
    """
    found = _kept(state, found)
    for job, _ in after:
        state.dependencies.dependents.setdefault(job, {})[holder] = None
        known = _state_of(state, job, found)
        if known in ENDED:
            state.dependencies.ends[job] = known


def forget(state: State, dependencies: Iterable[int], holder: int) -> None:
    """Drop what was kept for a holder."""
    for dependency in dependencies:
        dependents = state.dependencies.dependents.get(dependency)
        if dependents is not None:
            dependents.pop(holder, None)
            if not dependents:
                del state.dependencies.dependents[dependency]
                state.dependencies.ends.pop(dependency, None)


def join(state: State, job: Job) -> int:
    """Add a job to its group; return how many of its dependencies are open."""
    if job.met or not state.specs[job.spec].after:
        return 0
    return _group_of(state, job).open


def leave(state: State, job: Job) -> None:
    """Remove a job from its group."""
    group = state.dependencies.groups.get(job.spec)
    if group is None or job.id not in group.members:
        return
    del group.members[job.id]
    if not group.members:
        del state.dependencies.groups[job.spec]
        forget(state, _needs(state, job.spec), job.spec)


def ended(state: State, job: Job) -> None:
    """Note an end: its dependents are checked in the next slices."""
    holders = state.dependencies.dependents.get(job.id)
    if holders is None:
        return
    state.dependencies.ends[job.id] = job.state
    for spec in holders:
        group = state.dependencies.groups.get(spec)
        if group is not None:
            _dependency_ended(state, group, _needs(state, spec)[job.id], job)


def cancelled_with(state: State, jobs: Iterable[int]) -> int:
    """Count the other jobs that are cancelled when these are, and theirs in turn."""
    known = state.dependencies
    named = {job for job in jobs if job in state.jobs}
    left, groups, count = list(known.dependents.keys() & named), set[int](), 0
    while left:
        job = left.pop()
        for spec in known.dependents[job].keys() & known.groups.keys() - groups:
            wanted = _needs(state, spec)[job]
            if not all(met(need, JobState.CANCELLED) for need in wanted):
                groups.add(spec)
                others = known.groups[spec].members.keys() - named
                count += len(others)
                left += known.dependents.keys() & others
    return count


def running_again(state: State, job: int) -> None:
    """Reopen the dependencies on a job that had ended.

    Its dependents were checked before: none is unchecked.
    """
    if state.dependencies.ends.pop(job, None) is not None:
        for spec in state.dependencies.dependents.get(job, ()):
            if spec in state.dependencies.groups:
                state.dependencies.groups[spec].open += 1


def open_dependencies(state: State, job: Job) -> int:
    """Return how many dependencies of a job are open."""
    group = None if job.met else state.dependencies.groups.get(job.spec)
    return 0 if group is None else group.open


def open_text(state: State, job: Job, still_open: int) -> str:
    """Describe in one line which jobs a job waits for."""
    needs = _needs(state, job.spec)
    first = next((one for one in needs if one not in state.dependencies.ends), None)
    known = None if first is None else state.jobs.get(first)
    if first is None or known is None:
        return "waits for other jobs to end"
    more = f" and {still_open - 1} more" if still_open > 1 else ""
    asked = {need for wanted in needs.values() for need in wanted}
    end = VERBS[asked.pop()] if len(asked) == 1 else "end as asked"
    return f"waits for job {first} ({known.state}){more} to {end}"


def _state_of(state: State, number: int, found: dict[int, JobState]) -> JobState | None:
    """Find a job's state: in memory, in this batch, or as the store had it."""
    if number in state.jobs:
        return state.jobs[number].state
    changed = state.batch.changes.jobs.get(number)
    if changed is not None:
        # One that has neither ended nor is in memory is still being made.
        return changed.state if changed.state in ENDED else None
    if number in state.dependencies.dependents and number in state.dependencies.ends:
        return state.dependencies.ends[number]
    return found.get(number)


def _kept(state: State, found: dict[int, JobState]) -> dict[int, JobState]:
    """Leave out jobs that were pruned since the store was read."""
    gone = set(state.batch.changes.removed_jobs)
    if not gone:
        return found
    return {number: end for number, end in found.items() if number not in gone}


def _group_of(state: State, job: Job) -> DependencyGroup:
    """Return a job's group, with the job in it."""
    group = state.dependencies.groups.get(job.spec)
    if group is None:
        group = state.dependencies.groups[job.spec] = _new_group(state, job.spec)
    if job.id not in group.members:
        group.members[job.id] = None
        if group.unmeetable is not None:
            state.dependencies.unchecked.append([job.id])
    return group


def _new_group(state: State, spec: int) -> DependencyGroup:
    group = DependencyGroup()
    for dependency, wanted in _needs(state, spec).items():
        state.dependencies.dependents.setdefault(dependency, {})[spec] = None
        known = _state_of(state, dependency, {})
        if known is not None and known in ENDED:
            state.dependencies.ends[dependency] = known
            if all(met(need, known) for need in wanted):
                continue
            group.unmeetable = _unmet(dependency, wanted, known)
        elif known is None:
            group.unmeetable = f"job {dependency}, which it waited for, is forgotten"
        group.open += 1
    return group


def _dependency_ended(
    state: State, group: DependencyGroup, wanted: tuple[str, ...], dependency: Job
) -> None:
    if not all(met(need, dependency.state) for need in wanted):
        group.unmeetable = _unmet(dependency.id, wanted, dependency.state)
    else:
        group.open -= 1
    if group.unmeetable is not None or group.open == 0:
        state.dependencies.unchecked.append(list(group.members))


def _unmet(dependency: int, wanted: tuple[str, ...], end: JobState) -> str:
    """Return the reason of a cancelled job; the store finds dependents by it."""
    needs = " and ".join(f"to {VERBS[need]}" for need in wanted)
    return f"waited for job {dependency} {needs}, and it {HAS_ENDED[end]}"


def _needs(state: State, spec: int) -> dict[int, tuple[str, ...]]:
    """Return the dependencies of a spec; computed once for all its jobs."""
    known = state.dependencies.needs.get(spec)
    if known is None:
        if len(state.dependencies.needs) >= MOST_NEEDS:
            state.dependencies.needs.clear()
        known = {}
        for after in state.specs[spec].after:
            known[after.job] = (*known.get(after.job, ()), after.need)
        state.dependencies.needs[spec] = known
    return known
