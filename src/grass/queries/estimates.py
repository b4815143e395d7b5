"""When a job may start, as far as earlier runs of the same names tell.

A rehearsal: running jobs end when such jobs used to end, those ahead in the queue start
in order, each as soon as what it needs is free. Amounts are summed over the units of
one worker. Where a job has to end of whose name nothing is known, there is no estimate:
a guess would be worse than none.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from statistics import median
from typing import NamedTuple

from grass.broker.core.state import State
from grass.model.job import Job
from grass.queries.constraints import open_units
from grass.scheduler.explanation import Explanation

RUNS = 20
"""How many earlier runs of a name are looked at."""
MOST_AHEAD = 50
MOST_NAMES = 50
_QUEUE, _ARRAY = " queue", " array"
"""Places among running jobs, counted like units; no kind can be called that."""
_US = 1_000_000

History = Mapping[str, Sequence[float]]
"""Seconds that earlier runs took, by name."""

Amounts = dict[str, int]


class Running(NamedTuple):
    """Somebody who has what others wait for."""

    name: str
    since: int
    holds: Amounts


class Queued(NamedTuple):
    """Somebody who waits."""

    name: str
    needs: Amounts


class Line(NamedTuple):
    """What is free, who runs, and who waits in which order, the asker last."""

    free: Amounts
    running: list[Running]
    waiting: list[Queued]

    def names(self) -> set[str]:
        """Give the names whose history matters."""
        ahead = {one.name for one in self.waiting[:-1]}
        return ahead | {one.name for one in self.running}


class Estimate(NamedTuple):
    """A time, and how many runs it rests on."""

    at: int
    runs: int


def line_for(state: State, job: Job, told: Explanation, position: int) -> Line | None:
    """Collect what stands between a queued job and its start; None: too much does."""
    stuck = told.paused or told.queue_paused or told.worker is None
    pieces = any(need.free >= need.asked for need in (*told.needs, *told.together))
    if stuck or pieces or position > MOST_AHEAD:
        return None
    assert told.worker is not None
    free = {
        kind: open_units(state, told.worker, job.queue, kind)[0]
        for kind, _ in state.specs[job.spec].request
    }
    free.update({need.kind: need.free for need in told.needs})
    free.update(_places(told))
    running, handed = _runners(state, job, told.worker, free)
    ahead = [*handed, *_ahead(state, job, position), job]
    waiting = [Queued(one.name, _needs(state, one, job, free)) for one in ahead]
    return Line(free, running, waiting)


def rehearse(line: Line, history: History, now: int) -> Estimate | None:
    """Let everything happen as it used to, until the last in line starts."""
    free, used = dict(line.free), set[str]()
    ends = [
        (end_of(one.since, history[one.name], now), number, one.name, one.holds)
        for number, one in enumerate(line.running)
        if history.get(one.name)
    ]
    heapify(ends)
    for number, one in enumerate(line.waiting, len(line.running)):
        while any(free[kind] < needed for kind, needed in one.needs.items()):
            if not ends:
                return None
            now, _, name, given = heappop(ends)
            used.add(name)
            for kind, amount in given.items():
                free[kind] += amount
        for kind, needed in one.needs.items():
            free[kind] -= needed
        if history.get(one.name):
            ended = now + int(median(history[one.name]) * _US)
            heappush(ends, (ended, number, one.name, one.needs))
    return Estimate(now, sum(len(history[name]) for name in used))


def end_of(since: int, runs: Sequence[float], now: int) -> int:
    """Tell when something that runs already may end."""
    ran_s = (now - since) / _US
    # Of those that took at least as long as this one has run by now.
    longer = [took for took in runs if took > ran_s]
    return max(now, since + int(median(longer) * _US)) if longer else now


def _places(told: Explanation) -> Amounts:
    """Count places where a limit is reached; elsewhere there are enough."""
    places = {}
    if told.queue_full is not None:
        places[_QUEUE] = told.queue_full[1] - told.queue_full[0]
    if told.limiter_full is not None:
        places[_ARRAY] = told.limiter_full[1] - told.limiter_full[0]
    return places


def _runners(
    state: State, job: Job, worker: str, free: Amounts
) -> tuple[list[Running], list[Job]]:
    """Give who holds something of this, and who is to follow on such units."""
    running, handed = list[Running](), list[Job]()
    for attempt in state.attempts.values():
        other = state.jobs[attempt.job]
        if attempt.after is not None:
            handed.append(other)
            continue
        holds = {
            kind: sum(attempt.allocation[kind].values())
            for kind in free
            if attempt.worker == worker and kind in attempt.allocation
        }
        holds |= _taken(other, job, free)
        if holds:
            running.append(Running(other.name, attempt.started_at, holds))
    return running, handed


def _taken(other: Job, job: Job, free: Amounts) -> Amounts:
    taken = {}
    if _QUEUE in free and other.queue == job.queue:
        taken[_QUEUE] = 1
    if _ARRAY in free and other.array == job.array:
        taken[_ARRAY] = 1
    return taken


def _ahead(state: State, job: Job, position: int) -> list[Job]:
    ahead = state.scheduler.first(position - 1, job.queue)
    return [state.jobs[number] for number in ahead]


def _needs(state: State, other: Job, job: Job, free: Amounts) -> Amounts:
    request = state.specs[other.spec].request
    needs = {kind: asked for kind, asked in request if kind in free}
    return needs | _taken(other, job, free)
