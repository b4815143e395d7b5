"""How many pilots to ask for, and when to ask a site again that has refused.

A pilot is asked for when a job waits that no worker has room for, up to the pool's
limit: for the first job first, be it for a pilot of its own or for one that takes any.
All pilots that may be alive count against that limit, also those that leave or
of which it is not known whether the engine has them. After a refusal the pool waits,
longer each time; after ten in a row it is paused with the engine's words, and a person
resumes it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from grass.broker.core.pools.pool_memory import PoolMemory, Submit
from grass.model.pools import Pilot, PilotSize, Pool

MOST_REFUSALS = 10
_SECOND_US = 1_000_000
_BACK_OFF_S = (5, 15, 60, 300, 900, 1800, 3600)


class WaitingJob(NamedTuple):
    """A job that waits for a pilot."""

    job: int
    size: PilotSize | None = None
    """What a pilot of its own has; None: it goes to any."""


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
    pilots = memory.pilots_of(pool.name)
    served = {pilot.job for pilot in pilots if pilot.job is not None}
    coming = sum(one.job is None for one in memory.coming(pool.name))
    missing = []
    for one in waiting:
        if one.size is None and coming:
            coming -= 1
        elif one.size is None or one.job not in served:
            missing.append(one)
    room = may_ask(memory, pool, now_us)
    for one, mark in zip(missing[:room], marks, strict=False):
        job = None if one.size is None else one.job
        pilot = Pilot(
            mark=mark, pool=pool.name, job=job, size=one.size, asked_at=now_us
        )
        memory.save(pilot)
        memory.effects.append(Submit(pool.name, mark))


def ask_by_hand(
    memory: PoolMemory, pool: Pool, marks: Sequence[str], now_us: int
) -> None:
    """Ask for a pilot with each of these marks, whether or not a job waits."""
    for mark in marks:
        memory.save(Pilot(mark=mark, pool=pool.name, asked_at=now_us, by_hand=True))
        memory.effects.append(Submit(pool.name, mark))


def retry_at(memory: PoolMemory) -> int | None:
    """Return when the next pool may be asked again."""
    times = (pool.retry_at for pool in memory.pools.values() if not pool.paused)
    return min((at for at in times if at is not None), default=None)


def refused(memory: PoolMemory, pool: Pool, words: str, now_us: int) -> None:
    """Wait before the engine is asked again, or pause the pool."""
    pool.refusals += 1
    pool.paused = pool.paused or pool.refusals >= MOST_REFUSALS
    _wait(memory, pool, words, now_us)


def not_asked(memory: PoolMemory, pool: Pool, words: str, now_us: int) -> None:
    """Wait before an engine is asked again that does not answer; it refused nothing."""
    _wait(memory, pool, words, now_us)


def accepted(memory: PoolMemory, pool: Pool) -> None:
    """Note that the engine took a pilot, or that a worker came."""
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
    memory.save_pool(pool)
    return before


def _wait(memory: PoolMemory, pool: Pool, words: str, now_us: int) -> None:
    step = min(max(pool.refusals - 1, 0), len(_BACK_OFF_S) - 1)
    pool.words = words
    pool.retry_at = now_us + _BACK_OFF_S[step] * _SECOND_US
    memory.save_pool(pool)
