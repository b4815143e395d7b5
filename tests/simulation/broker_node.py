"""One of several brokers of a store: the real core of the lead, with simulated wires.

A node is a standby until its leadership says that it leads. Requests to the database
and their replies take time, fail and are lost; a commit that its broker has given up
may still be carried out later, as a server does for a client that is gone.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Protocol

from grass.broker.core.leadership import (
    TERM_S,
    AskForLease,
    Decision,
    Leadership,
    Load,
    Release,
    StepDown,
)
from grass.errors import LeadLost, StorageError
from grass.model.brokers import Lease
from grass.store.changes import Changes
from grass.store.interface import Store
from tests.simulation.auditor import Auditor
from tests.simulation.broker_shell import SimBroker
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.kept_blobs import SpoiledBlobs
from tests.simulation.machine import Machine
from tests.simulation.world import MILLISECOND, SECOND, Event, World

LATEST_COMMIT_US = 4 * SECOND
"""How long the database may go on with what a client has given up."""


class Database(FaultyStore):
    """The store that all share; its clock is that of the world."""

    def __init__(self, disk: Any, world: World, written: Any) -> None:
        super().__init__(disk, world, written)
        self.now_s = lambda: world.now / SECOND
        self.down_until = 0
        self.slow_until = 0
        self.read_only = False

    @property
    def is_down(self) -> bool:
        """Whether the server does not run."""
        return self._world.now < self.down_until

    def delay_us(self) -> int:
        """Draw how long a request takes, one way."""
        if self._world.now < self.slow_until:
            return self._world.spread(MILLISECOND, 3 * SECOND)
        return self._world.between(50, 2 * MILLISECOND)

    def heal(self) -> None:
        """End all faults."""
        super().heal()
        self.read_only = False
        self.down_until = self.slow_until = 0


class Connection(FaultyStore):
    """The database as one broker reaches it."""

    def __init__(self, node: "Node", database: Database, world: World) -> None:
        super().__init__(database.disk, world, database._written)
        self._node = node
        self._database = database
        self.now_s = database.now_s

    def shortage(self) -> StorageError | None:
        """Return None: the disk is that of another machine."""
        return None

    def read(self, query: Callable[[Store], Any]) -> Any:
        """Read, if the database can be reached."""
        self._check_reachable()
        return self._database.read(query)

    def commit(self, changes: Changes, epoch: int = 0) -> None:
        """Commit; where the connection is lost it is not known what came of it."""
        database = self._database
        late = self._world.now < database.slow_until and self._world.chance(0.3)
        if late or self._node.cut_off or database.is_down:
            self.write_anyway(changes, epoch)
            raise StorageError("the connection to the database was lost")
        if database.read_only:
            raise StorageError("the database is read-only")
        database.commit(changes, epoch)

    def write_anyway(self, changes: Changes, epoch: int = 0) -> None:
        """Have it written now, later or never, unless its epoch has ended by then."""

        def write() -> None:
            try:
                self._database.write_anyway(changes, epoch)
            except LeadLost:
                self._world.note(f"a late commit of epoch {epoch} is refused")

        chance = self._world.rng.random()
        if self._database.read_only or chance < 0.3:
            return
        delay = 0 if chance < 0.6 else self._world.between(0, LATEST_COMMIT_US)
        if delay:
            self._world.elsewhere.after(delay, "a late commit", write)
        else:
            write()

    def take(self, holder: str, epoch: int, term_s: float = TERM_S) -> Lease:
        """Take or renew the lead."""
        self._check_reachable()
        if self._database.read_only:
            raise StorageError("the database is read-only")
        return self._database.take_lease(holder, holder, term_s, epoch)

    def _check_reachable(self) -> None:
        if self._node.cut_off or self._database.is_down:
            raise StorageError("the database cannot be reached")


class Place(Protocol):
    """The cluster as a node sees it."""

    auditor: Auditor
    spoiled: SpoiledBlobs

    def leads(self, node: "Node") -> None:
        """Hear that a node leads now."""

    def stepped_down(self, node: "Node") -> None:
        """Hear that a node leads no more."""


class Node:
    """The broker of one machine, from one start of its daemon to the next kill."""

    def __init__(self, machine: Machine, place: Place, database: Database) -> None:
        self.machine = machine
        self.alive = False
        self.broker: SimBroker | None = None
        self.epoch = 0
        self.cut_off_until = 0
        """Until when it cannot reach the database."""
        self.isolated_until = 0
        """Until when other machines cannot reach it."""
        self.loses_replies = False
        self._place = place
        self._world = machine.world
        self._host = machine.host
        self.connection = Connection(self, database, machine.world)
        self._database = database
        self._life = Life()
        self._timer: Event | None = None
        self.leadership = Leadership(machine.id, self.now_s())

    @property
    def cut_off(self) -> bool:
        """Whether it cannot reach the database."""
        return self._world.now < self.cut_off_until

    @property
    def isolated(self) -> bool:
        """Whether other machines cannot reach it."""
        return self._world.now < self.isolated_until

    def now_s(self) -> float:
        """Tell the time of a clock that counts while the machine sleeps."""
        return self._host.boot_us / SECOND

    # From start to kill.

    def start(self) -> None:
        """Start as a standby, unless it runs."""
        if not self.alive:
            self._host.note("broker up, stands by")
            self.alive, self._life = True, Life()
            self.leadership = Leadership(self.machine.id, self.now_s())
            self.step()

    def kill(self) -> None:
        """End at once."""
        self.alive = self._life.alive = False
        broker, self.broker = self.broker, None
        if broker is not None:
            broker.end()
            self._place.stepped_down(self)

    def rest(self) -> None:
        """Renew no more, and lead for ever."""
        self._life.alive = False
        self.leadership._trusted_s = float("inf")

    # The lead, as its broker sees it.

    def trusts(self) -> bool:
        """Return whether the broker may speak as the leader now."""
        return self.leadership.trusts(self.now_s())

    def lost(self, reason: str) -> None:
        """Step down: a commit was refused."""
        self._act(self.leadership.lost(reason, self.now_s()))

    def next_epoch(self) -> None:
        """Have the next epoch taken, and the broker resumed with it."""
        self._act(self.leadership.doubt(self.now_s()))

    # Time and replies.

    def step(self) -> None:
        """Do what is due, and again when the next thing is."""
        self._timer = None
        self._act(self.leadership.step(self.now_s()))

    def _arm(self) -> None:
        due_s = self.leadership.wake_at() - self.now_s()
        delay = max(MILLISECOND, int(due_s * SECOND))
        self._host.cancel(self._timer)
        self._timer = self._host.after(delay, "lead", self.step, self._life, quiet=True)

    def _act(self, decisions: list[Decision]) -> None:
        self._carry_out(decisions)
        self._arm()

    def _carry_out(self, decisions: list[Decision]) -> None:
        for one in decisions:
            match one:
                case AskForLease(number, epoch):
                    ask = lambda n=number, e=epoch: self._ask(n, e)  # noqa: E731
                    self._after(self._database.delay_us(), "asks for the lead", ask)
                case Load(epoch):
                    self._load(epoch)
                case StepDown(reason):
                    self._step_down(reason)
                case Release(epoch):
                    release = lambda e=epoch: self._release(e)  # noqa: E731
                    self._after(self._database.delay_us(), "releases", release)

    def yield_lead(self) -> None:
        """Let a standby lead, if others do not reach this broker."""
        if self.isolated:
            self._act(self.leadership.yield_lead(self.now_s()))

    def _release(self, epoch: int) -> None:
        with contextlib.suppress(StorageError):
            self.connection.take(self.machine.id, epoch, 0.0)

    def _ask(self, number: int, epoch: int) -> None:
        try:
            lease = self.connection.take(self.machine.id, epoch)
        except StorageError:
            self._act(self.leadership.failed(number, self.now_s()))
            return
        if self.loses_replies and self._world.chance(0.4):
            delay = self._world.between(MILLISECOND, 7 * SECOND)
            fail = lambda: self._act(self.leadership.failed(number, self.now_s()))  # noqa: E731
            self._after(delay, "no reply", fail)
            return
        reply = lambda: self._act(  # noqa: E731
            self.leadership.answered(number, lease, self.now_s())
        )
        self._after(self._database.delay_us(), f"lease {lease.epoch}", reply)

    def _after(self, delay: int, label: str, act: Callable[[], None]) -> None:
        self._host.after(delay, label, act, self._life, quiet=True)

    def _load(self, epoch: int) -> None:
        if self.broker is not None:
            self.epoch = epoch
            self.leadership.loaded(epoch, self.now_s())
            self.broker.resume(epoch)
            return
        delay = self._database.delay_us() + self._world.between(0, 300 * MILLISECOND)
        self._after(delay, f"loads in epoch {epoch}", lambda: self._loaded(epoch))

    def _loaded(self, epoch: int) -> None:
        if self.leadership.epoch != epoch or not self.trusts():
            return
        self.epoch = epoch
        try:
            self.connection._check_reachable()
            broker = self._new_broker()
        except StorageError as error:
            self._act(self.leadership.lost(str(error), self.now_s()))
            return
        self._host.note(f"LEADS in epoch {epoch}")
        self.leadership.loaded(epoch, self.now_s())
        self.broker = broker
        self._place.leads(self)

    def _new_broker(self) -> SimBroker:
        place = self._place
        return SimBroker(
            self._host, self.connection, place.auditor, self, place.spoiled
        )

    def _step_down(self, reason: str) -> None:
        self._host.note(f"STEPS DOWN: {reason}")
        broker, self.broker = self.broker, None
        if broker is not None:
            broker.step_down()
            self._place.stepped_down(self)


class Life:
    """What the events of one start of a node die with."""

    alive = True
