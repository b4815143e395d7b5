"""A broker's core with a real store, driven step by step without an event loop.

After every call the changes are committed, every invariant is walked, and a second core
is loaded from the store: it must know exactly what the first one knows.
"""

from pathlib import Path
from typing import Any

from grass.broker.calls import (
    Call,
    Cancel,
    CreateQueue,
    DeleteQueue,
    Done,
    Enqueue,
    Enqueued,
    FromWorker,
    NewJob,
    SetPaused,
    Settings,
)
from grass.broker.core import BrokerCore
from grass.broker.state import State
from grass.broker.units import known_capacity
from grass.link.messages import (
    Exited,
    Hello,
    Report,
    Start,
    Started,
    ToBroker,
    ToWorker,
)
from grass.model.lifecycle import JobState
from grass.model.resources import capacity_from, request_from
from grass.store.interface import JobDetails
from grass.store.sqlite import SqliteStore
from tests.support.building import BOOT, WORKER, units

ME = "uid:1000"
SECOND = 1_000_000


class Brokerage:
    """One cluster: calls in, committed state and messages out."""

    def __init__(self, path: Path, found: str = "{cpu:2}") -> None:
        """Begin with one connected worker."""
        self.store = SqliteStore(path)
        self.now_us = 1_000 * SECOND
        self.found = found
        self.sent: list[tuple[str, ToWorker]] = []
        self.core = self._loaded()
        self.hello()

    @property
    def state(self) -> State:
        return self.core.state

    def call(self, call: Call) -> Any:
        """Apply one call and finish its batch; return the reply."""
        reply = self.step(call)
        self.flush()
        return reply

    def step(self, call: Call) -> Any:
        """Apply one call, leaving the batch open."""
        self.now_us += SECOND
        return self.core.step(call, self.now_us)

    def flush(self) -> None:
        """Decide, commit, and check everything there is to check."""
        self.core.advance()
        self.core.decide(self.now_us / SECOND)
        effects = self.core.take()
        self.store.commit(effects.changes)
        self.sent = effects.outbox
        check(self.state)
        if not self.core.busy:
            assert memory(self._loaded().state) == memory(self.state)

    def restart(self) -> None:
        """Forget everything that was not committed; no worker is connected."""
        self.core = self._loaded()
        self.sent = []

    def hello(
        self,
        running: list[Report] | None = None,
        exited: list[Exited] | None = None,
        boot: str = BOOT,
    ) -> None:
        """Have the worker connect and report these attempts."""
        hello = Hello(
            WORKER, "desk", boot, units(self.found), running or [], exited or []
        )
        self.hear(hello)

    def hear(self, message: ToBroker) -> None:
        """Take a message of the worker."""
        self.call(FromWorker(WORKER, message))

    def step_hear(self, message: ToBroker) -> None:
        """Take a message of the worker, leaving the batch open."""
        self.step(FromWorker(WORKER, message))

    def enqueue(self, *words: str, require: str | None = None, **settings: Any) -> int:
        """Add one job and return its id."""
        request = None if require is None else request_from(require)
        wanted = Settings(request=request, **settings)
        reply = self.call(Enqueue(ME, [NewJob(words or ("true",), wanted)]))
        assert isinstance(reply, Enqueued)
        return reply.first

    def create_queue(self, name: str, capacity: str, *prefix: str, **more: Any) -> Done:
        """Add the worker's view of a queue."""
        call = CreateQueue(ME, name, WORKER, capacity_from(capacity), prefix, **more)
        done: Done = self.call(call)
        return done

    def delete_queue(self, name: str) -> None:
        self.call(DeleteQueue(ME, name, WORKER))

    def pause(self, queue: str | None = None) -> Done:
        done: Done = self.call(SetPaused(ME, True, queue))
        return done

    def resume(self, queue: str | None = None) -> Done:
        done: Done = self.call(SetPaused(ME, False, queue))
        return done

    def cancel(self, *jobs: int) -> list[int]:
        done: Done = self.call(Cancel(ME, list(jobs)))
        return done.jobs

    def start(self, job: int, pid: int = 100) -> None:
        """Have the worker say that a job's process exists."""
        self.hear(Started(self.name(job), pid, self.now_us, "/out", 0, None))

    def exit(self, job: int, code: int = 0, **more: Any) -> None:
        """Have the worker say that a job's live attempt is over."""
        self.hear(Exited(self.name(job), self.now_us, code, **more))

    def name(self, job: int, number: int | None = None) -> str:
        """Name an attempt as workers know it; the live one unless told otherwise."""
        if number is None:
            number = self.state.attempts[job].number
        return f"{self.state.cluster}.{job}.{number}"

    def job(self, number: int) -> JobDetails:
        """Read a job from the store."""
        (found,) = self.store.details([number])
        return found

    def job_state(self, number: int) -> JobState:
        return self.job(number).job.state

    def report(self, job: int, **more: Any) -> Report:
        """Give what a worker that runs a job's live attempt says of it."""
        fields = {"running": True, "pid": 100, "started_at": self.now_us, **more}
        allocation = self.state.attempts[job].allocation
        return Report(self.name(job), allocation, **fields)

    def started_jobs(self) -> list[int]:
        """Give the jobs that the last batch sent to the worker."""
        return [message.job for _, message in self.sent if isinstance(message, Start)]

    def said(self, kind: type[ToWorker]) -> list[Any]:
        """Give the messages of one type that the last batch sent."""
        return [message for _, message in self.sent if isinstance(message, kind)]

    def _loaded(self) -> BrokerCore:
        return BrokerCore(self.store.load(0), self.now_us)


def check(state: State) -> None:
    """Walk every invariant of a broker's memory."""
    state.scheduler.check()
    running = {job.id for job in state.jobs.values() if job.state is JobState.RUNNING}
    assert running == set(state.attempts)
    for kept in JobState:
        unfinished = sum(job.state is kept for job in state.jobs.values())
        assert state.counts[kept] >= unfinished
    waiting = sum(job.state is JobState.QUEUED for job in state.jobs.values())
    assert state.scheduler.waiting() == waiting or state.arriving
    for worker in state.workers.values():
        _check_units(state, worker.id)


def _check_units(state: State, worker: str) -> None:
    held: dict[tuple[str, str], int] = {}
    for attempt in state.attempts.values():
        if attempt.worker == worker and attempt.after is None:
            for kind, amounts in attempt.allocation.items():
                for unit, amount in amounts.items():
                    held[kind, unit] = held.get((kind, unit), 0) + amount
    has = known_capacity(state, state.workers[worker])
    for (kind, unit), amount in held.items():
        assert amount <= has[kind][unit], f"{kind} {unit} is sold twice"


def memory(state: State) -> dict[str, object]:
    """Give all that must be the same after a restart."""
    specs = {job.spec: state.specs[job.spec] for job in state.jobs.values()}
    needed = {spec.base_env for spec in specs.values() if spec.base_env is not None}
    return {
        "jobs": state.jobs,
        "attempts": state.attempts,
        "queues": state.queues,
        "workers": [(w.id, w.name, w.boot, w.found) for w in state.workers.values()],
        "specs": specs,
        "envs": {number: state.envs[number] for number in needed},
        "calls": state.calls,
        "counts": state.counts,
        "last_job": state.last_job,
        "paused": state.paused,
        "output_bytes": state.output_bytes,
    }
