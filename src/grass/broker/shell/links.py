"""The links of workers, and which of a worker's links is used.

A worker that was cut off connects again, often before its old link is known to be dead.
Of two links the one that was opened later is used, whatever arrives late on the older
one, which is closed. Nothing here waits or reads: the daemon's shell and the
simulation's use the same rules.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from grass.broker.core.access.worker_identity import SECOND_INSTANCE
from grass.broker.core.state import State
from grass.broker.core.workers import leases, registry
from grass.link.channel import Link
from grass.link.messages import (
    Heard,
    Heartbeat,
    Hello,
    Resync,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.log_lines import LogEvent, log_event

REFUSED_INSTANCE = "; ".join(SECOND_INSTANCE)
DEFECT = "a message of this worker brought out a defect of grass; see the broker's log"
BANNED_S = 60.0
"""How long a worker is refused after that."""
MOST_REMEMBERED = 1000
"""For how many workers the logged refusals are kept."""
MOST_REASONS = 20
"""How many refusals of one worker are logged."""

LinkOf = Callable[[str], Link[ToWorker, ToBroker] | None]
"""Returns the link of a worker that is used now; None: it is not connected."""


class LinkOwner(Protocol):
    """The broker, as its links see it."""

    def received(
        self, connection: "WorkerConnection", messages: list[ToBroker]
    ) -> None:
        """Apply messages that arrived on the link in use."""

    def connected(self, connection: "WorkerConnection") -> None:
        """Note that a worker uses another link than before."""

    def disconnected(self, worker: str) -> None:
        """Note that the link in use has ended."""

    def log(self, event: LogEvent) -> None:
        """Write an event into the log."""

    def defect(self, error: Exception) -> None:
        """Log an exception that only a mistake in grass explains."""

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do something after a time."""


class Links:
    """The links that were opened, and the one of each worker that is used."""

    def __init__(self, owner: LinkOwner) -> None:
        self.owner = owner
        self._opened = 0
        """How many there have been: of two, the later has the larger number."""
        self._connections: dict[str, WorkerConnection] = {}
        self._home: str | None = None
        """The worker in the broker's own daemon."""
        self._newest: dict[str, int] = {}
        """The link a worker last said hello on, also when that has ended."""
        self._refusals: dict[str, set[str]] = {}
        self._banned: set[str] = set()
        self.brokers: Callable[[], tuple[str, ...]] = tuple
        """The addresses of the cluster's brokers; none where there is one."""
        self.heard_machine: Callable[[], object] = int
        """Called when another machine's worker was heard."""

    def open(
        self,
        link: Link[ToWorker, ToBroker],
        worker: str | None = None,
        address: str | None = None,
    ) -> "WorkerConnection":
        """Register a link; only `worker` may use it, where one is named."""
        self._opened += 1
        return WorkerConnection(self, link, self._opened, worker, address)

    def of(self, worker: str) -> "WorkerConnection | None":
        """Return the link of a worker that is in use, if it is connected."""
        return self._connections.get(worker)

    def send(self, worker: str, message: ToWorker) -> None:
        """Send a message to a worker, if it is connected."""
        connection = self._connections.get(worker)
        if connection is None:
            return
        try:
            connection.say(message)
        except Exception as error:  # noqa: BLE001 -- other links are not concerned
            self.owner.defect(error)
            connection.link.close()

    def disconnect(self, worker: str, refusal: str = "") -> None:
        """Close a worker's link now, whatever is still being sent."""
        self._newest[worker] = self._opened + 1
        connection = self._connections.get(worker)
        if connection is not None:
            connection.link.close(refusal)
            self.ended(connection)

    def cut(self, worker: str) -> None:
        """Close a worker's link, unless it is the own one, which needs no token."""
        if worker != self._home:
            self.disconnect(worker)

    def ban(self, worker: str) -> None:
        """Refuse a worker for a while, unless it is the own one, and close its link."""
        if worker != self._home and worker not in self._banned:
            self._banned.add(worker)
            self.owner.later(BANNED_S, lambda: self._banned.discard(worker))
            self.disconnect(worker, DEFECT)

    def is_banned(self, worker: str) -> bool:
        """Tell whether a worker is refused for now."""
        return worker in self._banned

    def refuse(self, worker: str, said: ToBroker, reason: str) -> None:
        """Log a refusal; a worker whose hello is refused is not left waiting."""
        self.log_refusal(worker, reason)
        if isinstance(said, Hello):
            self.disconnect(worker, reason)

    def log_refusal(self, worker: str, reason: str) -> None:
        """Log why messages of a worker are refused, once for each reason.

        A reason may quote the message, so their number is limited for each worker.
        """
        reasons = self._refusals.setdefault(worker, set())
        if reason in reasons or len(reasons) >= MOST_REASONS:
            return
        reasons.add(reason)
        if len(self._refusals) > MOST_REMEMBERED:
            del self._refusals[next(iter(self._refusals))]
        is_last = True if len(reasons) == MOST_REASONS else None
        self.owner.log(
            log_event("worker.refused", worker=worker[:60], error=reason, last=is_last)
        )

    def outdated(self, connection: "WorkerConnection") -> bool:
        """Tell whether a worker has said hello on a later link than this one."""
        return connection.number < self.newest(connection.worker)

    def newest(self, worker: str) -> int:
        """Return the number of the link that a worker last sent its hello on."""
        return self._newest.get(worker, 0)

    def may_use(self, connection: "WorkerConnection", worker: str) -> bool:
        """Tell whether a link may be a worker's: our own has no address."""
        return bool(worker) and (connection.address is None or worker != self._home)

    def is_second_instance(self, connection: "WorkerConnection", hello: Hello) -> bool:
        """Tell whether the worker is connected from another home than this one."""
        here = self._connections.get(hello.worker)
        if here is None or here is connection:
            return False
        return here.instance not in ("", hello.instance)

    def introduced(self, connection: "WorkerConnection") -> None:
        """Use the link on which a worker has sent its hello."""
        before = self._connections.get(connection.worker)
        if connection.address is None:
            self._home = connection.worker
        self._connections[connection.worker] = connection
        self._newest[connection.worker] = connection.number
        if before is not connection:
            self.owner.connected(connection)
        if before is not None and before is not connection:
            before.link.close()

    def ended(self, connection: "WorkerConnection") -> None:
        """Note that a link ended, unless the worker has called again since."""
        if self._connections.get(connection.worker) is connection:
            del self._connections[connection.worker]
            self.owner.disconnected(connection.worker)


class WorkerConnection:
    """The broker's side of one link: its worker is known from the first hello on."""

    def __init__(
        self,
        links: Links,
        link: Link[ToWorker, ToBroker],
        number: int,
        expected: str | None,
        address: str | None,
    ) -> None:
        self.link = link
        self.number = number
        self.address = address
        self.worker = ""
        self.instance = ""
        self._links = links
        self._expected = expected
        self._hello_at = 0.0
        self._beat_at = 0.0
        """What the worker's clock showed in its last heartbeat."""
        self._welcomed = False
        """Whether what the worker last said of itself has been taken in."""
        self._promised = False
        """Whether anything it said on this link has: its lease is known since."""

    def arrived(self, messages: list[ToBroker]) -> None:
        """Apply messages that arrived on this link."""
        for message in messages:
            if isinstance(message, Hello) and not self._introduce(message):
                self.link.close()
                return
        if not self.worker:
            # What comes before the first hello is said again in it.
            return
        # What is late on an older link was said again too, or is not true any more.
        if self._links.outdated(self):
            self.link.close()
        else:
            self._links.owner.received(self, messages)

    def _introduce(self, hello: Hello) -> bool:
        """Learn whose link it is: of one worker, and of the expected one."""
        who = self.worker or self._expected or hello.worker
        if hello.worker != who or not self._links.may_use(self, who):
            named = hello.worker[:60]
            event = log_event("worker.wrong_id", worker=named, address=self.address)
            self._links.owner.log(event)
            return False
        if self._links.is_banned(who):
            self.link.close(DEFECT)
            return False
        is_late = self.number < self._links.newest(who)
        if not is_late and self._links.is_second_instance(self, hello):
            self._links.log_refusal(who, REFUSED_INSTANCE)
            self.link.close(REFUSED_INSTANCE)
            return False
        self.instance = hello.instance
        self.worker, self._hello_at, self._welcomed = who, hello.at, False
        self._note_machine()
        if not is_late:
            self._links.introduced(self)
        return True

    def say(self, message: ToWorker) -> None:
        """Send a message, unless it is out of date.

        A welcome is, to any hello but the last. So is all that was decided before the
        last hello was read: whatever of it still holds is said again with the welcome,
        and the answer to the first would undo the second.
        """
        if isinstance(message, Welcome):
            if message.at != self._hello_at:
                return
            self._welcomed = self._promised = True
            # A slow or failing disk may have kept it waiting. From the hello on, the
            # lease could be over by now, and would end what is started next.
            since = max(message.at, self._beat_at)
            # A broker that dies before the first heartbeat has named the others.
            brokers = self._links.brokers()
            message = msgspec.structs.replace(message, at=since, brokers=brokers)
        if self._welcomed or isinstance(message, Resync):
            self.link.send(message)

    def answer(self, message: Heartbeat, state: State) -> None:
        """Renew a lease: of a worker that was taken in on this link, and is known.

        Where a batch was dropped, the worker counts as disconnected until it has
        reported again, for as long as the disk is full. The link is still there, so no
        attempt may end: the lease is renewed, and the broker begins to count again.
        """
        self._beat_at = message.at
        self._note_machine()
        if self._promised and self.worker in state.workers:
            leases.renewed(state, self.worker)
            worker = state.workers[self.worker]
            registry.note_clock(worker, message.wall_at, worker.heard_at or 0)
            self.link.send(Heard(message.at, self._links.brokers()))

    def _note_machine(self) -> None:
        if self.address is not None:
            self._links.heard_machine()

    def ended(self) -> None:
        """Note that the link is over."""
        self._links.ended(self)
