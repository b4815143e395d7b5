"""A broker's core with a real store, driven step by step without an event loop.

After every call the changes are committed, every invariant is walked, and a second core
is loaded from the store: it must know exactly what the first one knows.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grass.broker.core.attempts import foreign
from grass.broker.core.broker_core import BrokerCore
from grass.broker.core.calls import (
    AddUnits,
    AnyCall,
    Cancel,
    ContinueJobs,
    CreateQueue,
    DeleteQueue,
    Done,
    Edit,
    Enqueue,
    Enqueued,
    ForgetWorker,
    FromWorker,
    HoldJobs,
    NewJob,
    Prune,
    Reading,
    ReleaseJobs,
    RemoveUnit,
    Rerun,
    SetPaused,
    SetUnitDrained,
    SetWorkerDrained,
    SignalJobs,
    SuspendJobs,
    TimerFired,
    WorkerGone,
)
from grass.broker.core.jobs import eligibility, removals
from grass.broker.core.jobs.bulk_calls import BulkCall
from grass.broker.core.shell_interface import jobs_query
from grass.broker.core.state import State
from grass.errors import GrassError
from grass.link.messages import (
    Exited,
    Hello,
    RemoveOutput,
    Report,
    Start,
    Started,
    ToBroker,
    ToWorker,
)
from grass.model.jobs import dependencies
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import JobPatch
from grass.model.queue import QueuePatch
from grass.model.resources import capacity_from, request_from
from grass.store.interface import JobDetails, Store
from tests.support.broker_memory import check, memory
from tests.support.building import BOOT, WORKER, units
from tests.support.enrolled import bind_token
from tests.support.stores import open_store

__all__ = ["ME", "SECOND", "Brokerage", "check", "memory"]

ME = "uid:1000"
SECOND = 1_000_000


class Brokerage:
    """One cluster: calls in, committed state and messages out."""

    def __init__(
        self,
        path: Path,
        units_found: str = "{cpu:2}",
        opened: Callable[[Path], Store] = open_store,
    ) -> None:
        """Open a broker; some tests are about the file that `SqliteStore` opens."""
        self.store = opened(path)
        self.now_us = 1_000 * SECOND
        self.found = units_found
        self.sent: list[tuple[str, ToWorker]] = []
        self.core = self._loaded()
        self.hello()

    @property
    def state(self) -> State:
        return self.core.state

    def call(self, call: AnyCall) -> Any:
        """Apply one call and finish its batch; return the reply."""
        reply = self.step(call)
        self.flush()
        while self._has_more_to_do():
            before = self.sent + self._ask_for_removals()
            self._read_for_bulk()
            self.flush()
            self.sent = before + self.sent
        return outcome_of(reply)

    def _has_more_to_do(self) -> bool:
        state = self.state
        return bool(
            state.dependencies.unchecked or state.bulk.verbs or removals.due(state)
        )

    def _read_for_bulk(self) -> None:
        if self.state.bulk.verbs and self.state.bulk.verbs[0].is_unread:
            first = self.state.bulk.verbs[0]
            first.found = jobs_query(first, self.state)(self.store)

    def call_at_once(self, call: AnyCall) -> Any:
        """Apply one call, and all that follows from it, in a single batch."""
        reply = self.step(call)
        while self.state.dependencies.unchecked:
            self.core.advance()
        self.flush()
        return reply

    def refused(self, error: type[GrassError], act: Callable[[], object]) -> str:
        """Do what must be refused and change nothing; return what is said."""
        before = memory(self.state)
        with pytest.raises(error) as caught:
            act()
        self.flush()
        assert memory(self.state) == before
        return str(caught.value)

    def step(self, call: AnyCall) -> Any:
        """Apply one call, leaving the batch open."""
        self.now_us += SECOND
        if isinstance(call, FromWorker) and isinstance(call.message, Hello):
            call.wanted = foreign.unaccounted(self.state, call.message)
        if isinstance(call, Reading) and call.unread:
            call.found = jobs_query(call, self.state)(self.store)
        return self.core.step(call, self.now_us)

    def pass_time(self, seconds: float = 0.0) -> None:
        """Let time go by, and have the broker look at the clock."""
        self.now_us += int(seconds * SECOND)
        self.call(TimerFired())

    def flush(self) -> None:
        """Decide, commit, and check everything there is to check."""
        self.core.advance()
        self.core.decide(self.now_us / SECOND)
        effects = self.core.take()
        self.store.commit(effects.changes)
        self.sent = effects.outbox
        check(self.state)
        if not self.core.busy:
            again, now = memory(self._loaded().state), memory(self.state)
            for what, known in now.items():
                assert again[what] == known, f"{what} differ after a restart"

    def _ask_for_removals(self) -> list[tuple[str, ToWorker]]:
        asked: list[tuple[str, ToWorker]] = []
        for worker, number in removals.due(self.state):
            removals.sent(self.state, worker, number)
            asked.append(
                (worker, RemoveOutput(self.store.removal_paths(number), number))
            )
        return asked

    def restart(self) -> None:
        """Forget everything that was not committed; no worker is connected."""
        self.core = self._loaded()
        self.sent = []

    def restart_all(self) -> None:
        """Restart the broker; its worker comes back with all that runs."""
        starting = {
            job
            for job, attempt in self.state.attempts.items()
            if attempt.state is AttemptState.STARTING
        }
        self.restart()
        running = [job for job in self.state.attempts if job not in starting]
        stopping = {job for job in running if self.state.jobs[job].stopping_since}
        self.hello([self.report(job, stopping=job in stopping) for job in running])

    def hello(
        self,
        running: list[Report] | None = None,
        exited: list[Exited] | None = None,
        boot: str = BOOT,
        **said: Any,
    ) -> None:
        """Have the worker connect and report these attempts."""
        found = units(self.found)
        hello = Hello(WORKER, "desk", boot, found, running or [], exited or [], **said)
        self.hear(hello)

    def join(self, worker: str, units_found: str = "{cpu:2}", **said: Any) -> None:
        """Have another worker connect, named as it is known unless told otherwise."""
        fields = {
            "name": worker,
            "boot": BOOT,
            "running": [],
            "exited": [],
            **said,
        }
        hello = Hello(worker, found=units(units_found), **fields)
        bind_token(self.state, worker)
        self.call(FromWorker(worker, hello, "10.0.0.7"))

    def leave(self, worker: str = WORKER) -> None:
        """Have a worker's link end."""
        self.call(WorkerGone(worker))

    def forget(self, name: str) -> Done:
        """Take a worker out that is gone for good."""
        done: Done = self.call(ForgetWorker(ME, name))
        return done

    def rest(self, name: str, draining: bool = True) -> Done:
        """Start nothing new on a worker, or again."""
        done: Done = self.call(SetWorkerDrained(ME, name, draining))
        return done

    def where(self, job: int) -> str:
        """Tell on which worker a job runs."""
        return self.state.attempts[job].worker

    def hear(self, message: ToBroker, worker: str = WORKER, instance: str = "") -> None:
        """Take a message of a worker."""
        self.call(FromWorker(worker, message, instance=instance))

    def step_hear(self, message: ToBroker) -> None:
        """Take a message of the worker, leaving the batch open."""
        self.step(FromWorker(WORKER, message))

    def enqueue(self, *words: str, require: str | None = None, **settings: Any) -> int:
        """Add one job and return its id."""
        call = self.new_job(*words, require=require, **settings)
        reply = self.call(call)
        assert isinstance(reply, Enqueued)
        return reply.first

    def new_job(
        self,
        *words: str,
        require: str | None = None,
        indices: tuple[int, ...] = (),
        **settings: Any,
    ) -> Enqueue:
        """Give the call that adds one job, or an array of them."""
        if require is not None:
            settings["request"] = request_from(require)
        directory = settings.pop("directory", None)
        patch = self.patch(**settings)
        words = words or ("true",)
        jobs = [NewJob(words, patch, index=index) for index in indices]
        jobs = jobs or [NewJob(words, patch)]
        named = runs_of(patch.after or ())
        return Enqueue(ME, jobs, directory=directory, named=named)

    def patch(self, after: tuple[str, ...] | None = None, **fields: Any) -> JobPatch:
        """Give a patch; what a job waits for is given as people write it."""
        if after is not None:
            fields["after"] = dependencies.read(after, self.state.last_job)
        return JobPatch(**fields)

    def prefetched(self, worker: str) -> tuple[int, int]:
        """Have a worker of one core run a job that another was handed to follow."""
        call = self.new_job(worker=worker)
        call.jobs *= 3
        first = self.call(call).first
        self.state.prefetched.durations["default", self.state.jobs[first].spec] = 0.001
        self.hear(Exited(self.name(first), self.now_us, 0), worker)
        assert self.state.attempts[first + 2].after == first + 1
        return first + 1, first + 2

    def array(self, count: int, **settings: Any) -> list[int]:
        """Add an array and return the ids of its members."""
        call = self.new_job(indices=tuple(range(1, count + 1)), **settings)
        reply = self.call(call)
        assert isinstance(reply, Enqueued)
        return list(range(reply.first, reply.last + 1))

    def hold(self, *jobs: int) -> Done:
        done: Done = self.call(HoldJobs(ME, list(jobs)))
        return done

    def release(self, *jobs: int) -> Done:
        done: Done = self.call(ReleaseJobs(ME, list(jobs)))
        return done

    def suspend(self, *jobs: int) -> Done:
        done: Done = self.call(SuspendJobs(ME, list(jobs)))
        return done

    def signal(self, signal: int, *jobs: int) -> Done:
        done: Done = self.call(SignalJobs(ME, list(jobs), signal))
        return done

    def go_on(self, *jobs: int) -> Done:
        done: Done = self.call(ContinueJobs(ME, list(jobs)))
        return done

    def edit(
        self, *jobs: int, first: bool = False, before: int | None = None, **changes: Any
    ) -> Done:
        """Change jobs that have not started."""
        patch = self.patch(**changes)
        named = runs_of(patch.after or ())
        call = Edit(ME, list(jobs), patch, first, before, named=named)
        done: Done = self.call(call)
        return done

    def rerun(self, *jobs: int, hold: bool = False, **changes: Any) -> Done:
        """Give ended jobs a new attempt."""
        patch = self.patch(**changes)
        named = runs_of(patch.after or ())
        call = Rerun(ME, list(jobs), patch, hold, wanted=list(jobs), named=named)
        done: Done = self.call(call)
        return done

    def prune(self, *jobs: int) -> list[int]:
        """Forget ended jobs, and return those that are gone."""
        pruned: list[JobDetails] = self.call(Prune(ME, list(jobs), wanted=list(jobs)))
        return [details.job.id for details in pruned]

    def add_units(self, capacity: str) -> Done:
        done: Done = self.call(AddUnits(ME, WORKER, capacity_from(capacity)))
        return done

    def remove_unit(self, kind: str, unit: str) -> Done:
        done: Done = self.call(RemoveUnit(ME, WORKER, kind, unit))
        return done

    def drain(self, kind: str, unit: str, drained: bool = True) -> Done:
        done: Done = self.call(SetUnitDrained(ME, WORKER, kind, unit, drained))
        return done

    def why(self, job: int) -> str:
        """Give the line that says why a job does not start."""
        return eligibility.why(self.state, self.state.jobs[job])

    def reason(self, job: int) -> str:
        """Give the reason that stands in the store."""
        return self.job(job).job.reason or ""

    def create_queue(self, name: str, capacity: str, *prefix: str, **more: Any) -> Done:
        """Add the worker's view of a queue."""
        patch = QueuePatch(capacity=capacity_from(capacity), prefix=prefix, **more)
        call = CreateQueue(ME, name, WORKER, patch)
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

    def exit(self, job: int, code: int | None = 0, **more: Any) -> None:
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

    def states(self, *jobs: int) -> list[str]:
        """Give the states of several jobs, as the store has them."""
        return [self.job_state(job).value for job in jobs]

    def running(self) -> list[int]:
        """Give the jobs that have an attempt now."""
        return sorted(self.state.attempts)

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
        core = BrokerCore(self.store.load(0), self.now_us)
        core.state.daemon.home_worker = WORKER
        return core


def outcome_of(reply: Any) -> Any:
    """Give what a call was answered with once it is done, or raise it."""
    if not isinstance(reply, BulkCall):
        return reply
    outcome = reply.reply
    if isinstance(outcome, GrassError):
        raise outcome
    return outcome
