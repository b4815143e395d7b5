"""The order of rounds, with a clock that makes each of them short."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.building import BOOT, WORKER, units

from grass.broker.core import rounds as module
from grass.broker.core.calls import (
    AnyCall,
    Cancel,
    Done,
    Enqueue,
    FromWorker,
    NewJob,
    Rerun,
)
from grass.broker.core.pools.pool_memory import PoolEffect
from grass.broker.core.rounds import Rounds, loaded
from grass.broker.core.shell_interface import Commit, Read, Step
from grass.errors import StorageError
from grass.link.messages import Exited, Hello, ToWorker
from grass.log_lines import LogEvent
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch
from grass.store.sqlite.sqlite_store import SqliteStore


class Slow:
    """A world in which applying one call takes a whole round's time."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.clock_s = 0.0
        self.answers: list[Any] = []
        self.reads = 0
        self.rounds = Rounds(loaded(1)(store), self)

    def play(self, *calls: AnyCall) -> list[Any]:
        """Post calls together, and go on until all is done."""
        self.answers = [None] * len(calls)
        for number, call in enumerate(calls):
            self.rounds.post(call, number + 1)
        while not self.rounds.idle:
            self._round()
        return self.answers

    def _round(self) -> None:
        steps = self.rounds.round()
        try:
            step = next(steps)
            while True:
                step = steps.send(self._perform(step))
        except StopIteration:
            pass

    def _perform(self, step: Step) -> object:
        if isinstance(step, Read):
            self.reads += 1
            return step.query(self.store)
        assert isinstance(step, Commit)
        self.store.commit(step.changes)
        return None

    def ask_engines(self, effects: list[PoolEffect]) -> None:
        assert not effects

    def now_us(self) -> int:
        return 1_000_000

    def now_s(self) -> float:
        self.clock_s += 0.6 * module.BATCH_S
        return self.clock_s

    def shortage(self) -> StorageError | None:
        return self.store.shortage()

    def reached(self, point: str) -> None:
        """Do nothing."""

    def answer(self, reply: int, outcome: object) -> None:
        self.answers[reply - 1] = outcome

    def send(self, worker: str, message: ToWorker) -> None:
        """Do nothing."""

    def wake(self, jobs: set[int]) -> None:
        """Do nothing."""

    def committed(self, ended: object, gpus: object) -> None:
        """Do nothing."""

    def wake_within(self, delay_s: float) -> None:
        """Everything is done at once here."""

    def wake_at(self, at_us: int | None) -> None:
        """Everything is done at once here."""

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        raise AssertionError("a batch was dropped")

    def log(self, event: LogEvent) -> None:
        raise AssertionError(str(event))

    def refuse(self, said: FromWorker, reason: str) -> None:
        raise AssertionError(reason)

    def defect(self, error: Exception) -> None:
        raise error

    def ban(self, worker: str) -> None:
        raise AssertionError(worker)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    store = SqliteStore(tmp_path / "grass.db")
    world = Slow(store)
    hello = Hello(WORKER, "desk", BOOT, units("{cpu:2}"), [], [])
    world.play(FromWorker(WORKER, hello))
    yield world
    store.close()


def finished(world: Slow) -> int:
    """Run a job to its end."""
    (reply,) = world.play(Enqueue("me", [NewJob(("true",), JobPatch())]))
    job: int = reply.first
    name = f"{world.rounds.core.state.cluster}.{job}.1"
    world.play(FromWorker(WORKER, Exited(name, 5, 0)))
    return job


def rerun(job: int) -> Rerun:
    return Rerun("me", [job], wanted=[job])


def test_a_call_that_is_left_for_the_next_round_sees_what_this_one_did(
    slow: Slow,
) -> None:
    job = finished(slow)
    slow.rounds.stop_starting()
    answers = slow.play(rerun(job), Cancel("me", [job]), rerun(job))
    assert [done.jobs for done in answers] == [[job], [job], [job]]
    counts = slow.rounds.core.state.totals.states
    stored = slow.store.load(0).counts
    assert {state: count for state, count in counts.items() if count} == stored
    assert counts[JobState.QUEUED] == 1


def test_jobs_are_read_for_so_many_calls_at_a_time(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_READ", 2)
    jobs = [finished(slow) for _ in range(5)]
    slow.reads = 0
    answers = slow.play(*[rerun(job) for job in jobs])
    assert all(isinstance(done, Done) and done.changed for done in answers)
    assert slow.reads < 2 * len(jobs)
