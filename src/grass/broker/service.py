"""The shell around the broker's core: inbox, commit, acknowledge, dispatch.

One task owns the core. It takes the calls that wait, up to about 10 ms of work, applies
them, commits everything in one transaction, and only then answers the callers and sends
starts to workers; the next batch gathers meanwhile. A batch that cannot be committed is
dropped whole: the core is rebuilt from the store, the callers get the error, and
workers are asked to report again.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from grass.broker import arrivals, relay
from grass.broker.arrivals import Arrival
from grass.broker.calls import Call, FromWorker, Reading, Tick, WorkerGone
from grass.broker.core import BrokerCore
from grass.broker.lookups import found, unread
from grass.broker.output import OutputStreams
from grass.broker.state import CALLS_KEPT_US, Effects, State
from grass.broker.waiters import Waiters
from grass.broker.wallclock import WallClock
from grass.broker.writer import Writer
from grass.errors import Busy, GrassError, StorageError
from grass.link.messages import (
    Exited,
    Hello,
    OutputData,
    Resync,
    Started,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.link.pair import LinkEnd
from grass.model.job import Job
from grass.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_WAITING_CALLS = 10_000
BATCH_S = 0.010
CURIOUS_S = 0.01
"""How long news that nobody was promised may wait to be looked at."""
GATHER_S = 0.004
"""How long ends of short jobs may gather, while others follow on their units."""
SETTLE_S = 0.05
"""How long such news may then wait to be written."""
LONGEST_PAUSE_S = 30.0

_Reply = asyncio.Future[Any] | None
_Waiting = tuple[Call, _Reply]
_Applied = tuple[Call, _Reply, Any]
"""A call, who waits for it, and what came of it."""


class Broker:
    """The owner of all state."""

    def __init__(self, store: Store, is_fatal: Callable[[StorageError], bool]) -> None:
        """Load the state; `run` makes it live."""
        self._store = store
        self._is_fatal = is_fatal
        self._core = self._loaded()
        self._inbox: deque[_Waiting] = deque()
        self._unread: deque[Reading] = deque()
        self._arrived = asyncio.Event()
        self._links: dict[str, LinkEnd[ToWorker, ToBroker]] = {}
        self._committing: set[int] = set()
        self._waiters = Waiters()
        self._welcomed: dict[str, asyncio.Event] = {}
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._arriving: list[tuple[Arrival, asyncio.Future[Any]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._pause_s = 1.0
        self.pruning = asyncio.Lock()
        """One prune at a time: two would count the same jobs as theirs."""
        self.output = OutputStreams(self._link_of)
        self.on_ended: Callable[[list[Job]], None] | None = None
        """Told of jobs that ended, once that is committed."""
        self._wall_clock = WallClock(self._tick)

    @property
    def state(self) -> State:
        """What is in memory now; for reading only."""
        return self._core.state

    async def call(self, call: Call) -> Any:  # noqa: ANN401 -- each call has its reply
        """Ask for something, and return its reply once it is durable."""
        if len(self._inbox) >= MOST_WAITING_CALLS:
            raise Busy("the broker has too much to do", "try again in a moment")
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._post(call, reply)
        return await reply

    async def read(self, query: Callable[[Store], T]) -> T:
        """Run a query of the store without holding anything up."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, query, self._store)

    def unfinished(self, job: int) -> bool:
        """Tell whether a job has not ended, or its end is not committed yet."""
        # Memory runs ahead of the disk while a batch is being committed.
        return job in self.state.jobs or job in self._committing

    async def ended(self, jobs: Iterable[int]) -> None:
        """Return when none of these jobs is unfinished any more."""
        for job in jobs:
            while self.unfinished(job):
                await self.moved(job)

    async def written(self, job: int) -> None:
        """Return when the store knows what memory knows of this job."""
        while job in self._committing:
            await self.moved(job)

    async def next_commit(self) -> None:
        """Return when something more has been committed."""
        await self._waiters.next_commit()

    async def moved(self, job: int) -> None:
        """Return when the job's state or attempt has changed."""
        await self._waiters.moved(job)

    async def run(self) -> None:
        """Own the core until cancelled; raise if the store cannot go on."""
        writer = Writer(self._store)
        try:
            while True:
                await self._arrived.wait()
                await self._batch(writer)
        finally:
            writer.stop()
            self._readers.shutdown()
            self._wall_clock.close()

    async def welcomed(self, worker: str) -> None:
        """Return when a worker's first report has been taken in and committed."""
        await self._welcomed.setdefault(worker, asyncio.Event()).wait()

    def start_no_more(self) -> None:
        """Place no job until the daemon is started again; nothing is written down."""
        self.state.scheduler.set_paused(True)

    def start_again(self) -> None:
        """Take `start_no_more` back."""
        self.state.scheduler.set_paused(self.state.paused)

    def send(self, worker: str, message: ToWorker) -> None:
        """Say something to a worker that no state depends on."""
        link = self._links.get(worker)
        if link is not None:
            link.send(message)

    def serve(self, link: LinkEnd[ToWorker, ToBroker]) -> None:
        """Listen to one worker until its link closes."""
        caller = _Caller(self, link)
        link.listen(caller.arrived, caller.ended)

    def heard(self, worker: str, messages: list[ToBroker]) -> None:
        """Take what a worker said."""
        for message in messages:
            if isinstance(message, OutputData):
                self.output.arrived(message)
            elif isinstance(message, Started):
                # Nobody waits for this but the curious: it goes along with the next
                # batch, which for a short job is its end.
                self._inbox.append((FromWorker(worker, message), None))
                self._wake_within(CURIOUS_S)
            elif isinstance(message, Exited) and self._may_wait(message):
                self._inbox.append((FromWorker(worker, message), None))
                self._wake_within(GATHER_S)
            else:
                self._post(FromWorker(worker, message), None)

    def _may_wait(self, message: Exited) -> bool:
        return relay.may_wait(self.state, message.attempt)

    def connected(self, worker: str, link: LinkEnd[ToWorker, ToBroker]) -> None:
        """Send to this worker over this link from now on."""
        self._links[worker] = link

    def disconnected(self, worker: str, link: LinkEnd[ToWorker, ToBroker]) -> None:
        """Note that a link ended, unless the worker has called again since."""
        if self._links.get(worker) is link:
            del self._links[worker]
            self._post(WorkerGone(worker), None)

    def _loaded(self) -> BrokerCore:
        now = _now_us()
        return BrokerCore(self._store.load(now - CALLS_KEPT_US), now)

    def _link_of(self, worker: str) -> LinkEnd[ToWorker, ToBroker] | None:
        return self._links.get(worker)

    def _post(self, call: Call, reply: _Reply) -> None:
        if isinstance(call, Reading) and unread(call):
            self._unread.append(call)
        self._inbox.append((call, reply))
        self._arrived.set()

    async def _batch(self, writer: Writer) -> None:
        applied: list[_Applied] = []
        try:
            await self._look_up()
            self._apply(applied)
            if self.state.quiet and not self._overdue(applied):
                self._answer(applied)
                self._waiters.wake(self.state.moved)
                self.state.moved = set()
                return
            effects = self._core.take()
            self._committing = effects.moved
            await writer.commit(effects.changes)
        except StorageError as error:
            await self._drop_batch(applied, error)
        except Exception:
            log.exception("a defect of grass; going on from what was committed")
            hint = "see the daemon's log, and please report it"
            defect = GrassError("something went wrong inside grass", hint)
            await self._drop_batch(applied, defect)
        else:
            self._pause_s = 1.0
            self._committing = set()
            self._answer(applied)
            self._dispatch(effects)
            self._announce(effects)
            self._set_timer()

    async def _look_up(self) -> None:
        """Read the jobs that waiting calls are about and memory may not know.

        No commit is under way here, so what is read stays true until it is applied.
        """
        while self._unread:
            call = self._unread.popleft()
            call.found = await self.read(found(call.wanted))

    def _apply(self, applied: list[_Applied]) -> None:
        """Apply what waits, and let the scheduler decide once for all of it."""
        deadline = time.monotonic() + BATCH_S
        now_us = _now_us()
        while self._inbox and time.monotonic() < deadline:
            first = self._inbox[0][0]
            if isinstance(first, Reading) and unread(first):
                break
            call, reply = self._inbox.popleft()
            applied.append((call, reply, None))
            try:
                applied[-1] = (call, reply, self._core.step(call, now_us))
            except GrassError as error:
                applied[-1] = (call, reply, error)
        self._core.advance()
        self._core.decide(time.monotonic())
        if not self._inbox and not self._core.busy:
            self._arrived.clear()

    def _overdue(self, applied: list[_Applied]) -> bool:
        """Tell whether small news waited long enough; else set a timer for them."""
        if not self.state.changes:
            return False
        if any(isinstance(call, Tick) for call, _, _ in applied):
            return True
        self._wake_within(SETTLE_S)
        return False

    def _answer(self, applied: list[_Applied]) -> None:
        for call, reply, outcome in applied:
            if reply is None:
                if isinstance(outcome, GrassError):
                    log.warning("refused %s: %s", type(call).__name__, outcome)
            elif isinstance(outcome, Arrival):
                self._arriving.append((outcome, reply))
            elif not reply.done():
                _settle(reply, outcome)
        self._answer_arrived()

    def _answer_arrived(self) -> None:
        """Answer large calls whose last slice has been committed."""
        for arrival, reply in self._arriving:
            if arrival.complete and not reply.done():
                _settle(reply, arrivals.reply(arrival))
        self._arriving = [one for one in self._arriving if not one[1].done()]

    def _dispatch(self, effects: Effects) -> None:
        for worker, message in effects.outbox:
            self.send(worker, message)
            if isinstance(message, Welcome):
                self._welcomed.setdefault(worker, asyncio.Event()).set()
        self._waiters.wake(effects.moved)

    def _announce(self, effects: Effects) -> None:
        self._waiters.committed()
        if self.on_ended is not None and effects.ended:
            self.on_ended(effects.ended)

    async def _drop_batch(self, applied: list[_Applied], error: GrassError) -> None:
        log.error("a batch was dropped: %s", error)
        waiting = [reply for _, reply, _ in applied if reply is not None]
        waiting += [reply for _, reply in self._arriving]
        self._arriving = []
        for reply in waiting:
            if not reply.done():
                reply.set_exception(error)
        if isinstance(error, StorageError) and self._is_fatal(error):
            raise error
        await self._rebuild()

    async def _rebuild(self) -> None:
        """Forget all that was not committed; workers will report again."""
        self._core = await self._reloaded()
        self._committing = set()
        asyncio.get_running_loop().call_later(self._pause_s, self._ask_for_reports)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    async def _reloaded(self) -> BrokerCore:
        """Read the store anew, however long that takes to work."""
        while True:
            try:
                return await self.read(lambda _store: self._loaded())
            except StorageError as error:
                if self._is_fatal(error):
                    raise
                log.error("the store cannot be read: %s", error)  # noqa: TRY400
                await asyncio.sleep(self._pause_s)
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _ask_for_reports(self) -> None:
        for link in self._links.values():
            link.send(Resync())

    def _set_timer(self) -> None:
        wake_at = self._core.wake_at()
        if wake_at is not None:
            self._wake_within(max(0.0, wake_at - time.monotonic()))
        self._wall_clock.set(self._core.next_time())

    def _wake_within(self, delay_s: float) -> None:
        """Have the core look again, at the latest after this time."""
        loop = asyncio.get_running_loop()
        at = loop.time() + delay_s
        if self._timer is None or self._timer.when() > at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(at, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._post(Tick(), None)


def _settle(reply: asyncio.Future[Any], outcome: object) -> None:
    if isinstance(outcome, GrassError):
        reply.set_exception(outcome)
    else:
        reply.set_result(outcome)


class _Caller:
    """The broker's side of one link: knows who speaks once it has said hello."""

    def __init__(self, broker: Broker, link: LinkEnd[ToWorker, ToBroker]) -> None:
        self._broker = broker
        self._link = link
        self._worker = ""

    def arrived(self, messages: list[ToBroker]) -> None:
        for message in messages:
            if isinstance(message, Hello):
                self._worker = message.worker
                self._broker.connected(self._worker, self._link)
        self._broker.heard(self._worker, messages)

    def ended(self) -> None:
        self._broker.disconnected(self._worker, self._link)


def _now_us() -> int:
    return time.time_ns() // 1_000
