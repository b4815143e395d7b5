"""How many pilots to ask for, and when to ask a site again that has refused.

A pilot is asked for when a job waits that no worker has room for, up to the pool's
limit. All pilots that may be alive count against that limit, also those that leave or
of which it is not known whether the engine has them. After a refusal the pool waits,
longer each time; after ten in a row it is paused with the engine's words, and a person
resumes it.
"""

from collections.abc import Sequence

from grass.broker.core.pools.pool_memory import PoolMemory, Submit
from grass.model.pools import Pilot, Pool

MOST_REFUSALS = 10
_SECOND_US = 1_000_000
_BACK_OFF_S = (5, 15, 60, 300, 900, 1800, 3600)


def ask(
    memory: PoolMemory, pool: Pool, waiting: int, marks: Sequence[str], now_us: int
) -> None:
    """Ask for as many pilots as `waiting` jobs need beside those that are coming.

    `marks` are random and new; as many pilots at most are asked for.
    """
    if pool.paused or pool.removing or now_us < (pool.retry_at or now_us):
        return
    room = pool.max_workers - len(memory.pilots_of(pool.name))
    wanted = min(room, waiting - memory.coming(pool.name))
    for mark in marks[: max(0, wanted)]:
        memory.save(Pilot(mark=mark, pool=pool.name, asked_at=now_us))
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
