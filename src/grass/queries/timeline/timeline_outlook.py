"""What lanes may look like soon: when running jobs end and the next ones start.

Ends are those of `estimates`. Which units a job gets is not known before it starts: it
is drawn on those of its worker that are free first. A job whose name has no earlier run
is not drawn.
"""

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from grass.broker.core.state import State
from grass.broker.shell.service import Broker
from grass.errors import NotFound
from grass.model.amount_text import WHOLE
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.queries.constraints import names_of_open_units
from grass.queries.estimates import (
    History,
    QueueSnapshot,
    end_of,
    simulate,
    snapshot_for,
)
from grass.queries.explanations import history_of
from grass.queries.timeline.timeline import ALL, CPU, GPU, Lane, Lanes
from grass.store.interface import AttemptSpan

MOST_NEXT = 20
_US = 1_000_000


class Expected(NamedTuple):
    """A job in a lane, at a time to come."""

    job: int
    name: str
    owner: str
    state: JobState
    lane: Lane
    amount: int
    begin: int
    end: int


class _Next(NamedTuple):
    """A job that waits, where it may run and what is before it."""

    job: Job
    worker: str
    gpus: list[str]
    """Those that it may have."""
    snapshot: QueueSnapshot


async def outlook(
    broker: Broker, lanes: Lanes, running: Sequence[AttemptSpan], now: int
) -> list[Expected]:
    """Return what is expected: the rest of what runs, then what starts next."""
    state = broker.state
    known = [span for span in running if span.job in state.jobs]
    waiting = _next_jobs(state)
    names = {state.jobs[span.job].common.name for span in known}
    names |= {one.job.common.name for one in waiting}
    for one in waiting:
        names |= one.snapshot.names()
    history = await history_of(broker, names)
    found = [rest for span in known for rest in _rest(state, lanes, span, history, now)]
    for one in waiting:
        found += _start(state, lanes, one, history, found, now)
    return found


def _rest(
    state: State, lanes: Lanes, span: AttemptSpan, history: History, now: int
) -> list[Expected]:
    """Return how an attempt goes on from now."""
    job = state.jobs.get(span.job)
    runs = history.get(job.common.name) if job is not None else None
    if job is None or not runs:
        return []
    end = end_of(span.started_at, runs, now)
    shown = [held for held in lanes.held(span) if lanes.shows(held.lane)]
    span_us = (now, end)
    return [
        _expected(job, held.lane, held.amount, span_us) for held in shown if end > now
    ]


def _next_jobs(state: State) -> list[_Next]:
    found = list[_Next]()
    for number in state.scheduler.first(MOST_NEXT):
        job = state.jobs.get(number)
        if job is None:
            continue
        try:
            reason = state.scheduler.explain(number, time.monotonic())
            position = state.scheduler.position(number)
        except NotFound:
            continue
        snapshot = snapshot_for(state, job, reason, position)
        if snapshot is not None and reason.worker is not None:
            gpus = names_of_open_units(state, reason, GPU)
            found.append(_Next(job, reason.worker, gpus, snapshot))
    return found


def _start(
    state: State,
    lanes: Lanes,
    one: _Next,
    history: History,
    expected: Sequence[Expected],
    now: int,
) -> list[Expected]:
    """Return where a job that waits is drawn."""
    runs, start = history.get(one.job.common.name), simulate(one.snapshot, history, now)
    if not runs or start is None:
        return []
    request = dict(state.specs[one.job.spec].request)
    end = start.at + int(median(runs) * _US)
    own = [
        lane
        for lane in lanes.known
        if lane.worker == one.worker and (lane.kind != GPU or lane.unit in one.gpus)
    ]
    placed = _placed(lanes, own, request, expected, start.at)
    return [
        _expected(one.job, lane, amount, (start.at, end)) for lane, amount in placed
    ]


def _placed(
    lanes: Lanes,
    own: Sequence[Lane],
    request: dict[str, int],
    expected: Sequence[Expected],
    start: int,
) -> list[tuple[Lane, int]]:
    """Choose lanes with room at the start, the first to be free, for what is asked."""
    cores = next((lane for lane in own if lane[1:] == (CPU, ALL)), None)
    if cores is not None:
        return [(cores, request.get(CPU, 0))]
    asked = request.get(GPU, 0) or (WHOLE if request.get("vram") else 0)
    free_at = {
        lane: max((one.end for one in expected if one.lane == lane), default=0)
        for lane in own
    }
    room = {
        lane: lanes.known[lane] - sum(_taken(expected, lane, start)) for lane in own
    }
    placed = list[tuple[Lane, int]]()
    for lane in sorted(
        own, key=lambda lane: (room[lane] < min(asked, WHOLE), free_at[lane])
    ):
        if asked <= 0:
            break
        amount = min(asked, lanes.known[lane])
        placed.append((lane, amount))
        asked -= amount
    return placed


def _taken(expected: Sequence[Expected], lane: Lane, at: int) -> Iterator[int]:
    """Yield what is expected to be held of a lane at a time."""
    return (
        one.amount for one in expected if one.lane == lane and one.begin <= at < one.end
    )


def _expected(job: Job, lane: Lane, amount: int, between: tuple[int, int]) -> Expected:
    return Expected(job.id, job.name, job.owner, job.state, lane, amount, *between)
