"""A worker: the real core, with simulated connections to keeper and broker.

The counterpart of `grass.worker.shell.agent`: it looks for a keeper, starts one where
none runs, asks the kernel about exits that a dead keeper took along, and says hello on
every new link.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from grass.keeper.protocol import Entry, HelloVerb, Notes, StartVerb, Verb
from grass.link.messages import (
    BlobData,
    Heartbeat,
    Hello,
    Removed,
    RemoveOutput,
    Report,
    Resync,
    Shrink,
    Start,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.model.amount_text import WHOLE
from grass.model.worker import FoundUnits
from grass.worker.core.admission import Admission
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.keeper_entries import with_kernel_status
from grass.worker.core.prepare import Surroundings
from grass.worker.core.start_checks import FRESH_S
from grass.worker.core.usage.samples import ProcessUse
from grass.worker.core.worker_core import WorkerCore
from tests.simulation.channels import Link
from tests.simulation.devices import SimGpus
from tests.simulation.fetching import SimFetches
from tests.simulation.keeper_shell import Line
from tests.simulation.processes import Process, Processes
from tests.simulation.world import MILLISECOND, SECOND, Host, Killed, Violation

AROUND = Surroundings(
    *("/out", "/home/me", "/bin/sh", {"PATH": "/bin"}), blob_folder="/blobs"
)
YOUNG_US = 500 * MILLISECOND
USUAL_HEARTBEAT_US = 5 * SECOND
LOOKS_US, LEARNS_US = 5 * SECOND, SECOND
SILENCE_US = 15 * SECOND
"""How long nothing may be heard before a worker gives a link up."""


class Identity(NamedTuple):
    """What a worker says of itself."""

    worker: str
    name: str
    found: FoundUnits
    labels: tuple[str, ...] = ()
    lease_s: float | None = None
    remote: bool = True
    """Whether it is on another machine than the broker, and gives signs of life."""
    instance: str = ""

    @property
    def heartbeat_us(self) -> int:
        """How often it does."""
        if self.lease_s is None:
            return USUAL_HEARTBEAT_US
        return min(USUAL_HEARTBEAT_US, int(self.lease_s * SECOND / 4))


class Surrounding(Protocol):
    """Where a worker finds its keeper and its broker."""

    def find_keeper(self, worker: "SimWorker") -> Line | None:
        """Connect to the keeper, if one is there."""

    def find_broker(self, worker: "SimWorker") -> Link | None:
        """Connect to the broker, if one is there."""

    def start_keeper(self) -> None:
        """Start a keeper, unless one runs."""

    def start_sent(self) -> None:
        """Hear that a start is under way to the keeper."""

    @property
    def blobs(self) -> dict[str, bytes]:
        """The blobs that are files there."""


class SimWorker:
    """One worker's life."""

    def __init__(
        self,
        host: Host,
        around: Surrounding,
        boot: str,
        who: Identity,
        processes: Processes,
        gpus: SimGpus,
    ) -> None:
        self.alive = True
        self.dies_in = 0
        self.on_killed: Callable[[], None] = lambda: None
        self.who = who
        self.beats = who.remote
        told = (who.worker, who.name, boot, who.found, who.labels, who.instance)
        self._gpus = gpus
        self._admission = Admission()
        admission = self._admission if gpus.sizes else None
        self.core = WorkerCore(WorkerIdentity(*told), AROUND, who.lease_s, admission)
        self.link: Link | None = None
        self.made_up: list[Report] = []
        """Attempts that its next hello reports, and that it was never given."""
        self._greeted = False
        self.welcomed = False
        """Whether the broker has answered the hello of this link."""
        self._heard_at = 0
        self._host = host
        self._around = around
        self._keeper: Line | None = None
        self._processes = processes
        self._watch = Watch(host, processes, self)
        self.fetches = SimFetches(host, self, around.blobs, self.say, self._fetched)
        self._seek_keeper()
        self._seek_broker()
        self._beat()
        if gpus.sizes:
            self._look_again()

    def _look_again(self) -> None:
        """Look at the devices, so rarely that most starts wait for a look."""
        self._look()
        told = self._admission.told
        withheld = {} if told is None else told.units.get("vram", {})
        free = not any(amount > WHOLE for amount in withheld.values())
        # Something may wait for what is withheld, so the run is not over.
        pause = LEARNS_US if self._learns else LOOKS_US
        self._host.after(pause, "looks", self._look_again, self, quiet=free)

    @property
    def _learns(self) -> bool:
        """Whether something runs here from which the broker learns."""
        attempts = self.core._table.attempts.values()
        return any(one.notes.learns and one.exited is None for one in attempts)

    def _look(self) -> None:
        self.core.now_s, self.core.wall_us = self.now_s(), self._host.wall_us
        sample = self._gpus.look(self.now_s())
        seen = sample.attempts.items()
        uses = {name: ProcessUse(one.pids, 0, 0.0) for name, one in seen}
        self.core.usage.sampled(sample.at_s, sample.gpus, uses)
        self.core.sampled(sample)
        self._flush(checked=True)

    def _check_starts(self, verbs: list[Verb]) -> None:
        """Check that what starts has its memory, by a look that is not old."""
        told, looked_s = self._admission.told, self._admission.looked_at_s
        starts = [verb for verb in verbs if isinstance(verb, StartVerb)]
        for start in starts if self._checks_starts else ():
            units = cast("Notes", start.meta).allocation.get("vram", {})
            if not units or start.after is not None:
                continue
            if told is None or looked_s is None or self.now_s() - looked_s > FRESH_S:
                raise Violation(f"{start.id} starts by an old look at its devices")
            for unit in units:
                withheld = told.units["vram"][unit]
                if self.core._table.units.missing(unit, withheld - self._held(unit)):
                    raise Violation(f"{start.id} starts without its memory")
                if unit in told.faults:
                    raise Violation(f"{start.id} starts on a faulty gpu")

    def _held(self, unit: str) -> int:
        """Count the memory of starts that are held and came after those that go."""
        held = [one for one in self.core._table.attempts.values() if one.unchecked]
        return sum(one.notes.allocation.get("vram", {}).get(unit, 0) for one in held)

    @property
    def _checks_starts(self) -> bool:
        """Whether the broker has said that it heeds what is withheld."""
        return bool(self._gpus.sizes) and self.core._checks._supported

    def _beat(self) -> None:
        """Give a sign of life, as the dialer does; the answer renews the lease."""
        if not self.beats:
            return
        if self.link is not None and self._host.now > self._heard_at + SILENCE_US:
            self.lose_link(self.link)
        self.say(Heartbeat(self.now_s(), self._host.wall_us))
        delay = self.who.heartbeat_us
        self._host.after(delay, "beats", self._beat, self, quiet=True)

    def end(self) -> None:
        """Be gone; the keeper and its jobs go on."""
        self.alive = False
        for connection in (self._keeper, self.link):
            if connection is not None:
                connection.close()

    # The keeper.

    def _seek_keeper(self) -> None:
        if self._keeper is not None:
            return
        line = self._around.find_keeper(self)
        if line is None:
            self._around.start_keeper()
            pause = self._host.between(5 * MILLISECOND, 60 * MILLISECOND)
            self._host.after(pause, "seeks keeper", self._seek_keeper, self)
            return
        self._keeper = line
        line.to_worker.listen(self._from_keeper, lambda: self._keeper_lost(line))
        line.to_keeper.send(HelloVerb())

    def _keeper_lost(self, line: Line) -> None:
        if self._keeper is line:
            self._keeper = None
            self._watch.open_all()
            self.core.keeper_lost()
            self._host.after(100, "seeks keeper", self._seek_keeper, self)

    def _from_keeper(self, entries: list[Entry]) -> None:
        self.core.now_s, self.core.wall_us = self.now_s(), self._host.wall_us
        for entry in entries:
            self.core.from_keeper(with_kernel_status(entry, self._watch.status))
        self._flush()

    # The broker.

    def _seek_broker(self) -> None:
        if self.link is not None:
            return
        self.link = self._around.find_broker(self)
        if self.link is None:
            pause = self._host.between(20 * MILLISECOND, SECOND)
            self._host.after(pause, "seeks broker", self._seek_broker, self)
            return
        link = self.link
        self._heard_at = self._host.now
        link.to_worker.listen(self._from_broker, lambda: self.lose_link(link))
        # Every connection begins with a hello.
        self._greeted = False
        self.report()

    def report(self) -> None:
        """Say hello."""
        self._from_broker([Resync()])

    def lose_link(self, link: Link) -> None:
        """Hang up, and look for another link."""
        if self.link is link:
            self.link, self.welcomed = None, False
            link.to_worker.drop()
            link.to_broker.close()
            pause = self._host.between(100, 200 * MILLISECOND)
            self._host.after(pause, "seeks broker", self._seek_broker, self)

    def _from_broker(self, messages: list[ToWorker]) -> None:
        self._heard_at = self._host.now
        self.core.now_s, self.core.wall_us = self.now_s(), self._host.wall_us
        for message in messages:
            if isinstance(message, RemoveOutput):
                self._remove(message)
            elif isinstance(message, BlobData):
                self.fetches.received(message)
            else:
                self._decide(message)
            if isinstance(message, Shrink):
                self._processes.shrunk(message.attempt, message.allocation)
            self.welcomed |= isinstance(message, Welcome)
        self._flush()

    def _decide(self, message: ToWorker) -> None:
        if isinstance(message, Start) and message.task is not None:
            if not self.core._table.attempts and self.who.remote:
                # There was too much, and nobody used it.
                self._around.blobs.clear()
            known = message.attempt in self.core.fetching
            if not known and not self.fetches.need(message):
                self.core.fetching.add(message.attempt)
        verbs = self.core._effects.to_keeper
        decided = len(verbs)
        self.core.from_broker(message)
        # Now: a later message of the same batch may end what a look is good for.
        self._check_starts(verbs[decided:])
        if isinstance(message, Welcome):
            self.fetches.connected()

    def _fetched(self, attempt: str, problem: str) -> None:
        self.core.now_s, self.core.wall_us = self.now_s(), self._host.wall_us
        self.core.fetched(attempt, problem)
        self._flush(checked=True)

    def _remove(self, wanted: RemoveOutput) -> None:
        """Remove one file after the other, as a thread does, and then say so."""
        if not wanted.paths:
            self.say(Removed(wanted.number))
            return
        self._processes.output.discard(wanted.paths[0])
        rest = RemoveOutput(wanted.paths[1:], wanted.number)
        pause = self._host.between(20, 20 * MILLISECOND)
        self._host.after(pause, "removes", lambda: self._remove(rest), self)

    def _flush(self, *, checked: bool = False) -> None:
        effects = self.core.take()
        self.fetches.check(effects.to_keeper)
        if checked:
            self._check_starts(effects.to_keeper)
        if effects.look:
            self._host.after(self._gpus.delay_us(), "looks", self._look, self)
        self.crash_point()
        if self._keeper is not None:
            for verb in effects.to_keeper:
                self._keeper.to_keeper.send(verb)
            if any(isinstance(verb, StartVerb) for verb in effects.to_keeper):
                self._around.start_sent()
        self.crash_point()
        for message in effects.to_broker:
            self.say(message)
        gone = set(effects.unwatch)
        for attempt, (pid, ticks) in effects.watch.items():
            if attempt not in gone:
                self._watch.add(attempt, pid, ticks)
        for attempt in effects.unwatch:
            self._watch.drop(attempt)

    def say(self, message: ToBroker) -> None:
        """Send a message to the broker, on a link that begins with the hello."""
        if self.link is not None:
            if isinstance(message, Hello):
                self._greeted = True
                message.running, self.made_up = message.running + self.made_up, []
            if self._greeted:
                self.link.to_broker.send(message)

    def now_s(self) -> float:
        """Tell the time of its clock that counts suspend."""
        return self._host.boot_us / SECOND

    def crash_point(self) -> None:
        """Die here, if that was drawn."""
        if self.dies_in:
            self.dies_in -= 1
            if not self.dies_in:
                raise Killed(self.on_killed)


class Watch:
    """Descriptors of living processes, as in `grass.worker.shell.exit_watch`."""

    def __init__(self, host: Host, processes: Processes, owner: SimWorker) -> None:
        self._host = host
        self._processes = processes
        self._owner = owner
        self._held: dict[str, Process] = {}
        self._young: dict[str, tuple[int, int]] = {}

    def add(self, attempt: str, pid: int, ticks: int) -> None:
        """Hold on to a process, if it lives for a while."""
        if not self._young:
            self._host.after(YOUNG_US, "watches", self.open_all, self._owner)
        self._young[attempt] = (pid, ticks)

    def open_all(self) -> None:
        """Hold on to every process that is still there."""
        for attempt, (pid, ticks) in self._young.items():
            process = self._processes.find(pid, ticks)
            if process is not None:
                self._held.setdefault(attempt, process)
        self._young.clear()

    def drop(self, attempt: str) -> None:
        """Close a process whose end is known."""
        self._young.pop(attempt, None)
        self._held.pop(attempt, None)

    def status(self, attempt: str) -> int | None:
        """Return the wait status of a process that has ended, if the kernel tells."""
        process = self._held.get(attempt)
        return None if process is None else self._processes.exit_status(process)
