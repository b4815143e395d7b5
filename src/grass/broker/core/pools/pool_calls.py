"""What calls about pools do."""

from grass.broker.core.calls import Done
from grass.broker.core.jobs.enqueue import checked_call
from grass.broker.core.pools import asking, engine_answers, leaving, pool_workers
from grass.broker.core.pools.pool_memory import Silence
from grass.broker.core.pools.requests import (
    AddPool,
    AskForPilots,
    LeavePilot,
    PilotRefused,
    PilotSizes,
    PilotsListed,
    PilotsNotListed,
    PilotSubmitted,
    RemovePool,
    SetPoolPaused,
)
from grass.broker.core.pools.sizing import has_own_pilot, own_size
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.errors import NotFound, Refused
from grass.model.journal import EventKind
from grass.model.pools import Pilot, PilotSize, Pool, check_numbers
from grass.model.resources import check_name

MOST_CHECKED = 10
"""For how many different jobs of a call an engine is asked first."""


def add(state: State, call: AddPool) -> Done:
    """Add a pool; its declared units count as those of a worker that may come."""
    pool = call.pool
    check_name(pool.name, "pool")
    if pool.name in state.pools.pools:
        raise Refused(
            f"there is a pool `{pool.name}` already",
            f"`grass pool remove {pool.name}`, or choose another name",
        )
    check_numbers(pool)
    state.pools.save_pool(pool)
    pool_workers.publish(state)
    state.note_by(call.actor, "pool-added", name=pool.name, engine=pool.engine)
    return Done()


def set_paused(state: State, call: SetPoolPaused) -> Done:
    """Ask for no more pilots, or again."""
    pool = find(state, call.name)
    _refuse_removed(pool)
    change = asking.pause if call.paused else asking.resume
    changed = change(state.pools, pool)
    event: EventKind = "pool-paused" if call.paused else "pool-resumed"
    state.note_by(call.actor, event, name=pool.name)
    return Done(changed=changed)


def remove(state: State, call: RemovePool) -> Done:
    """Have its pilots leave, and forget it with the last of them."""
    pool = find(state, call.name)
    leaving.remove(state.pools, pool, pool_workers.with_jobs(state))
    pool_workers.publish(state)
    state.note_by(call.actor, "pool-removed", name=pool.name)
    waiting = _waiting(state, pool)
    if not waiting:
        return Done()
    jobs = "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
    words = (
        f"{jobs} for pool `{pool.name}` alone, and will wait in the queue: `grass edit"
        " ID --pool none` lets one run anywhere, `grass cancel ID` takes it out"
    )
    return Done(warnings=[words])


def _waiting(state: State, pool: Pool) -> int:
    """Count the jobs that are for a pool alone and have not started."""
    return sum(
        state.specs[job.spec].pool == pool.name and job.id not in state.attempts
        for job in state.jobs.values()
    )


def ask_by_hand(state: State, call: AskForPilots) -> Done:
    """Ask for workers now; a pool that is paused is asked all the same."""
    pool = find(state, call.name)
    _refuse_removed(pool)
    there = len(state.pools.pilots_of(pool.name))
    if there + call.count > pool.max_workers:
        raise Refused(
            f"pool `{pool.name}` may have {pool.max_workers} workers, and {there} "
            "of them are there or on their way",
            "ask for fewer",
        )
    pool_workers.ask_by_hand(state, pool, call.count)
    state.batch.urgent = True
    state.note_by(call.actor, "workers-asked", name=pool.name, count=call.count)
    return Done()


def leave(state: State, call: LeavePilot) -> Done:
    """Have a pilot leave once its jobs have ended."""
    pilot = _pilot(state, call.name)
    has_jobs = pilot.worker in pool_workers.with_jobs(state)
    leaving.leave_after_jobs(state.pools, pilot, has_jobs=has_jobs)
    state.batch.urgent = True
    state.note_by(call.actor, "worker-sent-away", name=call.name, pool=pilot.pool)
    return Done()


def _pilot(state: State, name: str) -> Pilot:
    for pilot in state.pools.pilots.values():
        names = [pilot.mark, pilot.engine_id]
        if pilot.worker is not None:
            names += [pilot.worker, registry.name_of(state, pilot.worker)]
        if name in names:
            return pilot
    raise NotFound(f"no pool has a worker `{name}`", "`grass up ls` lists them")


def find(state: State, name: str) -> Pool:
    """Return a pool by its name."""
    pool = state.pools.pools.get(name)
    if pool is None:
        known = ", ".join(sorted(state.pools.pools))
        raise NotFound(f"there is no pool `{name}`", f"pools: {known or 'none yet'}")
    return pool


def _refuse_removed(pool: Pool) -> None:
    if pool.removing:
        raise Refused(f"pool `{pool.name}` is being removed")


def sizes(state: State, call: PilotSizes) -> list[tuple[str, PilotSize]]:
    """Return what jobs of named pools need of pilots of their own, each once."""
    prepared, _ = checked_call(state, call.enqueue)
    found: dict[tuple[str, PilotSize], None] = {}
    for one in prepared.values():
        if one.spec.pool is not None:
            pool = state.pools.find(one.spec.pool)
            if has_own_pilot(pool, one.spec):
                found[pool.name, own_size(pool, one.spec)] = None
    return list(found)[:MOST_CHECKED]


def submitted(state: State, call: PilotSubmitted) -> None:
    """Note the id of a pilot that an engine has taken."""
    engine_answers.submitted(state.pools, call.pool, call.mark, call.engine_id)
    state.batch.urgent = True


def refused(state: State, call: PilotRefused) -> None:
    """Back off; a pilot of which the engine said nothing is kept."""
    pilot = state.pools.pilots.get(call.mark)
    pool = None if pilot is None else state.pools.pools[pilot.pool]
    was_paused = pool is not None and pool.paused
    step = engine_answers.refused if call.answered else engine_answers.not_answered
    step(state.pools, call.mark, call.words, state.now_us)
    if pool is not None and pool.paused and not was_paused:
        state.note("pool-paused", name=pool.name, reason=pool.words)
    state.batch.urgent = True


def not_listed(state: State, call: PilotsNotListed) -> None:
    """Note that an engine does not answer."""
    if not state.pools.pilots_of(call.pool):
        # It is not asked again, so nothing would end the silence.
        return
    again_at = state.now_us + int(call.again_s * 1_000_000)
    state.pools.silent[call.pool] = Silence(call.words, again_at)


def listed(state: State, call: PilotsListed) -> None:
    """Take in what an engine lists."""
    engine_answers.listed(state.pools, call.reports, state.now_us)
    state.batch.urgent = state.batch.urgent or state.pools.changed
