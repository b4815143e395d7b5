"""A broker: the real core and the real order of rounds, with a simulated shell.

The counterpart of `grass.broker.shell.service`. A round is a generator; this carries
its steps out on the virtual clock, so a commit takes time, calls arrive meanwhile, and
a kill may come before it, in the middle of it or right after it.
"""

from collections.abc import Callable
from typing import Any, Protocol

from grass.api.routes.job_calls import blobs_of
from grass.broker.core.attempts import prefetch
from grass.broker.core.calls import (
    AnyCall,
    Enqueue,
    FromWorker,
    Prune,
    TimerFired,
    WorkerGone,
)
from grass.broker.core.jobs.enqueue import answered
from grass.broker.core.pools.pool_memory import PoolEffect
from grass.broker.core.rounds import Round, Rounds, loaded
from grass.broker.core.shell_interface import Commit, NextEpoch, Pause, Read, Step
from grass.broker.core.state import State
from grass.broker.shell.links import Links, WorkerConnection
from grass.broker.shell.service import STARTED_DEFERRED_S
from grass.errors import LeadLost, StorageError
from grass.link.messages import (
    Exited,
    Heartbeat,
    ReadBlob,
    Started,
    ToBroker,
    ToWorker,
)
from grass.log_lines import LogEvent
from grass.model.amount_text import WHOLE
from grass.model.jobs.job import Job
from grass.model.worker import GpuNotice
from grass.store.changes import Changes
from tests.simulation.channels import Link
from tests.simulation.faulty_store import FaultyStore, is_fatal
from tests.simulation.kept_blobs import SimKeptBlobs, SpoiledBlobs
from tests.simulation.world import MILLISECOND, SECOND, Event, Host, Killed, Violation


class Reply(Protocol):
    """A caller who waits."""

    def answer(self, outcome: object) -> None:
        """Be told what came of it."""


ACKNOWLEDGE_S = 2.0
"""How long a GPU must work after a fault."""

Make = Callable[[AnyCall, Reply], None]


class Observer(Protocol):
    """Who looks at what a broker says to the world."""

    def sent(self, worker: str, message: ToWorker) -> None:
        """A message leaves for a worker."""

    def decided(self, changes: Changes, wall_us: int) -> None:
        """A broker, with this time on its clock, wants a batch to be written."""

    def told_ended(self, jobs: list[Job]) -> None:
        """People are told that these jobs ended."""


class Lead(Protocol):
    """The lead of a broker that shares its store with others."""

    epoch: int

    def trusts(self) -> bool:
        """Return whether the broker may speak as the leader now."""

    def lost(self, reason: str) -> None:
        """Have the broker step down."""

    def next_epoch(self) -> None:
        """Have the broker resumed with the next epoch."""


class AloneAtStore:
    """The lead of a broker that has its store to itself."""

    epoch = 0

    def trusts(self) -> bool:
        """Return True: there is no other."""
        return True

    def lost(self, reason: str) -> None:
        """Raise: this cannot happen."""
        raise Violation(f"a lone broker lost the lead: {reason}")

    def next_epoch(self) -> None:
        """Never called."""


class SimBroker:
    """One broker's life; it is its rounds' world outside."""

    def __init__(
        self,
        host: Host,
        store: FaultyStore,
        observer: Observer,
        lead: Lead | None = None,
        spoiled: SpoiledBlobs | None = None,
    ) -> None:
        self.alive = True
        self._lead: Lead = lead or AloneAtStore()
        self._shared = lead is not None
        self.epoch = self._lead.epoch
        self.dies_in = 0
        self.on_killed: Callable[[], None] = lambda: None
        self.on_fatal: Callable[[], None] = lambda: None
        self._host = host
        self._store = store
        self._observer = observer
        self.rounds = Rounds(loaded(host.wall_us)(store), self)
        self.rounds.limit_gpus(WHOLE // 10, None, ACKNOWLEDGE_S)
        self._links = Links(self)
        self._served: list[Link] = []
        self._turning = False
        self._steps: Round | None = None
        self._writing: Changes | None = None
        self._ticking: Event | None = None
        self._alarm: Event | None = None
        self._alarm_us: int | None = None
        self._lag_s = self._last_s = 0.0
        epoch = lambda: self.epoch  # noqa: E731
        self.blobs = SimKeptBlobs(host, self, store, epoch, spoiled or SpoiledBlobs())
        # The clocks of those who are away begin to run.
        self._post(TimerFired(), None)

    @property
    def state(self) -> State:
        """What it knows."""
        return self.rounds.core.state

    @property
    def turning(self) -> bool:
        """Whether a round is under way or due."""
        return self._turning

    @property
    def all_committed(self) -> bool:
        """Whether everything it knows is committed."""
        return not self._turning and self.rounds.idle and not self.state.batch.changes

    def end(self) -> None:
        """Be gone; a commit under way is durable or not, as luck has it."""
        self.alive = False
        for link in self._served:
            link.close()
        if self._writing is not None and self._host.chance(0.5):
            self._host.note("the commit under way is on the disk")
            self._store.write_anyway(self._writing, self.epoch)

    def step_down(self) -> None:
        """Be no leader any more; all who wait are told."""
        try:
            self.rounds.give_up(LeadLost("another broker leads"))
        finally:
            # A kill may come while they are told.
            self.end()

    def resume(self, epoch: int) -> None:
        """Go on with the next epoch: the state is read anew."""
        self.epoch = epoch
        self._go_on(lambda steps: steps.send(None))

    # Who speaks to it.

    def call(self, call: AnyCall, reply: Reply) -> None:
        """Take a call."""
        if not self._lead.trusts():
            reply.answer(LeadLost("another broker leads"))
            return
        self._unless_answered(call, reply, self._make)

    def _unless_answered(self, call: AnyCall, reply: Reply, make: Make) -> None:
        """Make a call, as the API does where brokers' clocks may tell another time."""
        key = call.key if self._shared and isinstance(call, Enqueue) else None
        known = self._store.call(key) if key is not None else None
        if known is None or not isinstance(call, Enqueue):
            make(call, reply)
        else:
            reply.answer(answered(self.state, known, call.actor))

    def _make(self, call: AnyCall, reply: Reply) -> None:
        """Make a call, and look after the blobs that it names, or named."""
        if isinstance(call, Enqueue) and blobs_of(call):
            post = lambda one, to: self._unless_answered(one, to, self._post)  # noqa: E731
            self.blobs.enqueue(call, reply, post)
        elif isinstance(call, Prune):
            self._post(call, _Pruning(self, reply))
        else:
            self._post(call, reply)

    def serve(self, link: Link, worker: str, address: str | None) -> None:
        """Listen to a worker; one without an address is in this daemon."""
        self._served.append(link)
        end = BrokerEnd(link)
        connection = self._links.open(end, worker, address)
        end.listen(connection.arrived, connection.ended)
        link.on_given_up = connection.ended

    def give_up(self, link: Link) -> None:
        """Close a link on which nothing was heard for too long."""
        link.to_broker.drop()
        link.to_worker.close()
        link.on_given_up()

    def ask_engines(self, effects: list[PoolEffect]) -> None:
        """Ask nobody: there are no pools here."""
        assert not effects

    def connected(self, connection: WorkerConnection) -> None:
        """Note that a worker speaks on another link than before."""
        if connection.address is None:
            self.rounds.set_home_worker(connection.worker)

    def disconnected(self, worker: str) -> None:
        """Note that a worker's link ended."""
        self._post(WorkerGone(worker), None)

    def received(self, connection: WorkerConnection, messages: list[ToBroker]) -> None:
        """Take what a worker said."""
        if not self._lead.trusts():
            return
        worker = connection.worker
        self.rounds.core.received(worker, self.now_us())
        for message in messages:
            call = FromWorker(worker, message, connection.address, connection.instance)
            if isinstance(message, Heartbeat):
                connection.answer(message, self.state)
            elif isinstance(message, ReadBlob):
                self.blobs.read(message, lambda piece: self._links.send(worker, piece))
            elif isinstance(message, Started):
                self.rounds.post(call)
                self.wake_within(STARTED_DEFERRED_S)
            elif isinstance(message, Exited) and (
                wait_s := prefetch.may_wait_s(self.state, message.attempt)
            ):
                self.rounds.post(call)
                self.wake_within(wait_s)
            else:
                self._post(call, None)

    def _post(self, call: AnyCall, reply: Reply | None) -> None:
        self.rounds.post(call, reply)
        self._turn()

    # Rounds.

    def _turn(self) -> None:
        if not self._turning:
            self._turning = True
            delay = self._host.between(20, 200)
            self._host.after(delay, "round", self._begin, self)

    def _begin(self) -> None:
        self._lag_s = 0.0
        self._steps = self.rounds.round()
        self._go_on(lambda steps: next(steps))

    def _go_on(self, act: Callable[[Round], Step]) -> None:
        assert self._steps is not None
        try:
            step = act(self._steps)
        except StopIteration:
            self._turning = False
            if not self.rounds.idle:
                self._turn()
        except LeadLost as lost:
            self._lead.lost(str(lost))
        else:
            self._perform(step)

    def _perform(self, step: Step) -> None:
        match step:
            case Commit(changes):
                self.crash_point()
                self._observer.decided(changes, self._host.wall_us)
                self._writing = changes
                delay = self._host.between(100, 2 * MILLISECOND)
                self._host.after(delay, "commit", lambda: self._commit(changes), self)
            case Read(query):
                delay = self._host.between(20, 500)
                act = lambda: self._answer_step(lambda: self._store.read(query))  # noqa: E731
                self._host.after(delay, "read", act, self)
            case NextEpoch():
                if self._shared:
                    self._lead.next_epoch()
                else:
                    self._go_on(lambda steps: steps.send(None))
            case Pause(seconds):
                act = lambda: self._answer_step(lambda: None)  # noqa: E731
                self._host.after(int(seconds * SECOND), "pause", act, self)

    def _commit(self, changes: Changes) -> None:
        self._writing = None
        self._answer_step(lambda: self._store.commit(changes, self.epoch))

    def _answer_step(self, act: Callable[[], Any]) -> None:
        try:
            came_of_it = act()
        except StorageError as error:
            failure = error
            self._go_on(lambda steps: steps.throw(failure))
            if is_fatal(error):
                raise Killed(self.on_fatal) from None
        else:
            self.crash_point()
            self._go_on(lambda steps: steps.send(came_of_it))

    def crash_point(self) -> None:
        """Die here, if that was drawn."""
        if self.dies_in:
            self.dies_in -= 1
            if not self.dies_in:
                raise Killed(self.on_killed)

    # What a round wants of the world.

    def now_us(self) -> int:
        """Tell the time, in microseconds UTC."""
        return self._host.wall_us

    def now_s(self) -> float:
        """Tell the time of a clock that cannot jump; now and then work takes long."""
        if self._host.chance(0.02):
            self._lag_s += 0.006
        self._last_s = max(self._last_s, self._host.now / SECOND + self._lag_s)
        return self._last_s

    def shortage(self) -> StorageError | None:
        """Tell that nothing may be added for want of room."""
        return self._store.shortage()

    def reached(self, point: str) -> None:
        """Do nothing: each answer and each send has a crash point of its own."""

    def answer(self, reply: Reply, outcome: object) -> None:
        """Tell a caller what came of a call."""
        self.crash_point()
        reply.answer(outcome)

    def send(self, worker: str, message: ToWorker) -> None:
        """Say something to a worker, if it is connected."""
        self.crash_point()
        self._observer.sent(worker, message)
        self._links.send(worker, message)

    def wake(self, jobs: set[int]) -> None:
        """Do nothing: no client waits for single jobs."""

    def committed(self, ended: list[Job], gpus: list[GpuNotice]) -> None:
        """Tell that something was committed."""
        self._observer.told_ended(ended)

    def wake_within(self, delay_s: float) -> None:
        """Have a `TimerFired` posted, at the latest after this time."""
        delay = int(delay_s * SECOND)
        planned, at = self._ticking, self._host.now + delay
        if planned is None or at < planned.at:
            self._host.cancel(planned)
            self._ticking = self._host.after(delay, "tick", self._tick, self)

    def _tick(self) -> None:
        self._ticking = None
        self._post(TimerFired(), None)

    def wake_at(self, at_us: int | None) -> None:
        """Have a `TimerFired` posted at this time of the wall clock."""
        if at_us != self._alarm_us:
            self._alarm_us = at_us
            self._arm()

    def _arm(self) -> None:
        self._host.cancel(self._alarm)
        self._alarm = None
        if self._alarm_us is not None:
            delay = self._alarm_us - self._host.wall_us
            self._alarm = self._host.after(delay, "alarm", self._rang, self)

    def _rang(self) -> None:
        self._alarm = self._alarm_us = None
        self._tick()

    def clock_jumped(self) -> None:
        """Look at the wall clock again, as its timer does when it was set."""
        if self._alarm_us is not None:
            if self._alarm_us <= self._host.wall_us:
                self._alarm_us = None
            self._arm()
            self._tick()

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do something after a time."""
        self._host.after(int(delay_s * SECOND), "later", act, self)

    def refuse(self, said: FromWorker, reason: str) -> None:
        """Note that a worker's words were refused; after a hello, hang up."""
        self._links.refuse(said.worker, said.message, reason)

    def log(self, event: LogEvent) -> None:
        """Write an event into the log."""
        self._host.note(f"log: {event}")
        if event.name == "call.refused":
            raise Violation(f"the broker cannot take what a worker says: {event}")

    def defect(self, error: Exception) -> None:
        """Write an error that is ours into the log."""
        raise Violation(f"a defect: {error!r}") from error

    def ban(self, worker: str) -> None:
        """Close the link of a worker whose message brought out a defect."""
        self._links.ban(worker)


class _Pruning:
    """The reply to a call that forgets jobs, and then their blobs."""

    def __init__(self, broker: SimBroker, reply: Reply) -> None:
        self._broker, self._reply = broker, reply

    def answer(self, outcome: object) -> None:
        """Forget the blobs of what was pruned."""
        if isinstance(outcome, list):
            self._broker.blobs.pruned(outcome)
        self._reply.answer(outcome)


class BrokerEnd:
    """A link as the broker holds it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def send(self, message: ToWorker) -> None:
        """Say something to the worker."""
        self._link.to_worker.send(message)

    def listen(
        self, arrived: Callable[[list[ToBroker]], None], ended: Callable[[], None]
    ) -> None:
        """Have messages handed over from now on."""
        self._link.to_broker.listen(arrived, ended)

    def close(self, refusal: str = "") -> None:
        """Hang up."""
        self._link.close()
