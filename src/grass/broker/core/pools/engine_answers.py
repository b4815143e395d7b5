"""What follows from what an engine answers, or does not.

Submitting is not atomic. A pilot is *unsure* after a submit that was not answered, and
after the broker was restarted between its row and the answer. Its mark decides: what
the engine lists is adopted; what it does not list in the time that a slow submit may
take never came. A pilot whose worker is connected is alive, whatever the engine says.
"""

from collections.abc import Iterable

from grass.broker.core.pools import asking
from grass.broker.core.pools.pool_memory import CancelPilots, PoolMemory, Silence
from grass.model.pools import Pilot, PilotReport, PilotStage, PilotState

UNLISTED_US = 120 * 1_000_000
"""How long the engine must not have listed a pilot before it is taken for gone."""
NO_START = "the engine's job ended before its worker came"


def restarted(memory: PoolMemory, now_us: int) -> None:
    """Begin with what the store had: a submit may have happened, or not."""
    for pilot in memory.pilots.values():
        pilot.connected, pilot.idle_since = False, None
        if pilot.stage is PilotStage.ASKED or not pilot.engine_id:
            pilot.unsure_since = now_us
        memory.save(pilot)


def submitted(memory: PoolMemory, pool: str, mark: str, engine_id: str) -> None:
    """Note the id of a pilot that the engine has taken."""
    memory.silent.pop(pool, None)
    pilot = memory.pilots.get(mark)
    if pilot is None:
        memory.effects.append(CancelPilots(pool, (engine_id,)))
        return
    pilot.unsure_since = None
    if not pilot.engine_id:
        # It may have come, and been listed, before the answer to its submit.
        state = PilotState.PENDING
        pilot.report = PilotReport(mark=mark, state=state, engine_id=engine_id)
    if pilot.stage is PilotStage.ASKED:
        pilot.stage = PilotStage.SUBMITTED
    asking.accepted(memory, memory.pools[pilot.pool])
    memory.save(pilot)
    cancel_leaving(memory, [pilot])


def refused(memory: PoolMemory, mark: str, words: str, now_us: int) -> None:
    """Drop a pilot that the engine did not take, and wait before the next."""
    pilot = memory.pilots.get(mark)
    if pilot is None:
        return
    pool = memory.pools[pilot.pool]
    memory.silent.pop(pool.name, None)
    if pilot.job is None:
        asking.refused(memory, pool, words, now_us)
    else:
        asking.job_refused(memory, pool, pilot.job, words, now_us)
    memory.drop(pilot)


def not_answered(memory: PoolMemory, mark: str, words: str, now_us: int) -> None:
    """Keep a pilot that the engine may have taken."""
    pilot = memory.pilots.get(mark)
    if pilot is not None:
        pool = memory.pools[pilot.pool]
        asking.not_asked(memory, pool, words, now_us)
        memory.silent[pool.name] = Silence(words, pool.retry_at or now_us)
        pilot.unsure_since = now_us
        memory.save(pilot)


def listed(memory: PoolMemory, reports: Iterable[PilotReport], now_us: int) -> None:
    """Take in the list of an engine; marks that it lacks are reported as absent."""
    marks = []
    for report in reports:
        pilot = memory.pilots.get(report.mark)
        if pilot is not None:
            memory.silent.pop(pilot.pool, None)
            _listed(memory, pilot, report, now_us)
            marks.append(report.mark)
    left = (memory.pilots.get(mark) for mark in marks)
    cancel_leaving(memory, [pilot for pilot in left if pilot is not None])


def _listed(memory: PoolMemory, pilot: Pilot, report: PilotReport, now_us: int) -> None:
    if report.state is PilotState.ABSENT:
        _absent(memory, pilot, now_us)
    elif report.state is PilotState.ENDED:
        _ended(memory, pilot, report, now_us)
    else:
        # An unknown word is no answer to whether it is alive, but it has an id.
        _has_id(memory, pilot, report)


def _has_id(memory: PoolMemory, pilot: Pilot, report: PilotReport) -> None:
    if pilot.stage is PilotStage.ASKED and report.engine_id:
        pilot.stage = PilotStage.SUBMITTED
    if pilot.report != report or pilot.unsure_since is not None:
        pilot.report, pilot.unsure_since = report, None
        memory.save(pilot)


def _ended(memory: PoolMemory, pilot: Pilot, report: PilotReport, now_us: int) -> None:
    if pilot.connected:
        _has_id(memory, pilot, report)
        return
    if pilot.came_at is None and pilot.stage is not PilotStage.LEAVING:
        said = " ".join(filter(None, (report.word, report.reason)))
        words = ": ".join(filter(None, (NO_START, said)))
        words += f"; `grass pool logs {pilot.pool}` shows what it printed"
        asking.start_failed(memory, memory.pools[pilot.pool], words, now_us)
    memory.drop(pilot)


def _absent(memory: PoolMemory, pilot: Pilot, now_us: int) -> None:
    if pilot.connected:
        return
    if pilot.stage is PilotStage.ASKED and pilot.unsure_since is None:
        # Its submit is under way.
        return
    if pilot.unsure_since is None:
        pilot.unsure_since = now_us
        memory.save(pilot)
    elif now_us >= pilot.unsure_since + UNLISTED_US:
        memory.drop(pilot)


def cancel_leaving(memory: PoolMemory, pilots: Iterable[Pilot]) -> None:
    """Have the engine end those that leave; again, as a cancel may be lost."""
    by_pool: dict[str, list[str]] = {}
    for pilot in pilots:
        ended = pilot.report is not None and pilot.report.state is PilotState.ENDED
        if pilot.stage is PilotStage.LEAVING and pilot.engine_id and not ended:
            by_pool.setdefault(pilot.pool, []).append(pilot.engine_id)
    for pool, ids in by_pool.items():
        memory.effects.append(CancelPilots(pool, tuple(ids)))
