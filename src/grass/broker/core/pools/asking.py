"""How many pilots to ask for, and when to ask a site again that has refused.

A pilot is asked for when a job waits that no worker has room for, up to the pool's
limit: for the first job first, be it for a pilot of its own or for one that takes any.
All pilots that may be alive count against that limit, also those that leave or
of which it is not known whether the engine has them. Short jobs share pilots, so one is
asked for where those that come have no units left for a job.

After a refusal the pool waits, longer each time; after ten in a row it is paused with
the engine's words, and a person resumes it. So it is with pilots that end before their
worker comes, which the engine takes again and again. A refusal of a pilot for one job
alone delays the pool the first time only, and that job later: others may be accepted.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from grass.broker.core.pools.pool_memory import PoolMemory, RefusedJob, Submit
from grass.model.pools import Pilot, PilotSize, Pool
from grass.model.resources import Request

MOST_REFUSALS = 10
_SECOND_US = 1_000_000
_BACK_OFF_S = (5, 15, 60, 300, 900, 1800, 3600)


class WaitingJob(NamedTuple):
    """A job that waits for a pilot."""

    job: int
    size: PilotSize | None = None
    """What a pilot of its own has; None: it goes to any."""
    request: Request = ()
    """What it takes of a pilot that it shares."""


def may_ask(memory: PoolMemory, pool: Pool, now_us: int) -> int:
    """Return how many pilots of a pool may be asked for now."""
    if pool.paused or pool.removing or now_us < (pool.retry_at or now_us):
        return 0
    return max(0, pool.max_workers - len(memory.pilots_of(pool.name)))


def ask(
    memory: PoolMemory,
    pool: Pool,
    waiting: Iterable[WaitingJob],
    marks: Sequence[str],
    now_us: int,
) -> None:
    """Ask for the pilots that jobs need beside those that are there or coming.

    The jobs are in their order. `marks` are random and new.
    """
    missing = _missing(memory, pool, waiting)
    room = may_ask(memory, pool, now_us)
    for one, mark in zip(missing[:room], marks, strict=False):
        job = None if one.size is None else one.job
        pilot = Pilot(
            mark=mark, pool=pool.name, job=job, size=one.size, asked_at=now_us
        )
        memory.save(pilot)
        memory.effects.append(Submit(pool.name, mark))


def _missing(
    memory: PoolMemory, pool: Pool, waiting: Iterable[WaitingJob]
) -> list[WaitingJob]:
    """Return the jobs for which a pilot is to be asked."""
    pilots = memory.pilots_of(pool.name)
    served = {pilot.job for pilot in pilots if pilot.job is not None}
    coming = [one for one in memory.coming(pool.name) if one.job is None]
    shared = [_units(pool) for _ in coming]
    missing = []
    for one in waiting:
        if one.size is not None:
            if one.job not in served:
                missing.append(one)
        elif not any(_takes(units, one.request) for units in shared):
            missing.append(one)
            shared.append(_units(pool))
            _takes(shared[-1], one.request)
    return missing


def _units(pool: Pool) -> dict[str, int]:
    """Return how much of each kind a pilot has, as far as the pool declares it."""
    return {kind: sum(units.values()) for kind, units in pool.capacity().items()}


def _takes(free: dict[str, int], request: Request) -> bool:
    """Take what a job asks for from a pilot's units, if so much is free."""
    asked = {kind: amount for kind, amount in request if kind in free}
    if any(amount > free[kind] for kind, amount in asked.items()):
        return False
    for kind, amount in asked.items():
        free[kind] -= amount
    return True


def ask_by_hand(
    memory: PoolMemory, pool: Pool, marks: Sequence[str], now_us: int
) -> None:
    """Ask for a pilot with each of these marks, whether or not a job waits."""
    for mark in marks:
        memory.save(Pilot(mark=mark, pool=pool.name, asked_at=now_us, by_hand=True))
        memory.effects.append(Submit(pool.name, mark))


def retry_at(memory: PoolMemory) -> int | None:
    """Return when the next pool may be asked again."""
    times = [pool.retry_at for pool in memory.pools.values() if not pool.paused]
    times += [one.retry_at for one in memory.refused_jobs.values()]
    return min((at for at in times if at is not None), default=None)


def job_refused(
    memory: PoolMemory, pool: Pool, job: int, words: str, now_us: int
) -> None:
    """Wait before a pilot for this job is asked for again."""
    times = memory.refused_jobs[job].times + 1 if job in memory.refused_jobs else 1
    again_at = None if times >= MOST_REFUSALS else now_us + _back_off_us(times)
    memory.refused_jobs[job] = RefusedJob(times, again_at, pool.name, words)
    if times == 1:
        refused(memory, pool, words, now_us)
    else:
        pool.words = words
        memory.save_pool(pool)


def refused(memory: PoolMemory, pool: Pool, words: str, now_us: int) -> None:
    """Wait before the engine is asked again, or pause the pool."""
    pool.refusals += 1
    pool.paused = pool.paused or pool.refusals >= MOST_REFUSALS
    _wait(memory, pool, words, now_us)


def start_failed(memory: PoolMemory, pool: Pool, words: str, now_us: int) -> None:
    """Wait after a pilot that was of no use; those that were asked with it count once.

    The engine takes such pilots, so that it accepts the next one means nothing.
    """
    if now_us >= (pool.retry_at or now_us):
        pool.failed_starts += 1
    pool.paused = pool.paused or pool.failed_starts >= MOST_REFUSALS
    _wait(memory, pool, words, now_us)


def not_asked(memory: PoolMemory, pool: Pool, words: str, now_us: int) -> None:
    """Wait before an engine is asked again that does not answer; it refused nothing."""
    _wait(memory, pool, words, now_us)


def accepted(memory: PoolMemory, pool: Pool) -> None:
    """Note that the engine took a pilot."""
    if not pool.failed_starts:
        _forget_refusals(memory, pool)
    elif pool.refusals:
        pool.refusals = 0
        memory.save_pool(pool)


def worker_came(memory: PoolMemory, pool: Pool) -> None:
    """Note that the worker of a pilot came."""
    pool.failed_starts, before = 0, pool.failed_starts
    if before:
        _forget_refusals(memory, pool)


def _forget_refusals(memory: PoolMemory, pool: Pool) -> None:
    if pool.words or pool.refusals or pool.retry_at is not None:
        pool.words, pool.refusals, pool.retry_at = "", 0, None
        memory.save_pool(pool)


def pause(memory: PoolMemory, pool: Pool) -> bool:
    """Ask for nothing more; return whether that is new."""
    before, pool.paused = pool.paused, True
    memory.save_pool(pool)
    return not before


def resume(memory: PoolMemory, pool: Pool) -> bool:
    """Ask again, with all refusals forgotten; return whether that is new."""
    before, pool.paused = pool.paused, False
    pool.words, pool.refusals, pool.retry_at = "", 0, None
    pool.failed_starts = 0
    memory.refused_jobs.clear()
    memory.save_pool(pool)
    return before


def _wait(memory: PoolMemory, pool: Pool, words: str, now_us: int) -> None:
    pool.words = words
    times = max(pool.refusals, pool.failed_starts)
    pool.retry_at = now_us + _back_off_us(times)
    memory.save_pool(pool)


def _back_off_us(times: int) -> int:
    step = min(max(times - 1, 0), len(_BACK_OFF_S) - 1)
    return _BACK_OFF_S[step] * _SECOND_US
