"""Pools beside jobs and workers: whose worker came, who is idle, how many jobs wait.

The worker of a pilot is the one that uses the pilot's token. A pool is known to the
scheduler as a worker that is away and may come: so its units count when a request is
checked, and jobs that fit it can be counted.
"""

import hashlib

from grass.broker.core.access import tokens
from grass.broker.core.calls import ForgetWorker, RevokeToken
from grass.broker.core.pools import asking, binding, engine_answers, leaving
from grass.broker.core.pools.asking import WaitingJob
from grass.broker.core.pools.pool_memory import (
    DrainWorker,
    RefusedJob,
    placeholder,
)
from grass.broker.core.pools.sizing import (
    REPORT_S,
    has_own_pilot,
    longest_s,
    most_units,
    own_size,
    time_limit_s,
    unlimited_s,
)
from grass.broker.core.state import SCHEDULER, State
from grass.broker.core.workers import forget, units
from grass.model.pools import MARK_DIGITS, Pilot, PilotStage, Pool
from grass.model.worker import Worker
from grass.scheduler.pilot_terms import PilotTerms

_FRACTIONS = 8
"""Into how many parts a GPU is usually shared."""
_SECOND_US = 1_000_000
TOKEN_REST_US = 600 * _SECOND_US
"""How long a pilot's token is valid after the engine has ended the pilot."""
_TOKEN = "pilot-"  # noqa: S105 -- the beginning of its name


def token_name(mark: str) -> str:
    """Return the name of the token that a pilot's worker shows."""
    return _TOKEN + mark


def publish(state: State) -> None:
    """Tell the scheduler which workers may come."""
    memory = state.pools
    for pool in memory.pools.values():
        if pool.removing:
            state.scheduler.forget_worker(placeholder(pool.name))
        else:
            labels = frozenset({pool.label})
            name = placeholder(pool.name)
            state.scheduler.remember_worker(name, most_units(pool), labels)
            most_s = longest_s(pool)
            terms = PilotTerms() if most_s is None else PilotTerms(longest_s=most_s)
            state.scheduler.set_terms(name, terms)
    for name in memory.removed_pools:
        state.scheduler.forget_worker(placeholder(name))


def restarted(state: State) -> None:
    """Begin with what the store had."""
    engine_answers.restarted(state.pools, state.now_us)
    named = (one.removeprefix(_TOKEN) for one in state.tokens if one.startswith(_TOKEN))
    state.pools.left = {mark for mark in named if mark not in state.pools.pilots}
    publish(state)


def follow(state: State, now_s: float) -> None:
    """Note which workers of pilots came, left, or have jobs; let idle ones leave."""
    memory = state.pools
    busy = with_jobs(state)
    for pilot in list(memory.pilots.values()):
        _follow(state, pilot, busy, now_s)
        if pilot.worker in memory.taken_back and pilot.stage is not PilotStage.LEAVING:
            # Before anything else is placed there. If its engine ends it indeed, it
            # ends its other jobs, too; a job may also have ended in this way by itself.
            has_jobs = pilot.worker in busy
            leaving.leave_after_jobs(memory, pilot, has_jobs=has_jobs)
    memory.taken_back.clear()
    binding.follow(state)
    leaving.advance(memory, state.now_us)
    for mark in list(memory.left):
        _forget_worker(state, mark, busy)
    _carry_out_drains(state)


def with_jobs(state: State) -> set[str]:
    """Return the workers that have jobs."""
    return {attempt.worker for attempt in state.attempts.values()}


def _follow(state: State, pilot: Pilot, busy: set[str], now_s: float) -> None:
    worker = pilot.worker or _worker_of(state, pilot)
    known = None if worker is None else state.workers.get(worker)
    if known is None:
        return
    memory, now_us = state.pools, state.now_us
    if known.connected and not pilot.connected:
        _set_terms(state, pilot, known, now_s)
        has_jobs = known.id in busy
        is_needed = has_jobs or _is_needed(state, pilot, known.id)
        arrival = leaving.Arrival(is_needed, has_jobs)
        leaving.came(memory, pilot, known.id, now_us, arrival)
    elif pilot.connected and not known.connected:
        leaving.gone(memory, known.id)
    if pilot.connected and known.id in busy:
        if pilot.idle_since is not None:
            leaving.busy(memory, known.id)
    elif pilot.connected:
        leaving.idle(memory, known.id, now_us)


def _set_terms(state: State, pilot: Pilot, worker: Worker, now_s: float) -> None:
    """Tell the scheduler until when a worker that connected is there, and for whom."""
    pool = state.pools.pools[pilot.pool]
    limit_us = int(time_limit_s(pool, pilot) * _SECOND_US)
    pilot.ends_at = worker.ends_at or (pilot.came_at or state.now_us) + limit_us
    left_s = (pilot.ends_at - state.now_us) / _SECOND_US - REPORT_S
    terms = PilotTerms(
        ends_at=now_s + left_s,
        unlimited_s=unlimited_s(pool),
        bound=pilot.job is not None,
    )
    state.scheduler.set_terms(worker.id, terms)
    _limit_token(state, pilot)


def _limit_token(state: State, pilot: Pilot) -> None:
    """Let the token of a pilot end soon after the pilot."""
    token = state.tokens.get(token_name(pilot.mark))
    if token is not None and pilot.ends_at is not None:
        token.expires_at = pilot.ends_at + TOKEN_REST_US
        state.batch.changes.tokens[token.name] = token


def _is_needed(state: State, pilot: Pilot, worker: str) -> bool:
    """Return whether a job waits for a worker that came."""
    if pilot.job is not None:
        return state.scheduler.waits(pilot.job)
    return state.scheduler.waiting_for(worker) > 0


def _forget_worker(state: State, mark: str, busy: set[str]) -> None:
    """Forget the worker and the token of a pilot that is over, once it has no job.

    A worker that is still connected, or whose lease has not run out, is kept. The
    engine may have lost it: it gets no job any more, and its time ends it.
    """
    token = state.tokens.get(token_name(mark))
    worker = None if token is None else token.worker
    known = None if worker is None else state.workers.get(worker)
    if known is not None and (known.connected or known.id in busy):
        state.pools.effects.append(DrainWorker(known.id))
        return
    state.pools.left.discard(mark)
    if known is not None:
        forget.forget(state, ForgetWorker(SCHEDULER, known.id))
    if token_name(mark) in state.tokens:
        tokens.revoke(state, RevokeToken(SCHEDULER, token_name(mark)))


def ask(state: State) -> None:
    """Ask for pilots for the jobs that still wait after all placements."""
    memory = state.pools
    binding.note_starts(state)
    for pool in list(memory.pools.values()):
        if asking.may_ask(memory, pool, state.now_us):
            _ask(state, pool)
        elif not pool.paused and not pool.removing:
            _make_room(state, pool)
    if memory.changed:
        state.batch.urgent = True


def ask_by_hand(state: State, pool: Pool, count: int) -> None:
    """Ask for this many pilots because a person wants them."""
    marks = [_mark(state, pool, number) for number in range(count)]
    asking.ask_by_hand(state.pools, pool, marks, state.now_us)
    pool.made += count
    state.pools.save_pool(pool)


def _ask(state: State, pool: Pool) -> None:
    memory = state.pools
    room = asking.may_ask(memory, pool, state.now_us)
    waiting = _waiting(state, pool, room)
    if not waiting:
        return
    marks = [_mark(state, pool, number) for number in range(room)]
    before = len(memory.pilots)
    asking.ask(memory, pool, waiting, marks, state.now_us)
    if len(memory.pilots) != before:
        pool.made += room
        memory.save_pool(pool)


def _make_room(state: State, pool: Pool) -> None:
    """Let idle pilots leave that have too little time for a job that waits."""
    memory = state.pools
    if state.scheduler.waiting_for(placeholder(pool.name)):
        busy = with_jobs(state)
        pilots = memory.pilots_of(pool.name)
        idle = {one.mark for one in pilots if one.connected} - {
            one.mark for one in pilots if one.worker in busy
        }
        leaving.make_room(memory, pool, idle, state.now_us)


def next_times(state: State) -> list[int]:
    """Return when there is something to do for pools."""
    times = [leaving.wake_at(state.pools), asking.retry_at(state.pools)]
    times += leaving.half_time_at(state.pools)
    return [at for at in times if at is not None and at > state.now_us]


def _waiting(state: State, pool: Pool, room: int) -> list[WaitingJob]:
    """Return the first jobs that wait, those last that the engine has refused.

    Of these some wait longer before a pilot is asked for again.
    """
    memory, waits = state.pools, state.scheduler.waits
    refused = {job: one for job, one in memory.refused_jobs.items() if waits(job)}
    memory.refused_jobs = refused
    late = {job for job, one in refused.items() if not _is_due(one, state.now_us)}
    most = (room + len(memory.pilots_of(pool.name))) * _sharing(pool) + len(late)
    jobs = state.scheduler.first_waiting_for(placeholder(pool.name), most)
    due = sorted((job for job in jobs if job not in late), key=refused.__contains__)
    return [_waiting_job(state, pool, job) for job in due]


def _is_due(refused: RefusedJob, now_us: int) -> bool:
    return refused.retry_at is not None and now_us >= refused.retry_at


def _sharing(pool: Pool) -> int:
    """Return how many jobs of a pilot are looked at; there may be smaller ones."""
    return max(1, pool.cpus, pool.gpus * _FRACTIONS)


def _waiting_job(state: State, pool: Pool, job: int) -> WaitingJob:
    spec = state.specs[state.jobs[job].spec]
    if has_own_pilot(pool, spec):
        return WaitingJob(job, own_size(pool, spec))
    return WaitingJob(job, request=spec.request)


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
    return hashlib.sha256(text.encode()).hexdigest()[:MARK_DIGITS]
