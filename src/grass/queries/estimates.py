"""When a job may start, and when jobs end, estimated from earlier runs of their names.

A start is found by a simulation: running jobs end after the median of earlier runs,
those ahead in the queue start in order, each as soon as what it needs is free. Amounts
are summed over the units of one worker. Where a job without earlier runs has to end
first, there is no estimate.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from statistics import median
from typing import NamedTuple

from grass.broker.core.state import State
from grass.model.gpu_details import found_gpus, has_model, named_gpus
from grass.model.jobs.job import Job
from grass.model.resources import GPU_KINDS, Allocation
from grass.queries.constraints import names_of_open_units, open_units
from grass.scheduler.reasons.explanation import Explanation

RUNS = 20
"""How many earlier runs of a name are looked at."""
MOST_AHEAD = 50
MOST_NAMES = 50
MOST_ESTIMATED = 10_000
_QUEUE, _ARRAY = " queue", " array"
"""Places among running jobs, counted like units; no kind can be called that."""
_US = 1_000_000

History = Mapping[str, Sequence[float]]
"""Seconds that earlier runs took, by name."""

Amounts = dict[str, int]


class RunningJob(NamedTuple):
    """A job that holds what others wait for."""

    name: str
    since: int
    holds: Amounts


class QueuedJob(NamedTuple):
    """A job that waits."""

    name: str
    needs: Amounts


class QueueSnapshot(NamedTuple):
    """What is free, what runs, and what waits in which order, the asked job last."""

    free: Amounts
    running: list[RunningJob]
    waiting: list[QueuedJob]

    def names(self) -> set[str]:
        """Return the names whose history is needed."""
        ahead = {one.name for one in self.waiting[:-1]}
        return ahead | {one.name for one in self.running}


class UnfinishedJob(NamedTuple):
    """A job that is waited for, and since when it runs."""

    name: str
    since: int | None


class Estimate(NamedTuple):
    """A time, and the number of runs that it is computed from."""

    at: int
    runs: int


def snapshot_for(
    state: State, job: Job, reason: Explanation, position: int
) -> QueueSnapshot | None:
    """Collect what must happen before a queued job starts; None: too much."""
    stuck = reason.paused or reason.queue_paused or reason.worker is None
    short = (*reason.needs, *reason.together)
    # Amounts are summed over units, which says nothing of pieces or of shares.
    stuck_share = any(need.brought for need in short) and not reason.holders
    pieces = stuck_share or any(need.free >= need.asked for need in short)
    if stuck or pieces or position > MOST_AHEAD:
        return None
    assert reason.worker is not None
    spec = state.specs[job.spec]
    free = {kind: open_units(state, spec, reason, kind)[0] for kind, _ in spec.request}
    free.update({need.kind: need.free for need in reason.needs})
    free.update(_places(reason))
    running, prefetched = _running(state, job, reason, free)
    ahead = [*prefetched, *_ahead(state, job, position), job]
    needs = JobNeeds(state, reason, job, free)
    waiting = [QueuedJob(one.common.name, needs.of(one)) for one in ahead]
    return QueueSnapshot(free, running, waiting)


def simulate(snapshot: QueueSnapshot, history: History, now: int) -> Estimate | None:
    """Let jobs run as long as earlier ones did, until the last one starts."""
    free, used = dict(snapshot.free), set[str]()
    ends = [
        (end_of(one.since, history[one.name], now), number, one.name, one.holds)
        for number, one in enumerate(snapshot.running)
        if history.get(one.name)
    ]
    heapify(ends)
    for number, one in enumerate(snapshot.waiting, len(snapshot.running)):
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
    """Estimate when a running job ends."""
    ran_s = (now - since) / _US
    # Only runs that took longer than this one has run by now.
    longer = [took for took in runs if took > ran_s]
    return max(now, since + int(median(longer) * _US)) if longer else now


def unfinished(state: State, jobs: Sequence[int]) -> list[UnfinishedJob]:
    """Return those of the jobs that have not ended; nothing if there are too many."""
    if len(jobs) > MOST_ESTIMATED:
        return []
    known = [state.jobs[number] for number in jobs if number in state.jobs]
    return [UnfinishedJob(job.common.name, _since(state, job.id)) for job in known]


def end_of_all(
    jobs: Sequence[UnfinishedJob], history: History, now: int
) -> Estimate | None:
    """Estimate when all of these have ended; None: nothing runs, or has no history.

    As many run at a time as run now.
    """
    left_us, places = list[float](), 0
    for job in jobs:
        runs = history.get(job.name)
        if not runs:
            return None
        if job.since is None:
            left_us.append(median(runs) * _US)
        else:
            places += 1
            left_us.append(end_of(job.since, runs, now) - now)
    if not places:
        return None
    takes_us = max(*left_us, sum(left_us) / places)
    return Estimate(now + int(takes_us), sum(map(len, history.values())))


def _since(state: State, job: int) -> int | None:
    attempt = state.attempts.get(job)
    if attempt is None or attempt.after is not None:
        return None
    return attempt.started_at


def _places(reason: Explanation) -> Amounts:
    """Count free places of each limit that is reached."""
    places = {}
    if reason.queue_full is not None:
        places[_QUEUE] = reason.queue_full[1] - reason.queue_full[0]
    if reason.limiter_full is not None:
        places[_ARRAY] = reason.limiter_full[1] - reason.limiter_full[0]
    return places


def _running(
    state: State, job: Job, reason: Explanation, free: Amounts
) -> tuple[list[RunningJob], list[Job]]:
    """Return jobs that hold such amounts, and prefetched jobs that wait for units."""
    running, prefetched = list[RunningJob](), list[Job]()
    # Units that the job's queue does not see do not become free for it.
    seen = {kind: names_of_open_units(state, reason, kind) for kind in free}
    for attempt in state.attempts.values():
        other = state.jobs[attempt.job]
        if attempt.after is not None:
            prefetched.append(other)
            continue
        if attempt.worker == reason.worker:
            holds = _held(attempt.allocation, seen)
        else:
            holds = {}
        holds |= _taken(other, job, free)
        if holds:
            running.append(RunningJob(other.common.name, attempt.started_at, holds))
    return running, prefetched


def _held(allocation: Allocation, seen: Mapping[str, Sequence[str]]) -> Amounts:
    held = {
        kind: sum(allocation.get(kind, {}).get(unit, 0) for unit in units)
        for kind, units in seen.items()
    }
    return {kind: amount for kind, amount in held.items() if amount}


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


class JobNeeds:
    """What jobs of the same queue take of what one job waits for."""

    def __init__(
        self, state: State, reason: Explanation, job: Job, free: Amounts
    ) -> None:
        assert reason.worker is not None
        self._state, self._job, self._free = state, job, free
        self._found = found_gpus(state.workers[reason.worker].found)
        self._open = set(names_of_open_units(state, reason, "gpu"))
        self._gpus: dict[str, frozenset[str]] = {}
        """By pattern, the GPUs of the worker that match."""

    def of(self, other: Job) -> Amounts:
        """Return what a job takes; of GPUs only if it may have one of the same."""
        spec = self._state.specs[other.spec]
        needs = {kind: asked for kind, asked in spec.request if kind in self._free}
        if spec.gpu_model is not None:
            gpus = self._matching(spec.gpu_model)
            if not gpus:
                needs = {}
            elif gpus.isdisjoint(self._open):
                needs = {kind: needs[kind] for kind in needs.keys() - GPU_KINDS}
        return needs | _taken(other, self._job, self._free)

    def _matching(self, pattern: str) -> frozenset[str]:
        if pattern not in self._gpus:
            named = named_gpus(pattern)
            found = self._found.items()
            alike = (name for name, gpu in found if has_model(gpu.model, pattern))
            self._gpus[pattern] = frozenset(alike) if named is None else named
        return self._gpus[pattern]
