"""Dependencies of jobs, in groups, and what an end means for the dependents.

What jobs wait for is what it is now: running a job again makes those wait for it that
still wait. Jobs of one spec wait together, as a group, and name ranges of jobs: an
array of thousands that waits for another one costs some thirty entries, not the
product of the two. How a job ended is kept for as long as a dependent names it.
Nothing here queues a job: `eligibility` does, for the jobs in `unchecked`.

What jobs name is limited in entries of the index, for each owner and in all: it is in
memory for as long as they wait.
"""

from collections.abc import Iterable, Iterator
from itertools import filterfalse

from grass.broker.core.jobs.job_memory import DependencyGroup
from grass.broker.core.state import State
from grass.errors import NeverFits, NotFound, Refused
from grass.model.jobs.dependencies import (
    HAS_ENDED,
    VERBS,
    After,
    met,
    needs_of,
    runs_of,
)
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.model.range_index import entries

Waits = tuple[After, ...]
"""The dependencies of a job; jobs that share them share the object."""

MAX_ENTRIES = 1_000_000
"""How many entries unfinished jobs may have in all: some 200 MB."""
MAX_ENTRIES_EACH = 500_000
"""How many those of one owner may have."""


def check_room(state: State, owner: str, afters: Iterable[Waits]) -> None:
    """Refuse dependencies of new groups that memory is not to hold."""
    more = sum(entries(runs_of(after)) for after in afters)
    counts = state.dependencies.entries
    if more and counts[owner] + more > MAX_ENTRIES_EACH:
        raise Refused(
            f"unfinished jobs of {owner} name too many others: {counts[owner] + more}"
            f" entries, at most {MAX_ENTRIES_EACH}",
            "name ranges (`--after 3-9`), or wait until some have ended",
        )
    if more and counts.total() + more > MAX_ENTRIES:
        raise Refused(
            f"unfinished jobs name too many others: at most {MAX_ENTRIES} entries",
            "wait until some have ended",
        )


def unmeetable(
    state: State, after: Waits, found: dict[int, JobState]
) -> tuple[After, JobState] | None:
    """Return a dependency on a job that ended in another way, and how it ended.

    Dependencies on jobs that never were are refused. `found` has the states of jobs
    that memory does not have.
    """
    found = _kept(state, found)
    first: tuple[After, JobState] | None = None
    for one, job in _not_in_memory(state, after):
        end = _state_of(state, job, found)
        if end is None:
            raise NotFound(f"--after {job}: there is no job {job}")
        if first is None and met(one.need, end) is False:
            first = After(one.need, job, job), end
    return first


def check(state: State, after: Waits, found: dict[int, JobState]) -> None:
    """Refuse dependencies on jobs that never were, or that can never be met."""
    unmet = unmeetable(state, after, found)
    if unmet is not None:
        one, end = unmet
        raise NeverFits(
            f"--after {one} can never be met: job {one.first} is {end}",
            f"`grass rerun {one.first}` first, or wait for another job",
        )


def remember(
    state: State, after: Waits, found: dict[int, JobState], holder: int
) -> None:
    """Keep how jobs ended, or end, for a holder.

    A holder is minus the first job of an enqueue, or 0 for the call being applied.
    """
    found = _kept(state, found)
    state.dependencies.dependents.add(runs_of(after), holder)
    for _, job in _not_in_memory(state, after):
        end = _state_of(state, job, found)
        if end in ENDED:
            state.dependencies.ends[job] = end


def forget(state: State, after: Waits, holder: int) -> None:
    """Drop what was kept for a holder."""
    dependents, ends = state.dependencies.dependents, state.dependencies.ends
    for first, last in dependents.discard(runs_of(after), holder):
        for job in list(filter(ends.__contains__, range(first, last + 1))):
            if job not in dependents:
                del ends[job]


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
        state.dependencies.entries[group.owner] -= group.entries
        forget(state, state.specs[job.spec].after, job.spec)


def ended(state: State, job: Job) -> None:
    """Note an end: its dependents are checked in the next slices."""
    holders = state.dependencies.dependents.holders(job.id)
    if not holders:
        return
    state.dependencies.ends[job.id] = job.state
    for spec in holders:
        group = state.dependencies.groups.get(spec)
        if group is not None:
            _dependency_ended(state, group, _needs(state, spec, job.id), job)


def cancelled_with(state: State, jobs: Iterable[int]) -> int:
    """Count the other jobs that are cancelled when these are, and theirs in turn."""
    dependencies = state.dependencies
    named = {job for job in jobs if job in state.jobs}
    left, counted, count = dependencies.dependents.among(named), set[int](), 0
    while left:
        job = left.pop()
        for spec in dependencies.dependents.holders(job):
            if spec in counted or spec not in dependencies.groups:
                continue
            if not _all_met(_needs(state, spec, job), JobState.CANCELLED):
                counted.add(spec)
                others = dependencies.groups[spec].members.keys() - named
                count += len(others)
                left += dependencies.dependents.among(others)
    return count


def running_again(state: State, job: int) -> None:
    """Reopen the dependencies on a job that had ended.

    Its dependents were checked before: none is unchecked.
    """
    if state.dependencies.ends.pop(job, None) is not None:
        for spec in state.dependencies.dependents.holders(job):
            if spec in state.dependencies.groups:
                needs = _needs(state, spec, job)
                state.dependencies.groups[spec].open += len(needs)


def open_dependencies(state: State, job: Job) -> int:
    """Return how many dependencies of a job are open."""
    group = None if job.met else state.dependencies.groups.get(job.spec)
    return 0 if group is None else group.open


def open_text(state: State, job: Job, still_open: int) -> str:
    """Describe in one line which jobs a job waits for."""
    after, ends = state.specs[job.spec].after, state.dependencies.ends
    named = (job for first, last in runs_of(after) for job in range(first, last + 1))
    first = next(filterfalse(ends.__contains__, named), None)
    leader = None if first is None else state.jobs.get(first)
    if first is None or leader is None:
        return "waits for other jobs to end"
    more = f" and {still_open - 1} more" if still_open > 1 else ""
    needs = {one.need for one in after}
    end = VERBS[needs.pop()] if len(needs) == 1 else "end as asked"
    return f"waits for job {first} ({leader.state}){more} to {end}"


def _not_in_memory(state: State, after: Waits) -> Iterator[tuple[After, int]]:
    """Yield the jobs that have ended, or never were: all others are in memory."""
    for one in after:
        for job in filterfalse(state.jobs.__contains__, one.jobs):
            yield one, job


def _state_of(state: State, number: int, found: dict[int, JobState]) -> JobState | None:
    """Find the state of a job that is not in memory: in this batch, or as stored."""
    changed = state.batch.changes.jobs.get(number)
    if changed is not None:
        # One that has neither ended nor is in memory is still being made.
        return changed.state if changed.state in ENDED else None
    end = state.dependencies.ends.get(number)
    if end is not None and number in state.dependencies.dependents:
        return end
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
        group = state.dependencies.groups[job.spec] = _new_group(state, job)
    if job.id not in group.members:
        group.members[job.id] = None
        if group.unmeetable is not None:
            state.dependencies.unchecked.append([job.id])
    return group


def _new_group(state: State, job: Job) -> DependencyGroup:
    after = state.specs[job.spec].after
    runs = runs_of(after)
    group = DependencyGroup(job.owner, entries(runs))
    state.dependencies.entries[job.owner] += group.entries
    state.dependencies.dependents.add(runs, job.spec)
    group.open = sum(len(one.jobs) for one in after)
    for one, other in _not_in_memory(state, after):
        end = _state_of(state, other, {})
        if end is None:
            group.unmeetable = f"job {other}, which it waited for, is forgotten"
            continue
        state.dependencies.ends[other] = end
        if met(one.need, end):
            group.open -= 1
        else:
            group.unmeetable = _unmet(other, needs_of(after, other), end)
    return group


def _dependency_ended(
    state: State, group: DependencyGroup, needs: list[str], dependency: Job
) -> None:
    if not _all_met(needs, dependency.state):
        group.unmeetable = _unmet(dependency.id, needs, dependency.state)
    else:
        group.open -= len(needs)
    if group.unmeetable is not None or group.open == 0:
        state.dependencies.unchecked.append(list(group.members))


def _all_met(needs: list[str], end: JobState) -> bool:
    return all(met(need, end) for need in needs)


def _unmet(dependency: int, needs: list[str], end: JobState) -> str:
    """Return the reason of a cancelled job; the store finds dependents by it."""
    wanted = " and ".join(f"to {VERBS[need]}" for need in needs)
    return f"waited for job {dependency} {wanted}, and it {HAS_ENDED[end]}"


def _needs(state: State, spec: int, job: int) -> list[str]:
    return needs_of(state.specs[spec].after, job)
