"""Pools and their pilots as documents."""

from grass.broker.core.pools.pool_memory import PoolMemory
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.model.pools import Pilot, Pool
from grass.model.times import rfc3339
from grass.queries.documents import PilotReply, PoolReply
from grass.queries.pool_waits import pilot_words, silence_words


def pool_documents(state: State) -> list[PoolReply]:
    """Return all pools, with their pilots in the words of their engines."""
    return [_pool(state, one) for one in state.pools.pools.values()]


def _pool(state: State, pool: Pool) -> PoolReply:
    memory: PoolMemory = state.pools
    return PoolReply(
        name=pool.name,
        engine=pool.engine,
        max_workers=pool.max_workers,
        idle_s=pool.idle_s,
        time_limit_s=pool.time_limit_s,
        lease_s=pool.lease_s,
        mode=pool.mode.value,
        environment=pool.environment.value,
        cpus=pool.cpus,
        gpus=pool.gpus,
        memory_mib=pool.memory_mib,
        options=list(pool.options),
        paused=pool.paused,
        source=pool.source,
        removing=pool.removing,
        refusals=pool.refusals,
        words=silence_words(state, pool) or pool.words,
        retry_at=rfc3339(pool.retry_at),
        pilots=[pilot_document(state, one) for one in memory.pilots_of(pool.name)],
    )


def pilot_document(state: State, pilot: Pilot) -> PilotReply:
    """Return a pilot."""
    report, worker = pilot.report, pilot.worker
    return PilotReply(
        mark=pilot.mark,
        stage=pilot.stage.value,
        asked_at=rfc3339(pilot.asked_at),
        engine_id=pilot.engine_id,
        word="" if report is None else report.word,
        reason="" if report is None else report.reason,
        place="" if report is None else report.place,
        expected_start="" if report is None else report.expected_start,
        says="" if pilot.connected else pilot_words(state, pilot),
        worker=None if worker is None else registry.name_of(state, worker),
        connected=pilot.connected,
        by_hand=pilot.by_hand,
        job=pilot.job,
        ends_at=rfc3339(pilot.ends_at),
    )
