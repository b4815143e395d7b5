"""Checks of dependencies that jobs have once they are edited or run again.

Refused are dependencies on a job that does not exist or that ended in another way, and
circles. Dependencies on jobs that ended earlier are resolved first: a job that can
never start is cancelled, and neither edited nor run again.
"""

from collections.abc import Container, Iterable, Iterator, Mapping

from grass.broker.core.attempts import tracking
from grass.broker.core.jobs import dependency_graph, eligibility
from grass.broker.core.jobs.bulk_calls import Slices
from grass.broker.core.jobs.dependency_graph import Waits
from grass.broker.core.state import State
from grass.errors import Refused
from grass.model.id_runs import runs_without
from grass.model.jobs.dependencies import After
from grass.model.jobs.lifecycle import JobState

_THIS_CALL = 0
"""The id under which a call remembers how jobs ended; no job has it."""


def catch_up(state: State) -> Slices:
    """Resolve dependencies and times that are due, in slices.

    A job that may start by now is queued, also if a job it waited for is run again.
    """
    eligibility.due(state)
    looked_at = 0
    while state.dependencies.unchecked:
        if looked_at >= eligibility.SLICE:
            looked_at = 0
            yield []
            continue
        looked_at += len(state.dependencies.unchecked[0])
        for job, reason in eligibility.advance(state):
            tracking.give_up(state, job, reason)


def check(
    state: State,
    actor: str,
    waits: Mapping[int, Waits],
    ends: dict[int, JobState],
    together: Container[int],
) -> None:
    """Check dependencies, once for all jobs that share them.

    Jobs that run again `together` may wait for each other.
    """
    seen = set[int]()
    dependency_graph.check_room(state, actor, _each_once(waits.values()))
    for after in _each_once(waits.values()):
        dependency_graph.check(state, _without(after, together), ends)
        _check_cycle(state, waits, after, seen)


class Remembered:
    """How other jobs ended, also while for a moment no job waits for them.

    Only one call at a time edits jobs or runs them again: see `bulk_calls`.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: dict[int, Waits] = {}

    def remember(self, after: Waits, ends: dict[int, JobState]) -> None:
        """Keep how the named jobs ended, once for all that share the dependencies."""
        if id(after) not in self._kept:
            self._kept[id(after)] = after
            dependency_graph.remember(self._state, after, ends, _THIS_CALL)

    def forget(self) -> None:
        """Drop them, once the edited jobs wait again."""
        for after in self._kept.values():
            dependency_graph.forget(self._state, after, _THIS_CALL)


def _check_cycle(
    state: State, waits: Mapping[int, Waits], after: Waits, seen: set[int]
) -> None:
    """Refuse jobs that would wait for themselves, directly or by others.

    Shared dependencies are followed once, however many jobs share them: many jobs may
    wait in one long chain.
    """
    path = {id(after): _jobs_of(after)}
    while path:
        here = next(reversed(path))
        job = next(path[here], None)
        if job is None:
            del path[here]
            seen.add(here)
            continue
        further = _waits_for(state, job, waits)
        if id(further) in path:
            raise Refused(f"job {job} would wait for itself", "change --after")
        if id(further) not in seen:
            path[id(further)] = _jobs_of(further)


def _waits_for(state: State, number: int, waits: Mapping[int, Waits]) -> Waits:
    if number in waits:
        return waits[number]
    job = state.jobs.get(number)
    if job is None or job.met or job.state is JobState.RUNNING:
        return ()
    return state.specs[job.spec].after


def _jobs_of(after: Waits) -> Iterator[int]:
    return (job for one in after for job in one.jobs)


def _without(after: Waits, together: Container[int]) -> Waits:
    """Return the dependencies on other jobs than these."""
    return tuple(
        After(one.need, first, last)
        for one in after
        for first, last in runs_without([(one.first, one.last)], together)
    )


def _each_once(all_after: Iterable[Waits]) -> Iterable[Waits]:
    """Return dependencies once for all jobs that share them: they may be long."""
    return {id(after): after for after in all_after}.values()
