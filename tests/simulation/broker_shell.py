"""A broker: the real core and the real order of rounds, with a simulated shell.

The counterpart of `grass.broker.service`. A round is a generator; this carries its
steps out on the virtual clock, so a commit takes time, calls arrive meanwhile, and a
kill may come before it, in the middle of it or right after it.
"""

from collections.abc import Callable
from typing import Any, Protocol

from grass.broker import relay
from grass.broker.calls import Call, FromWorker, Tick, WorkerGone
from grass.broker.rounds import Commit, Pause, Read, Round, Rounds, Step, loaded
from grass.broker.service import CURIOUS_S, GATHER_S
from grass.broker.state import State
from grass.errors import StorageError
from grass.link.messages import Exited, Hello, Started, ToBroker, ToWorker
from grass.model.job import Job
from grass.store.changes import Changes
from tests.simulation.channels import Link
from tests.simulation.faulty_store import FaultyStore, is_fatal
from tests.simulation.world import MILLISECOND, SECOND, Event, Killed, Violation, World


class Reply(Protocol):
    """A caller who waits."""

    def answer(self, outcome: object) -> None:
        """Be told what came of it."""


class Observer(Protocol):
    """Who looks at what a broker says to the world."""

    def sent(self, message: ToWorker) -> None:
        """A message leaves for the worker."""

    def told_ended(self, jobs: list[Job]) -> None:
        """People are told that these jobs ended."""


class SimBroker:
    """One broker's life; it is its rounds' world outside."""

    def __init__(self, world: World, store: FaultyStore, observer: Observer) -> None:
        """Load what is on the disk."""
        self.alive = True
        self.dies_in = 0
        self.on_killed: Callable[[], None] = lambda: None
        self.on_fatal: Callable[[], None] = lambda: None
        self._world = world
        self._store = store
        self._observer = observer
        self.rounds = Rounds(loaded(world.wall_us)(store), self)
        self._links: dict[str, Link] = {}
        self._served: list[Link] = []
        self._newest: dict[str, int] = {}
        """Which link a worker last said hello on, also when that has ended."""
        self._turning = False
        self._steps: Round | None = None
        self._writing: Changes | None = None
        self._ticking: Event | None = None
        self._alarm: Event | None = None
        self._alarm_us: int | None = None
        self._lag_s = self._last_s = 0.0

    @property
    def state(self) -> State:
        """What it knows."""
        return self.rounds.core.state

    @property
    def settled(self) -> bool:
        """Whether everything it knows is committed."""
        return not self._turning and self.rounds.idle and not self.state.changes

    def end(self) -> None:
        """Be gone; a commit under way is durable or not, as luck has it."""
        self.alive = False
        for link in self._served:
            link.close()
        if self._writing is not None and self._world.chance(0.5):
            self._world.note("the commit under way is on the disk")
            self._store.write_anyway(self._writing)

    # Who speaks to it.

    def call(self, call: Call, reply: Reply) -> None:
        """Take a caller's wish."""
        self._post(call, reply)

    def serve(self, link: Link) -> None:
        """Listen to a worker."""
        self._served.append(link)
        caller = _Caller(self, link)
        link.to_broker.listen(caller.arrived, caller.ended)

    def outdated(self, worker: str, link: Link) -> bool:
        """Tell whether a worker has said hello on a newer link than this one."""
        return self._served.index(link) < self._newest.get(worker, 0)

    def connected(self, worker: str, link: Link) -> None:
        """Send to this worker over this link from now on."""
        self._links[worker] = link
        self._newest[worker] = self._served.index(link)

    def disconnected(self, worker: str, link: Link) -> None:
        """Note that a link ended, unless the worker has called again since."""
        if self._links.get(worker) is link:
            del self._links[worker]
            self._post(WorkerGone(worker), None)

    def heard(self, worker: str, messages: list[ToBroker]) -> None:
        """Take what a worker said."""
        for message in messages:
            if isinstance(message, Started):
                self.rounds.post(FromWorker(worker, message))
                self.wake_within(CURIOUS_S)
            elif isinstance(message, Exited) and relay.may_wait(
                self.state, message.attempt
            ):
                self.rounds.post(FromWorker(worker, message))
                self.wake_within(GATHER_S)
            else:
                self._post(FromWorker(worker, message), None)

    def _post(self, call: Call, reply: Reply | None) -> None:
        self.rounds.post(call, reply)
        self._turn()

    # Rounds.

    def _turn(self) -> None:
        if not self._turning:
            self._turning = True
            delay = self._world.between(20, 200)
            self._world.after(delay, "round", self._begin, self)

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
        else:
            self._perform(step)

    def _perform(self, step: Step) -> None:
        match step:
            case Commit(changes):
                self.crash_point()
                self._writing = changes
                delay = self._world.between(100, 2 * MILLISECOND)
                self._world.after(delay, "commit", lambda: self._commit(changes), self)
            case Read(query):
                delay = self._world.between(20, 500)
                act = lambda: self._answer_step(lambda: query(self._store))  # noqa: E731
                self._world.after(delay, "read", act, self)
            case Pause(seconds):
                act = lambda: self._answer_step(lambda: None)  # noqa: E731
                self._world.after(int(seconds * SECOND), "pause", act, self)

    def _commit(self, changes: Changes) -> None:
        self._writing = None
        self._answer_step(lambda: self._store.commit(changes))

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
        return self._world.wall_us

    def now_s(self) -> float:
        """Tell the time of a clock that cannot jump; now and then work takes long."""
        if self._world.chance(0.02):
            self._lag_s += 0.006
        self._last_s = max(self._last_s, self._world.now / SECOND + self._lag_s)
        return self._last_s

    def answer(self, reply: Reply, outcome: object) -> None:
        """Tell a caller what came of a call."""
        self.crash_point()
        reply.answer(outcome)

    def send(self, worker: str, message: ToWorker) -> None:
        """Say something to a worker, if it is connected."""
        self.crash_point()
        self._observer.sent(message)
        link = self._links.get(worker)
        if link is not None:
            link.to_worker.send(message)

    def wake(self, jobs: set[int]) -> None:
        """Nobody waits for single jobs here."""

    def committed(self, ended: list[Job]) -> None:
        """Tell that something was committed."""
        self._observer.told_ended(ended)

    def wake_within(self, delay_s: float) -> None:
        """Have a `Tick` posted, at the latest after this time."""
        delay = int(delay_s * SECOND)
        planned, at = self._ticking, self._world.now + delay
        if planned is None or at < planned.at:
            self._world.cancel(planned)
            self._ticking = self._world.after(delay, "tick", self._tick, self)

    def _tick(self) -> None:
        self._ticking = None
        self._post(Tick(), None)

    def wake_at(self, at_us: int | None) -> None:
        """Have a `Tick` posted at this time of the wall clock."""
        if at_us != self._alarm_us:
            self._alarm_us = at_us
            self._arm()

    def _arm(self) -> None:
        self._world.cancel(self._alarm)
        self._alarm = None
        if self._alarm_us is not None:
            delay = self._alarm_us - self._world.wall_us
            self._alarm = self._world.after(delay, "alarm", self._rang, self)

    def _rang(self) -> None:
        self._alarm = self._alarm_us = None
        self._tick()

    def clock_jumped(self) -> None:
        """Look at the wall clock again, as its timer does when it was set."""
        if self._alarm_us is not None:
            if self._alarm_us <= self._world.wall_us:
                self._alarm_us = None
            self._arm()
            self._tick()

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do something after a time."""
        self._world.after(int(delay_s * SECOND), "later", act, self)

    def complain(self, text: str) -> None:
        """Write something into the log."""
        self._world.note(f"log: {text}")
        if text.startswith("refused"):
            raise Violation(f"the broker cannot take what a worker says: {text}")

    def defect(self, error: Exception) -> None:
        """Write an error that is ours into the log."""
        raise Violation(f"a defect: {error!r}") from error


class _Caller:
    """The broker's side of one link: knows who speaks once it has said hello."""

    def __init__(self, broker: SimBroker, link: Link) -> None:
        self._broker = broker
        self._link = link
        self._worker = ""

    def arrived(self, messages: list[ToBroker]) -> None:
        for message in messages:
            if isinstance(message, Hello):
                self._worker = message.worker
        # What is late on an older link was said again, or is not true any more.
        if not self._broker.outdated(self._worker, self._link):
            self._broker.connected(self._worker, self._link)
            self._broker.heard(self._worker, messages)

    def ended(self) -> None:
        self._broker.disconnected(self._worker, self._link)
