"""What jobs are to wait for once they are changed or run again.

Nobody waits for a job that never was, or that ended the other way, nor by others for
itself. What earlier ends mean for those who waited is done first: a job that can never
start now is cancelled, and neither edited nor run again.
"""

from collections.abc import Container, Iterable, Mapping

from grass.broker.core.attempts import tracking
from grass.broker.core.jobs import dependency_graph, eligibility
from grass.broker.core.jobs.bulk_verbs import Slices
from grass.broker.core.state import State
from grass.errors import Refused
from grass.model.dependencies import After
from grass.model.lifecycle import JobState

Waits = tuple[After, ...]
"""What a job waits for; those that share it share the object."""

_THIS_CALL = 0
"""Holds what is remembered of other jobs while a call is applied; no job has it."""


def catch_up(state: State) -> Slices:
    """Finish with those who waited for ends or for a time that has come, in slices.

    Whoever may start by now does so, also if a job that it waited for is run again.
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
    waits: Mapping[int, Waits],
    ends: dict[int, JobState],
    together: Container[int],
) -> None:
    """Check what jobs are to wait for, once for all that wait for the same.

    Those that run again `together` may wait for each other.
    """
    seen = set[int]()
    for after in _each_once(waits.values()):
        others = tuple(each for each in after if each.job not in together)
        dependency_graph.check(state, others, ends)
        _check_cycle(state, waits, after, seen)


class Remembered:
    """How others ended, also while nobody waits for them for a moment.

    Only one call at a time edits jobs or runs them again: see `bulk`.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: dict[int, Waits] = {}

    def remember(self, after: Waits, ends: dict[int, JobState]) -> None:
        """Keep what a job waits for, once for all that share it."""
        if id(after) not in self._kept:
            self._kept[id(after)] = after
            dependency_graph.remember(self._state, after, ends, _THIS_CALL)

    def forget(self) -> None:
        """Let go of it, once whoever is to wait does so."""
        for after in self._kept.values():
            named = [each.job for each in after]
            dependency_graph.forget(self._state, named, _THIS_CALL)


def _check_cycle(
    state: State, waits: Mapping[int, Waits], after: Waits, seen: set[int]
) -> None:
    """Refuse jobs that would, by others, wait for themselves.

    Each thing that jobs wait for is looked at once, however many do and from wherever
    it is reached: many jobs may wait in one long line.
    """
    path = {id(after): iter(after)}
    while path:
        here = next(reversed(path))
        one = next(path[here], None)
        if one is None:
            del path[here]
            seen.add(here)
            continue
        further = _waits_for(state, one.job, waits)
        if id(further) in path:
            raise Refused(f"job {one.job} would wait for itself", "change --after")
        if id(further) not in seen:
            path[id(further)] = iter(further)


def _waits_for(state: State, number: int, waits: Mapping[int, Waits]) -> Waits:
    if number in waits:
        return waits[number]
    job = state.jobs.get(number)
    if job is None or job.met or job.state is JobState.RUNNING:
        return ()
    return state.specs[job.spec].after


def _each_once(all_after: Iterable[Waits]) -> Iterable[Waits]:
    """Give what jobs wait for, once for all that share it: it may be long."""
    return {id(after): after for after in all_after}.values()
