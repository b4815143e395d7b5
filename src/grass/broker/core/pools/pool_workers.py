"""Pools beside jobs and workers: whose worker came, who is idle, how many jobs wait.

The worker of a pilot is the one that uses the pilot's token. A pool is known to the
scheduler as a worker that is away and may come: so its units count when a request is
checked, and jobs that fit it can be counted.
"""

import hashlib

from grass.broker.core.access import tokens
from grass.broker.core.calls import ForgetWorker, RevokeToken
from grass.broker.core.pools import asking, engine_answers, leaving
from grass.broker.core.pools.pool_memory import DrainWorker
from grass.broker.core.state import SCHEDULER, State
from grass.broker.core.workers import forget, units
from grass.model.pools import Pilot, Pool

_MARK_DIGITS = 24
_TOKEN = "pilot-"  # noqa: S105 -- the beginning of its name


def token_name(mark: str) -> str:
    """Return the name of the token that a pilot's worker shows."""
    return _TOKEN + mark


def publish(state: State) -> None:
    """Tell the scheduler which workers may come."""
    memory = state.pools
    for pool in memory.pools.values():
        if pool.removing:
            state.scheduler.forget_worker(_placeholder(pool.name))
        else:
            labels = frozenset({pool.label})
            name = _placeholder(pool.name)
            state.scheduler.remember_worker(name, pool.capacity(), labels)
    for name in memory.removed_pools:
        state.scheduler.forget_worker(_placeholder(name))


def restarted(state: State) -> None:
    """Begin with what the store had."""
    engine_answers.restarted(state.pools, state.now_us)
    named = (one.removeprefix(_TOKEN) for one in state.tokens if one.startswith(_TOKEN))
    state.pools.left = {mark for mark in named if mark not in state.pools.pilots}
    publish(state)


def follow(state: State) -> None:
    """Note which workers of pilots came, left, or have jobs; let idle ones leave."""
    memory = state.pools
    with_jobs = {attempt.worker for attempt in state.attempts.values()}
    for pilot in list(memory.pilots.values()):
        _follow(state, pilot, with_jobs)
    leaving.advance(memory, state.now_us)
    _carry_out_drains(state)
    for mark in list(memory.left):
        _forget_worker(state, mark, with_jobs)


def _follow(state: State, pilot: Pilot, with_jobs: set[str]) -> None:
    worker = pilot.worker or _worker_of(state, pilot)
    known = None if worker is None else state.workers.get(worker)
    if known is None:
        return
    memory, now_us = state.pools, state.now_us
    if known.connected and not pilot.connected:
        waiting = _waiting(state, memory.pools[pilot.pool])
        needed = known.id in with_jobs or bool(waiting)
        leaving.came(memory, pilot.mark, known.id, now_us, needed=needed)
    elif pilot.connected and not known.connected:
        leaving.gone(memory, known.id)
    if pilot.connected and known.id in with_jobs:
        if pilot.idle_since is not None:
            leaving.busy(memory, known.id)
    elif pilot.connected:
        leaving.idle(memory, known.id, now_us)


def _forget_worker(state: State, mark: str, with_jobs: set[str]) -> None:
    """Forget the worker and the token of a pilot that is over, once it has no job.

    A worker that is still connected, or whose lease has not run out, is kept.
    """
    token = state.tokens.get(token_name(mark))
    worker = None if token is None else token.worker
    known = None if worker is None else state.workers.get(worker)
    if known is not None and (known.connected or known.id in with_jobs):
        return
    state.pools.left.discard(mark)
    if known is not None:
        forget.forget(state, ForgetWorker(SCHEDULER, known.id))
    if token_name(mark) in state.tokens:
        tokens.revoke(state, RevokeToken(SCHEDULER, token_name(mark)))


def ask(state: State) -> None:
    """Ask for pilots for the jobs that still wait after all placements."""
    memory = state.pools
    for pool in list(memory.pools.values()):
        room = pool.max_workers - len(memory.pilots_of(pool.name))
        if room > 0 and not pool.paused and not pool.removing:
            marks = [_mark(state, pool, number) for number in range(room)]
            before = len(memory.pilots)
            asking.ask(memory, pool, _waiting(state, pool), marks, state.now_us)
            if len(memory.pilots) != before:
                pool.made += room
                memory.save_pool(pool)
    if memory.changed:
        state.batch.urgent = True


def ask_by_hand(state: State, pool: Pool, count: int) -> None:
    """Ask for so many pilots because a person wants them."""
    marks = [_mark(state, pool, number) for number in range(count)]
    asking.ask_by_hand(state.pools, pool, marks, state.now_us)
    pool.made += count
    state.pools.save_pool(pool)


def next_times(state: State) -> list[int]:
    """Return when there is something to do for pools."""
    times = (leaving.wake_at(state.pools), asking.retry_at(state.pools))
    return [at for at in times if at is not None and at > state.now_us]


def _waiting(state: State, pool: Pool) -> int:
    return state.scheduler.waiting_for(_placeholder(pool.name))


def _worker_of(state: State, pilot: Pilot) -> str | None:
    token = state.tokens.get(token_name(pilot.mark))
    return None if token is None else token.worker


def _carry_out_drains(state: State) -> None:
    """Drain workers before the scheduler places anything on them."""
    memory = state.pools
    drains = [one for one in memory.effects if isinstance(one, DrainWorker)]
    for drain in drains:
        worker = state.workers.get(drain.worker)
        if worker is not None and not worker.draining:
            worker.draining, worker.draining_reason = True, "its pilot leaves"
            state.batch.changes.workers[worker.id] = worker
            units.publish(state, worker)
    memory.effects = [one for one in memory.effects if one not in drains]


def _mark(state: State, pool: Pool, number: int) -> str:
    """Make a mark that no other pilot has, also after a backup was restored."""
    text = f"{state.cluster} {pool.seed} {state.now_us} {pool.made + number}"
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_DIGITS]


def _placeholder(pool: str) -> str:
    """Return the name of the worker that may come; no worker's id looks like it."""
    return f"pool {pool}"
