"""The interface between a round of the broker and the shell that carries it out.

The daemon's shell has a disk, clocks and connections; the simulation's has none.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from grass.broker.core.calls import Found, FromWorker, Reading
from grass.broker.core.jobs.bulk_calls import BulkCall
from grass.broker.core.pools.pool_memory import PoolEffect
from grass.broker.core.state import State
from grass.errors import StorageError
from grass.link.messages import ToWorker
from grass.log_lines import LogEvent
from grass.model.id_runs import merged_runs, runs_without
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.job import Job
from grass.model.worker import GpuNotice
from grass.store.changes import Changes, env_origins
from grass.store.interface import Store


class Read(NamedTuple):
    """Run a query of the store."""

    query: Callable[[Store], Any]


def jobs_query(
    reading: Reading[Any] | BulkCall, state: State
) -> Callable[[Store], Found]:
    """Make the query for jobs with all that is needed to run them again.

    Of the jobs that they wait for, and of those that are named, only states are read,
    and none that memory has.
    """
    wanted, named = reading.wanted, runs_without(reading.named, state.jobs)

    def query(store: Store) -> Found:
        jobs = {one.job.id: one for one in store.details(wanted)}
        specs = {id(one.spec): one.spec for one in jobs.values()}
        others = [run for spec in specs.values() for run in runs_of(spec.after)]
        states = store.states(merged_runs([*named, *others]))
        envs = store.environments(env_origins(specs.values()))
        return Found(jobs, {env.id: env for env in envs}, states)

    return query


class Commit(NamedTuple):
    """Make the changes durable."""

    changes: Changes


class Pause(NamedTuple):
    """Wait; the store does not work at present."""

    seconds: float


class NextEpoch(NamedTuple):
    """Take the next epoch, so that no commit of before can follow; raises `LeadLost`.

    A broker that has its store to itself has nothing to do here.
    """


Step = Read | Commit | Pause | NextEpoch

ReplyTo = Any
"""What the shell answers a caller with: a future, or a simulated client."""


class Shell(Protocol):
    """The clocks, connections and callers that a round uses."""

    def now_us(self) -> int:
        """Return the time, in microseconds UTC."""

    def now_s(self) -> float:
        """Return the time of a monotonic clock."""

    def shortage(self) -> StorageError | None:
        """Return the error while the disk has no room; None: it has."""

    def reached(self, point: str) -> None:
        """Note that a crash point is reached, where a test may kill the process."""

    def answer(self, reply: ReplyTo, outcome: object) -> None:
        """Answer a caller; an error is raised there."""

    def send(self, worker: str, message: ToWorker) -> None:
        """Send a message to a worker, if it is connected."""

    @property
    def ask_engines(self) -> Callable[[list[PoolEffect]], object]:
        """What carries out what pools need of their engines."""

    def wake(self, jobs: set[int]) -> None:
        """Wake the callers that wait for one of these jobs."""

    def committed(self, ended: list[Job], gpus: list[GpuNotice]) -> None:
        """Note a commit: which jobs ended, and which GPUs failed or work again."""

    def wake_within(self, delay_s: float) -> None:
        """Have a `TimerFired` posted, at the latest after this time."""

    def wake_at(self, at_us: int | None) -> None:
        """Have a `TimerFired` posted at this time of the wall clock; None: at none."""

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Call a function after a time."""

    def log(self, event: LogEvent) -> None:
        """Write an event into the log."""

    def refuse(self, said: FromWorker, reason: str) -> None:
        """Log that a worker's message was refused; after a hello, close the link."""

    def defect(self, error: Exception) -> None:
        """Log an exception that only a mistake in grass explains."""

    def ban(self, worker: str) -> None:
        """Close the link of a worker whose message revealed a defect."""
