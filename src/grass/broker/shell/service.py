"""The shell around the broker: waits for calls, the disk and the clock.

One task owns the core and performs the steps that `rounds` yields. Queries of users run
beside it and never wait for that task.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from grass.broker.core.attempts import prefetch
from grass.broker.core.broker_core import BrokerCore
from grass.broker.core.calls import AnyCall, Call, FromWorker, TimerFired, WorkerGone
from grass.broker.core.rounds import Rounds, loaded
from grass.broker.core.shell_interface import Commit, NextEpoch, Pause, Read, Step
from grass.broker.core.state import State
from grass.broker.shell.candidacy import Lead
from grass.broker.shell.job_waits import JobWaits
from grass.broker.shell.kept_blobs import KeptBlobs
from grass.broker.shell.links import Links, WorkerConnection
from grass.broker.shell.readers import Readers
from grass.broker.shell.waiters import Waiters
from grass.broker.shell.wall_clock import WallClock
from grass.broker.shell.worker_requests import WorkerRequests
from grass.broker.shell.writer import Writer
from grass.errors import CommitInDoubt, GrassError, NoDatabase, StorageError
from grass.event_log import EventLog
from grass.keeper.crash_points import crash_point
from grass.link.channel import Link
from grass.link.messages import (
    Exited,
    Heartbeat,
    Started,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.log_lines import LogEvent
from grass.model.jobs.job import Job
from grass.model.worker import GpuNotice
from grass.store.changes import Changes
from grass.store.interface import Store

log = EventLog(__name__)

T = TypeVar("T")
R = TypeVar("R")

STARTED_DEFERRED_S = 0.02
"""How long a message that an attempt has started may wait to be applied."""
MOST_WAITING_MESSAGES = 5_000
"""With more of one worker's messages waiting, no more are read from its link."""


class Broker(JobWaits):
    """The owner of all state."""

    def __init__(
        self,
        store: Store,
        is_fatal: Callable[[StorageError], bool],
        lead: Lead | None = None,
        core: BrokerCore | None = None,
    ) -> None:
        """Load the state; `run` makes it live.

        A broker that shares the store has a `lead`, and a core that was loaded after it
        was taken.
        """
        self._store = store
        self._is_fatal = is_fatal
        self.lead = lead
        self._epoch = 0 if lead is None else lead.epoch
        self._rounds = Rounds(core or loaded(_now_us())(store), self)
        self._arrived = asyncio.Event()
        self._links = Links(self)
        if lead is not None:
            self._links.brokers = lead.addresses
            self._links.heard_machine = lead.heard_machine
            self._rounds.share_store()
        self._waiters = Waiters()
        self._welcomed: dict[str, asyncio.Event] = {}
        self._readers = Readers(store)
        self._lookups = ThreadPoolExecutor(1, thread_name_prefix="lookup")
        """For the rounds: all callers wait while these do."""
        self._lookups.submit(int)  # One short of processes gives no thread later.
        self._timer: tuple[float, asyncio.TimerHandle] | None = None
        """When the next tick is due, and its timer, which uvloop may give no time."""
        self._wall_clock = WallClock(self._tick)
        self.pruning = asyncio.Lock()
        """One prune at a time: two would count the same jobs as theirs."""
        self.blobs = KeptBlobs(
            store.blobs, self.read, self._link_of, lambda: self._epoch
        )
        self.requests = WorkerRequests(self._link_of, self.blobs)
        self.on_news: Callable[[list[Job], list[GpuNotice]], None] | None = None
        """Called with jobs that ended and GPUs that failed, once that is committed."""

        self.ask_engines: Callable[[list[Any]], object] = list

    @property
    def state(self) -> State:
        """What is in memory now; for reading only."""
        return self._rounds.core.state

    async def call(self, call: Call[R]) -> R:
        """Make a call, and return its reply once it is durable."""
        if self.lead is not None:
            self.lead.check()
        reply: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._post(call, reply)
        return await reply

    async def read(self, query: Callable[[Store], T]) -> T:
        """Run a query without holding anything up; all it reads is of one commit."""
        return await self._readers.read(query)

    async def scan(self, query: Callable[[Store], T]) -> T:
        """Run a query that may look at all jobs, as there is no index for it."""
        return await self._readers.scan(query)

    async def welcomed(self, worker: str) -> None:
        """Return when a worker's first report has been taken in and committed."""
        await self._welcomed.setdefault(worker, asyncio.Event()).wait()

    def stop_starting(self) -> None:
        """Place no job until the daemon is started again; nothing is written down."""
        self._rounds.stop_starting()

    def resume_starting(self) -> None:
        """Place jobs again."""
        self._rounds.resume_starting()

    # Links of workers.

    def serve(
        self,
        link: Link[ToWorker, ToBroker],
        *,
        worker: str | None = None,
        address: str | None = None,
    ) -> None:
        """Serve one worker until its link closes.

        Only `worker` may use the link, where one is named. A link without an address
        is that of the worker in this daemon.
        """
        if address is None and worker is not None:
            # Before it reports: callers of this machine may come sooner.
            self._rounds.set_home_worker(worker)
        connection = self._links.open(link, worker, address)
        link.listen(connection.arrived, connection.ended)

    def disconnect(self, worker: str) -> None:
        """Close the link of a worker whose token is gone; the own one needs none."""
        self._links.cut(worker)

    def log_refusal(self, worker: str, reason: str) -> None:
        """Log why a worker was refused, once for each reason."""
        self._links.log_refusal(worker, reason)

    def received(self, connection: WorkerConnection, messages: list[ToBroker]) -> None:
        """Apply or answer the messages of a worker."""
        if self.lead is not None and not self.lead.trusts():
            return
        worker = connection.worker
        self._rounds.core.received(worker, _now_us())
        for message in messages:
            if isinstance(message, Heartbeat):
                connection.answer(message, self.state)
            elif not self.requests.received(worker, message):
                self._apply(connection, message)

    def _apply(self, connection: WorkerConnection, message: ToBroker) -> None:
        """Apply a message: at once, or with what comes meanwhile."""
        said = connection.worker, message, connection.address, connection.instance
        wait_s = self._may_wait_s(message)
        if wait_s:
            self._rounds.post(FromWorker(*said))
            self.wake_within(wait_s)
        else:
            self._post(FromWorker(*said), None)

    def _may_wait_s(self, message: ToBroker) -> float:
        """Return how long a message may wait to be applied, as no caller waits for it.

        That an attempt has started is applied with the next round, which for a short
        job is that of its exit.
        """
        if isinstance(message, Started):
            return STARTED_DEFERRED_S
        if isinstance(message, Exited):
            return prefetch.may_wait_s(self.state, message.attempt)
        return 0.0

    async def may_read_more(self, worker: str) -> None:
        """Return when more of what a worker says may be read.

        The reader of its link waits here, so that only this worker is slowed down when
        it sends more than can be applied.
        """
        while self._rounds.waiting_from(worker) > MOST_WAITING_MESSAGES:
            await self._waiters.round.wait()

    def limit_gpus(
        self, strangers: int, jobs: int | None, acknowledge_s: float | None = None
    ) -> None:
        """Set how GPUs are used: strangers beside shares, jobs, and after a fault."""
        self._rounds.limit_gpus(strangers, jobs, acknowledge_s)

    def connected(self, connection: WorkerConnection) -> None:
        """Note that a worker uses another link than before."""
        self.requests.gone(connection.worker)
        if connection.address is None:
            self._rounds.set_home_worker(connection.worker)

    def disconnected(self, worker: str) -> None:
        """Note that a worker's link ended."""
        self.requests.gone(worker)
        self._post(WorkerGone(worker), None)

    def _link_of(self, worker: str) -> Link[ToWorker, ToBroker] | None:
        connection = self._links.of(worker)
        return None if connection is None else connection.link

    def _post(self, call: AnyCall, reply: asyncio.Future[Any] | None) -> None:
        self._rounds.post(call, reply)
        self._arrived.set()

    # The owner's task.

    async def run(self) -> None:
        """Own the core until cancelled; raise if the store cannot go on."""
        writer = Writer(self._store)
        # Leases of workers that are away begin to count.
        self._post(TimerFired(), None)
        try:
            while True:
                await self._arrived.wait()
                await self._round(writer)
                self._waiters.round.notify()
                if self._rounds.idle:
                    self._arrived.clear()
                elif self.state.bulk.verbs:
                    # A slice that only checks waits for no disk: let other tasks run.
                    await asyncio.sleep(0)
        finally:
            if self.lead is not None:
                self._rounds.give_up(self.lead.lost_error())
            await self._end_threads(writer)
            self._wall_clock.close()

    async def _end_threads(self, writer: Writer) -> None:
        """Finish what the store is asked, unless another broker leads by now.

        The database may not answer for long then, and this one is to stand by at once.
        What it has under way changes nothing, or was done in time.
        """

        def finish() -> None:
            writer.stop()
            self._readers.stop()
            self._lookups.shutdown()

        ending = threading.Thread(target=finish, name="ending", daemon=True)
        ending.start()
        if self.lead is None or self.lead.trusts():
            await asyncio.get_running_loop().run_in_executor(None, ending.join)

    async def _round(self, writer: Writer) -> None:
        """Perform one round, sending it the result of each of its steps."""
        steps = self._rounds.round()
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._perform(step, writer)
                except Exception as error:
                    step = steps.throw(error)
                    if isinstance(error, StorageError) and self._is_fatal(error):
                        raise
                else:
                    step = steps.send(result)
        except StopIteration:
            pass

    async def _perform(self, step: Step, writer: Writer) -> Any:  # noqa: ANN401
        match step:
            case Commit(changes):
                return await self._commit(changes, writer)
            case NextEpoch():
                if self.lead is not None:
                    self._epoch = await self.lead.next_epoch()
                return None
            case Read(query):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._lookups, query, self._store)
            case Pause(seconds):
                return await asyncio.sleep(seconds)

    async def _commit(self, changes: Changes, writer: Writer) -> None:
        try:
            await writer.commit(changes, self._epoch)
        except NoDatabase as error:
            hint = "it may have been done: see `grass show` before you try again"
            raise CommitInDoubt(error.message, hint) from error

    # The shell of a round.

    def now_us(self) -> int:
        """Tell the time, in microseconds UTC."""
        return _now_us()

    def now_s(self) -> float:
        """Tell the time of a clock that cannot jump."""
        return time.monotonic()

    def shortage(self) -> StorageError | None:
        """Return the error while the disk has no room; None: it has."""
        return self._store.shortage()

    def reached(self, point: str) -> None:
        """Note that a crash point is reached, where a test may kill the process."""
        crash_point(point)

    def answer(self, reply: asyncio.Future[Any], outcome: object) -> None:
        """Answer a caller."""
        if reply.done():
            return
        if isinstance(outcome, GrassError):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    def send(self, worker: str, message: ToWorker) -> None:
        """Send a message to a worker, if it is connected."""
        self._links.send(worker, message)
        if isinstance(message, Welcome):
            self._welcomed.setdefault(worker, asyncio.Event()).set()

    def wake(self, jobs: set[int]) -> None:
        """Wake the callers that wait for one of these jobs."""
        self._waiters.wake(jobs)

    def committed(self, ended: list[Job], gpus: list[GpuNotice]) -> None:
        """Note a commit: which jobs ended, and which GPUs failed or work again."""
        self._waiters.committed()
        self.requests.output.committed()
        if self.on_news is not None and (ended or gpus):
            self.on_news(ended, gpus)

    def wake_at(self, at_us: int | None) -> None:
        """Have the core look again at this time of the wall clock."""
        self._wall_clock.set(at_us)

    def wake_within(self, delay_s: float) -> None:
        """Have the core look again, at the latest after this time."""
        loop = asyncio.get_running_loop()
        at = loop.time() + delay_s
        if self._timer is None or self._timer[0] > at:
            if self._timer is not None:
                self._timer[1].cancel()
            self._timer = at, loop.call_at(at, self._tick)

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do something after a time."""
        asyncio.get_running_loop().call_later(delay_s, act)

    def log(self, event: LogEvent) -> None:
        """Write an event into the log."""
        log.write(event)

    def refuse(self, said: FromWorker, reason: str) -> None:
        """Log that a worker's message was refused; after a hello, close the link."""
        self._links.refuse(said.worker, said.message, reason)

    def defect(self, error: Exception) -> None:
        """Log an exception that only a mistake in grass explains."""
        log.defect(error)

    def ban(self, worker: str) -> None:
        """Close the link of a worker whose message revealed a defect."""
        self._links.ban(worker)

    def _tick(self) -> None:
        self._timer = None
        self._post(TimerFired(), None)


def _now_us() -> int:
    return time.time_ns() // 1_000
