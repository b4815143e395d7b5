"""Rounds of the broker: the order of reads, decisions, commits and replies; no I/O.

A round takes the calls that wait, up to about 10 ms of work, applies them, has all
changes committed in one transaction, and only then answers the callers and sends starts
to workers; meanwhile calls gather for the next round. A round that cannot be committed
is dropped whole: the core is rebuilt from the store, the callers get the error, and
workers are asked to report again. A defect in the handler of one call may have left
memory in any state, so the core is rebuilt there as well; but only that call gets the
error, and the others are applied again.

A worker whose message revealed a defect is banned for a while, so that it does not do
so again at once. Where the defect came later in the round, and several workers had
messages in it, each round takes a single call until they have reported again: then the
next defect tells which worker it is.

`round` is a generator: it yields what must be read or written and is sent the result,
or has the failure thrown in. So the daemon's shell, which waits for a disk, and the
simulation, which waits for nothing, run the same order.
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from grass.broker.core.applied_calls import (
    UNDECIDED,
    Applied,
    defect,
    split_by_defect,
    workers,
)
from grass.broker.core.attempts import foreign, placing
from grass.broker.core.batch import Batch
from grass.broker.core.broker_core import BrokerCore
from grass.broker.core.calls import (
    AnyCall,
    Edit,
    Enqueue,
    FromWorker,
    Rerun,
    TimerFired,
)
from grass.broker.core.inbox import Inbox
from grass.broker.core.jobs import removals
from grass.broker.core.jobs.bulk_calls import BulkCall
from grass.broker.core.jobs.job_memory import CALLS_KEPT_US
from grass.broker.core.shell_interface import (
    Commit,
    NextEpoch,
    Pause,
    Read,
    ReplyTo,
    Shell,
    Step,
    jobs_query,
)
from grass.broker.core.state import DaemonFlags
from grass.errors import DiskFull, GrassError, LeadLost, Stopping, StorageError
from grass.link.messages import Hello, RemoveOutput, Resync
from grass.log_lines import log_event
from grass.store.interface import Store

MOST_READ = 256
"""Jobs are read for at most this many calls in one round."""
BATCH_S = 0.010
DEFERRED_S = 0.05
"""How long a change that was promised to no caller may wait to be written."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
FULL_PAUSE_S = 1.0
"""How soon to check again whether a full disk has room."""
ADDING = (Enqueue, Rerun, Edit)
"""Calls that take more of a full disk, and never free any of it."""

Round = Generator[Step, Any, None]


class Rounds:
    """The broker's inbox, worked off round by round."""

    def __init__(self, core: BrokerCore, shell: Shell) -> None:
        self.core = core
        self._flags = DaemonFlags()
        self.committing: set[int] = set()
        """Jobs whose last change is not committed yet."""
        self._shell = shell
        self._inbox = Inbox()
        self._applied: list[Applied] = []
        """The calls of the round under way."""
        self._under_way: list[tuple[BulkCall, ReplyTo]] = []
        """Large calls of which slices are left to do or to commit."""
        self._pause_s = FIRST_PAUSE_S
        self._resync_planned = False
        self._deferred = False
        """Whether the work at hand would fail again now, and waits for a timer."""
        self._dropped_workers: dict[str, None] = {}
        """Workers whose messages were dropped, and that the state may not know."""
        self._suspects: set[str] = set()
        """Workers with messages in a round with a defect, and in no good one since."""

    @property
    def idle(self) -> bool:
        """Tell whether there is nothing to do."""
        return not self._inbox and (self._deferred or not self.core.busy)

    def limit_gpus(
        self, strangers: int, jobs: int | None, acknowledge_s: float | None = None
    ) -> None:
        """Set how GPUs are used: strangers beside shares, jobs, and after a fault."""
        self._flags.most_strangers, self._flags.jobs_per_gpu = strangers, jobs
        self._flags.acknowledge_s = acknowledge_s
        self._flags.apply_to(self.core.state)

    def share_store(self) -> None:
        """Note that other brokers may have led before."""
        self._flags.shared = True
        self._flags.apply_to(self.core.state)

    def set_home_worker(self, worker: str) -> None:
        """Note which worker is in the broker's own daemon."""
        self._flags.home_worker = worker
        self._flags.apply_to(self.core.state)

    def stop_starting(self) -> None:
        """Place no job until `resume_starting`, or the end of this daemon."""
        self._flags.starts_jobs = False
        self._flags.apply_to(self.core.state)

    def resume_starting(self) -> None:
        """Place jobs again."""
        self._flags.starts_jobs = True
        self._flags.apply_to(self.core.state)

    def post(self, call: AnyCall, reply: ReplyTo = None) -> None:
        """Add a call to the inbox."""
        if isinstance(call, FromWorker) and isinstance(call.message, Hello):
            call.wanted = foreign.unaccounted(self.core.state, call.message)
        self._inbox.put(call, reply)

    def waiting_from(self, worker: str) -> int:
        """Return how many messages of a worker wait."""
        return self._inbox.waiting_from(worker)

    def round(self) -> Round:
        """Do what waits; yields what is to be read or committed."""
        applied = self._applied = list[Applied]()
        self._deferred = False
        try:
            yield from self._read_jobs()
            yield from self._send_removals()
            self._apply(applied)
            if self.core.state.batch.quiet and not self._overdue(applied):
                self._answer(applied)
                self._shell.wake(self.core.state.batch.moved)
                self.core.state.batch.moved = set()
                self._plan()
                return
            batch = self.core.take()
            self.committing = batch.moved
            yield Commit(batch.changes)
            self._finish(applied, batch)
        except LeadLost as lost:
            self._answer_all(applied, lost)
            raise
        except GrassError as error:
            yield from self._drop(applied, error)
        except Exception as error:  # noqa: BLE001 -- what is committed is still right
            self._shell.defect(error)
            self._ban_faulty_worker(applied)
            told, again = split_by_defect(applied)
            yield from self._drop(told, defect())
            self._put_back(again)

    def _read_jobs(self) -> Round:
        """Read the jobs that waiting calls are about and memory may not know.

        No commit is under way here, so what is read stays true until it is applied.
        """
        for call in self._inbox.unread(MOST_READ):
            call.found = yield Read(jobs_query(call, self.core.state))
            self._inbox.was_read()
        bulks = self.core.state.bulk.verbs
        if bulks and bulks[0].is_unread:
            bulks[0].found = yield Read(jobs_query(bulks[0], self.core.state))

    def _send_removals(self) -> Round:
        """Send removals of output to workers; they are committed already."""
        for worker, number in removals.due(self.core.state):
            paths = yield Read(partial(_paths_of, number))
            removals.sent(self.core.state, worker, number)
            self._shell.send(worker, RemoveOutput(paths, number))

    def _apply(self, applied: list[Applied]) -> None:
        """Apply the calls that wait, and decide once for all of them."""
        self._check_disk()
        deadline = self._shell.now_s() + BATCH_S
        now_us = self._shell.now_us()
        while self._inbox.can_take and self._shell.now_s() < deadline:
            if self._suspects and applied:
                break
            call, reply = self._inbox.take()
            applied.append(Applied(call, reply, UNDECIDED))
            if self._flags.shortage is not None and isinstance(call, ADDING):
                applied[-1] = Applied(call, reply, self._flags.shortage)
                continue
            try:
                outcome = self.core.step(call, now_us)
            except GrassError as error:
                applied[-1] = Applied(call, reply, error)
            else:
                applied[-1] = Applied(call, reply, outcome)
        self._inbox.read_again()
        self.core.advance()
        # A resume among the calls does not override the flags of this daemon.
        self._flags.apply_to(self.core.state)
        self.core.decide(self._shell.now_s())

    def _check_disk(self) -> None:
        """Check whether the disk is full, and check again soon if it is.

        The space that is reserved is for calls that make room, and for what has
        happened: jobs end, and workers report. Unfinished enqueues fail, all of them.
        """
        self._flags.shortage = self._shell.shortage()
        if self._flags.shortage is not None:
            self._shell.wake_within(FULL_PAUSE_S)
            if any(one.reply is None for one in self.core.state.bulk.enqueues):
                raise self._flags.shortage

    def _overdue(self, applied: list[Applied]) -> bool:
        """Tell whether deferred changes are due; otherwise set a timer for them."""
        if not self.core.state.batch.changes:
            return False
        if any(isinstance(one.call, TimerFired) for one in applied):
            return True
        self._shell.wake_within(DEFERRED_S)
        return False

    def _finish(self, applied: list[Applied], batch: Batch) -> None:
        """Answer and send: what was decided is durable now."""
        self._pause_s = FIRST_PAUSE_S
        self.committing = set()
        if self._suspects:
            self._suspects -= workers(applied)
        self._shell.reached("broker.before-answer")
        self._answer(applied)
        self._shell.reached("broker.before-dispatch")
        for worker, message in batch.outbox:
            said = placing.unless_obsolete(self.core.state, worker, message)
            self._shell.send(worker, said)
        self._shell.ask_engines(batch.engine_effects)
        for event in batch.log_events:
            self._shell.log(event)
        self._shell.wake(batch.moved)
        self._shell.committed(batch.ended, batch.gpu_notices)
        self._plan()

    def _plan(self) -> None:
        """Set the timers that the core needs."""
        self._shell.wake_at(self.core.next_time())
        wake_at = self.core.wake_at()
        if wake_at is not None:
            self._shell.wake_within(max(0.0, wake_at - self._shell.now_s()))

    def _answer(self, applied: list[Applied]) -> None:
        self._applied = []
        for call, reply, outcome in applied:
            if reply is None:
                if isinstance(outcome, GrassError) and isinstance(call, FromWorker):
                    self._shell.refuse(call, str(outcome))
                elif isinstance(outcome, GrassError):
                    name = type(call).__name__
                    event = log_event("call.refused", call=name, error=outcome)
                    self._shell.log(event)
            elif isinstance(outcome, BulkCall):
                self._under_way.append((outcome, reply))
            else:
                self._shell.answer(reply, outcome)
        # Large calls are answered when their last slice has been committed.
        for large, reply in self._under_way:
            if large.reply is not None:
                self._shell.answer(reply, large.reply)
        self._under_way = [one for one in self._under_way if one[0].reply is None]

    def _ban_faulty_worker(self, applied: list[Applied]) -> None:
        """Ban the worker whose message revealed a defect, if that is known."""
        if applied and applied[-1].outcome is UNDECIDED:
            applied = applied[-1:]
        self._suspects = workers(applied)
        alone = all(isinstance(one.call, FromWorker | TimerFired) for one in applied)
        if alone and len(self._suspects) == 1:
            self._shell.ban(self._suspects.pop())

    def _drop(self, applied: list[Applied], error: GrassError) -> Round:
        """Drop all that was not committed, and have workers report again."""
        self._shell.log(log_event("batch.dropped", error=error))
        self._answer_all(applied, error)
        self._dropped_workers.update(
            (one.call.worker, None)
            for one in applied
            if isinstance(one.call, FromWorker)
        )
        self.core = yield from self._rebuilt()
        self._flags.apply_to(self.core.state)
        self.committing = set()
        if not self._resync_planned:
            # Once for all that is dropped until then: each report may be dropped, too,
            # and with several workers the requests would multiply.
            self._resync_planned = True
            self._shell.later(self._pause_s, self._ask_for_reports)
        # Leases of workers that are away begin to count, and start times are checked.
        self._deferred = True
        self._shell.wake_within(self._pause_s)
        longest_s = FULL_PAUSE_S if isinstance(error, DiskFull) else LONGEST_PAUSE_S
        self._pause_s = min(2 * self._pause_s, longest_s)

    def _answer_all(self, applied: list[Applied], error: GrassError) -> None:
        """Answer all calls of a round, and those that need another one."""
        self._applied = []
        unread = self._inbox.give_up_unread()
        self._dropped_workers.update(
            (call.worker, None) for call, _ in unread if isinstance(call, FromWorker)
        )
        for reply in [*(one.reply for one in applied), *(one[1] for one in unread)]:
            if reply is not None:
                self._shell.answer(reply, error)
        for large, reply in self._under_way:
            self._shell.answer(reply, large.error_for(error))
        self._under_way = []

    def give_up(self, lost: LeadLost) -> None:
        """Answer all who wait: this broker leads no more; a commit may be under way."""
        cut_off = Stopping("the broker lost the lead before it answered")
        self._answer_all(self._applied, cut_off)
        for reply in self._inbox.clear():
            self._shell.answer(reply, lost)

    def _rebuilt(self) -> Generator[Step, Any, BrokerCore]:
        """Rebuild the core from the store, however often reading fails.

        A commit whose outcome is not known must not follow what is read here: where
        several brokers share a store the next epoch keeps it out.
        """
        while True:
            now_us = self._shell.now_us()
            try:
                yield NextEpoch()
                core: BrokerCore = yield Read(loaded(now_us))
            except LeadLost:
                raise
            except StorageError as error:
                self._shell.log(log_event("store.unreadable", error=error))
                yield Pause(self._pause_s)
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            else:
                return core

    def _ask_for_reports(self) -> None:
        self._resync_planned = False
        for worker in {**self._dropped_workers, **self.core.state.workers}:
            self._shell.send(worker, Resync())
        self._dropped_workers.clear()

    def _put_back(self, calls: list[Applied]) -> None:
        """Have calls applied again, before those that came after them."""
        for call, reply, _ in reversed(calls):
            self._inbox.put_back(call, reply)


def _paths_of(removal: int, store: Store) -> list[str]:
    return store.removal_paths(removal)


def loaded(now_us: int) -> Callable[[Store], BrokerCore]:
    """Make the query for a core that knows all that was committed."""
    return lambda store: BrokerCore(store.load(now_us - CALLS_KEPT_US), now_us)
