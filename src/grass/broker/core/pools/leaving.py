"""Workers of pilots: they come, have jobs or none, and leave.

A worker leaves when it had no job for the pool's idle time, at once when it comes and
nobody waits for it, and with its pool. Shortly before its time is up it gets no job any
more. One that leaves is drained in the same step, so that no job is placed on it, and
only then the engine is asked to end it.
"""

from collections.abc import Collection
from typing import NamedTuple

from grass.broker.core.pools import asking
from grass.broker.core.pools.engine_answers import cancel_leaving
from grass.broker.core.pools.pool_memory import DrainWorker, PoolMemory
from grass.broker.core.pools.sizing import time_limit_s
from grass.model.pools import Pilot, PilotStage, Pool

_SECOND_US = 1_000_000
SPARE_S = 60.0
"""How long before its time is up a worker gets no more jobs."""


class Arrival(NamedTuple):
    """What a worker finds when it comes, or is back."""

    is_needed: bool
    """A job waits for it."""
    has_jobs: bool = False
    """It has some already."""


def came(
    memory: PoolMemory, pilot: Pilot, worker: str, now_us: int, terms: Arrival
) -> None:
    """Note that the worker of a pilot is connected; one that is back keeps its jobs."""
    is_first = pilot.came_at is None
    pilot.worker, pilot.connected = worker, True
    pilot.idle_since = None if terms.has_jobs else now_us
    pilot.unsure_since = None
    pilot.came_at = now_us if is_first else pilot.came_at
    if pilot.stage is not PilotStage.LEAVING:
        pilot.stage = PilotStage.WORKING
    memory.save(pilot)
    pool = _pool(memory, pilot)
    if is_first:
        asking.worker_came(memory, pool)
    is_late = is_first and not terms.is_needed and not pilot.by_hand
    if is_late or pilot.stage is PilotStage.LEAVING:
        leave(memory, pilot)
    elif pool.removing or pilot.drained:
        leave_after_jobs(memory, pilot, has_jobs=terms.has_jobs)


def gone(memory: PoolMemory, worker: str) -> None:
    """Note that a worker is not connected; its lease ends what it runs."""
    for pilot in _of_worker(memory, worker):
        pilot.connected, pilot.idle_since = False, None
        memory.save(pilot)


def busy(memory: PoolMemory, worker: str) -> None:
    """Note that a worker was given a job."""
    for pilot in _of_worker(memory, worker):
        pilot.idle_since = None
        memory.save(pilot)


def idle(memory: PoolMemory, worker: str, now_us: int) -> None:
    """Note that a worker has no job any more."""
    for pilot in _of_worker(memory, worker):
        if pilot.connected and pilot.idle_since is None:
            pilot.idle_since = now_us
            memory.save(pilot)
            if pilot.drained or _is_out_of_time(memory, pilot, now_us):
                leave(memory, pilot)


def advance(memory: PoolMemory, now_us: int) -> None:
    """Let those leave that were idle for long, and drain those without time."""
    for pilot in list(memory.pilots.values()):
        if not pilot.connected or pilot.stage is PilotStage.LEAVING:
            continue
        if pilot.idle_since is None:
            late = pilot.job is None and _is_out_of_time(memory, pilot, now_us)
            if late and not pilot.drained:
                _drain(memory, pilot)
        elif now_us >= _idle_until(memory, pilot) or _is_out_of_time(
            memory, pilot, now_us
        ):
            leave(memory, pilot)


def wake_at(memory: PoolMemory) -> int | None:
    """Return when `advance` has something to do."""
    staying = [
        pilot
        for pilot in memory.pilots.values()
        if pilot.connected and pilot.stage is not PilotStage.LEAVING
    ]
    times = [_idle_until(memory, one) for one in staying if one.idle_since is not None]
    times += [_out_of_time_at(memory, one) for one in staying if _has_a_turn(one)]
    return min(times, default=None)


def make_room(memory: PoolMemory, pool: Pool, idle: set[str], now_us: int) -> None:
    """Let pilots leave that have no time for jobs which wait, so that others come.

    `idle` are the marks of those that have no job after all jobs were placed.
    """
    half_us = int(pool.time_limit_s / 2 * _SECOND_US)
    for pilot in memory.pilots_of(pool.name):
        stays = pilot.stage is PilotStage.WORKING and pilot.job is None
        if stays and pilot.mark in idle and now_us + half_us > _ends_at(memory, pilot):
            leave(memory, pilot)


def half_time_at(memory: PoolMemory) -> list[int]:
    """Return when pilots have no time any more for jobs without a limit."""
    return [
        _ends_at(memory, one) - int(_pool(memory, one).time_limit_s / 2 * _SECOND_US)
        for one in memory.pilots.values()
        if one.connected and one.job is None and one.stage is PilotStage.WORKING
    ]


def remove(memory: PoolMemory, pool: Pool, with_jobs: Collection[str]) -> None:
    """Have all pilots of a pool leave, those with jobs when these have ended.

    `with_jobs` are the workers that have jobs, also if they are not connected now.
    """
    pool.removing = True
    memory.save_pool(pool)
    for pilot in memory.pilots_of(pool.name):
        leave_after_jobs(memory, pilot, has_jobs=pilot.worker in with_jobs)
    memory.drop_if_left(pool)


def leave_after_jobs(memory: PoolMemory, pilot: Pilot, *, has_jobs: bool) -> None:
    """Give a pilot no job any more, and have it leave once those it has are over."""
    if has_jobs:
        _drain(memory, pilot)
    else:
        leave(memory, pilot)


def leave(memory: PoolMemory, pilot: Pilot) -> None:
    """Give a pilot no job any more, and have the engine end it."""
    pilot.stage = PilotStage.LEAVING
    _drain(memory, pilot)
    cancel_leaving(memory, [pilot])


def _drain(memory: PoolMemory, pilot: Pilot) -> None:
    pilot.drained = True
    memory.save(pilot)
    if pilot.worker is not None:
        memory.effects.append(DrainWorker(pilot.worker))


def _of_worker(memory: PoolMemory, worker: str) -> list[Pilot]:
    return [one for one in memory.pilots.values() if one.worker == worker]


def _pool(memory: PoolMemory, pilot: Pilot) -> Pool:
    return memory.pools[pilot.pool]


def _idle_until(memory: PoolMemory, pilot: Pilot) -> int:
    assert pilot.idle_since is not None
    return pilot.idle_since + int(_pool(memory, pilot).idle_s * _SECOND_US)


def _ends_at(memory: PoolMemory, pilot: Pilot) -> int:
    if pilot.ends_at is not None:
        return pilot.ends_at
    assert pilot.came_at is not None
    limit_s = time_limit_s(_pool(memory, pilot), pilot)
    return pilot.came_at + int(limit_s * _SECOND_US)


def _out_of_time_at(memory: PoolMemory, pilot: Pilot) -> int:
    spare_s = min(SPARE_S, time_limit_s(_pool(memory, pilot), pilot) / 2)
    return _ends_at(memory, pilot) - int(spare_s * _SECOND_US)


def _has_a_turn(pilot: Pilot) -> bool:
    """Return whether a pilot is still drained when its time is nearly up."""
    return pilot.job is None and not pilot.drained


def _is_out_of_time(memory: PoolMemory, pilot: Pilot, now_us: int) -> bool:
    return now_us >= _out_of_time_at(memory, pilot)
