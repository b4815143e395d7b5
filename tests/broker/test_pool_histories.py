"""Any history of a pool leaks no pilot, asks for none twice, and keeps its limit.

The engine loses answers, is late, refuses and restarts jobs' ends; the broker is killed
between any two steps, and begins again with what it had committed.
"""

from random import Random

import msgspec
import pytest
from tests.support.building import a_pool

from grass.broker.core.pools import asking, engine_answers, leaving
from grass.broker.core.pools.asking import WaitingJob
from grass.broker.core.pools.pool_memory import (
    CancelPilots,
    DrainWorker,
    PoolEffect,
    PoolMemory,
    Submit,
)
from grass.model.pools import Pilot, PilotReport, PilotSize, PilotState, Pool
from grass.model.resources import ONE_CPU

SECOND = 1_000_000
STEPS = 400
MOST = 3
LATEST = 60 * SECOND
"""So late the engine may take a submit that it has not answered."""


class Engine:
    """Jobs by mark, and submits that have not arrived."""

    def __init__(self) -> None:
        self.jobs: dict[str, PilotState] = {}
        self.ids: dict[str, str] = {}
        self.late: dict[str, int] = {}
        self.ever: set[str] = set()

    def take(self, mark: str) -> str:
        self.late.pop(mark, None)
        self.jobs[mark] = PilotState.PENDING
        self.ids[mark] = str(len(self.ids) + 1)
        return self.ids[mark]

    def alive(self) -> list[str]:
        alive = (PilotState.PENDING, PilotState.RUNNING)
        return [mark for mark, state in self.jobs.items() if state in alive]

    def report(self, mark: str) -> PilotReport:
        state = self.jobs.get(mark, PilotState.ABSENT)
        return PilotReport(mark=mark, state=state, engine_id=self.ids.get(mark, ""))


class History:
    """A pool, its engine, and the workers that come."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 10**12
        self.engine = Engine()
        self.marks = 0
        self.drained: set[str] = set()
        self.connected: dict[str, bool] = {}
        """Workers that are connected, by mark, and whether they have a job."""
        pool = a_pool("uni")
        self.pools = [msgspec.json.encode(pool)]
        self.pilots: dict[str, bytes] = {}
        self.memory = PoolMemory()
        self.restart()

    def restart(self) -> None:
        """Begin again with what was committed; effects of before are lost."""
        pools = [msgspec.json.decode(one, type=Pool) for one in self.pools]
        rows = self.pilots.values()
        pilots = [msgspec.json.decode(one, type=Pilot) for one in rows]
        self.memory = PoolMemory(pools, pilots)
        engine_answers.restarted(self.memory, self.now)
        self.commit()
        for mark in self.connected:
            pilot = self.memory.pilots.get(mark)
            if pilot is None:
                self.drained.add(mark)
            else:
                back = leaving.Arrival(is_needed=True, has_jobs=self.connected[mark])
                leaving.came(self.memory, pilot, mark, self.now, back)
        self.commit()

    def commit(self) -> None:
        """Write the rows, and carry the effects out, or be killed before."""
        memory = self.memory
        for pool in memory.changed_pools.values():
            self.pools = [msgspec.json.encode(pool)]
        for mark in memory.removed_pilots:
            self.pilots.pop(mark, None)
        for mark, pilot in memory.changed_pilots.items():
            self.pilots[mark] = msgspec.json.encode(pilot)
        memory.changed_pools, memory.changed_pilots = {}, {}
        memory.removed_pilots = []
        effects, memory.effects = memory.effects, []
        for effect in effects:
            if self.random.random() < 0.02:
                self.restart()
                return
            self.carry_out(effect)

    def carry_out(self, effect: PoolEffect) -> None:
        match effect:
            case Submit():
                self.submit(effect.mark)
            case CancelPilots():
                self.cancel(effect.engine_ids)
            case DrainWorker():
                self.drained.add(effect.worker)

    def submit(self, mark: str) -> None:
        assert mark not in self.engine.ever, "a mark is submitted twice"
        assert mark in self.pilots, "a pilot without a row is submitted"
        self.engine.ever.add(mark)
        chance = self.random.random()
        if chance < 0.5:
            answered = self.engine.take(mark)
            if self.random.random() < 0.1:
                self.restart()
                return
            engine_answers.submitted(self.memory, "uni", mark, answered)
        elif chance < 0.6:
            engine_answers.refused(self.memory, mark, "no", self.now)
        else:
            if chance < 0.9:
                self.engine.late[mark] = self.now + self.random.randrange(LATEST)
            engine_answers.not_answered(self.memory, mark, "silence", self.now)
        self.commit()

    def cancel(self, ids: tuple[str, ...]) -> None:
        for mark, number in self.engine.ids.items():
            if number in ids and mark in self.engine.alive():
                assert not self.connected.get(mark), "a worker with a job is ended"
                assert mark in self.drained or mark not in self.connected
                if self.random.random() < 0.7:
                    self.end(mark)

    def end(self, mark: str) -> None:
        self.engine.jobs[mark] = PilotState.ENDED
        if self.connected.pop(mark, None) is not None:
            leaving.gone(self.memory, mark)

    def poll(self) -> None:
        reports = [self.engine.report(mark) for mark in self.memory.pilots]
        engine_answers.listed(self.memory, reports, self.now)

    def happen(self, waiting: int) -> None:
        """Let some time pass, and something happen in the engine."""
        self.now += self.random.randrange(10 * SECOND)
        for mark, at in list(self.engine.late.items()):
            if at <= self.now:
                self.engine.take(mark)
        for mark in self.engine.alive():
            if self.random.random() < 0.3:
                self.live(mark, waiting)

    def live(self, mark: str, waiting: int) -> None:
        if self.engine.jobs[mark] is PilotState.PENDING:
            self.engine.jobs[mark] = PilotState.RUNNING
        elif mark not in self.connected:
            self.connected[mark] = False
            if pilot := self.memory.pilots.get(mark):
                arrival = leaving.Arrival(is_needed=waiting > 0)
                leaving.came(self.memory, pilot, mark, self.now, arrival)
        elif self.connected[mark]:
            self.connected[mark] = False
            leaving.idle(self.memory, mark, self.now)
        elif waiting and mark not in self.drained and not self.memory.effects:
            self.connected[mark] = True
            leaving.busy(self.memory, mark)
        self.commit()

    def step(self, waiting: int) -> None:
        self.happen(waiting)
        if self.random.random() < 0.02:
            self.restart()
        if self.random.random() < 0.5:
            self.poll()
            self.commit()
        leaving.advance(self.memory, self.now)
        self.commit()
        self.marks += MOST
        marks = [f"m{self.marks - one}" for one in range(MOST)]
        for pool in self.memory.pools.values():
            asking.resume(self.memory, pool) if pool.paused else None
            numbers = range(waiting)
            jobs = [WaitingJob(number, self.size(), ONE_CPU) for number in numbers]
            asking.ask(self.memory, pool, jobs, marks, self.now)
        self.commit()
        self.check()

    def size(self) -> PilotSize | None:
        """Have some jobs ask for a pilot of their own."""
        return self.random.choice((None, PilotSize(1, 0, None, 700.0)))

    def check(self) -> None:
        held = set(self.engine.alive()) | set(self.engine.late)
        assert len(held) <= MOST, "more pilots than the pool may have"
        assert held <= self.pilots.keys(), "a pilot of which no row tells"
        own = [one.job for one in self.memory.pilots.values() if one.job is not None]
        assert len(own) == len(set(own)), "a job has two pilots"


@pytest.mark.parametrize("seed", range(60))
def test_no_pilot_is_leaked_and_none_asked_for_twice(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step(history.random.choice((0, 0, 1, 2, 5)))
    assert history.engine.ids, "no pilot ever came"
    for _ in range(STEPS):
        history.step(0)
    assert history.engine.alive() == []
    assert history.pilots == {}
