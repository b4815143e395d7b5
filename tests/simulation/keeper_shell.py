"""A keeper: the real core, with a simulated loop around it.

The order in which a turn ends is the real one, `grass.keeper.core.turn`, with a place
to die at after its steps. The records are a list that outlives the keeper; writing to
them fails while the disk is full, and on any machine once in a while, and then they are
behind until they can be written anew from a snapshot. A keeper begins so, with what its
predecessor left.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, cast

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.attempt import attempts_of
from grass.keeper.core.deadlines import PAUSES_S
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.lease import LONGEST_SLEEP_S
from grass.keeper.core.turn import KeeperTurn
from grass.keeper.protocol import (
    Entry,
    ExitEntry,
    ForgottenEntry,
    LeaseVerb,
    Notes,
    SpawningEntry,
    StartVerb,
    TaskRun,
    Verb,
)
from tests.simulation.channels import Channel
from tests.simulation.keeper_jobs import KeeperJobs
from tests.simulation.processes import DISK_FULL, Process, Processes
from tests.simulation.world import (
    SECOND,
    Event,
    Host,
    Killed,
    Life,
    Violation,
)

TURN_US = 30
LONGEST_SLEEP_US = 60 * SECOND
LEASED_SLEEP_US = int(LONGEST_SLEEP_S * SECOND)
HOLD_US = 2_000
FAILED_WRITES = 0.002
FAILED_SYNCS = 0.05
LONGEST_SYNC_US = 300_000
MOST_UNSYNCED_US = 1_500_000
"""By then an exit outlives a power cut, whatever else happens."""


class RecordsFile:
    """The keeper's file: it outlives the keeper, and what is synced a power cut."""

    def __init__(self) -> None:
        self.boot = ""
        self.entries: list[Entry] = []
        self.full = False
        self.version = 0
        self.synced = 0
        """How many entries a power cut cannot take."""
        self._least = 0
        """How many there were since a sync began, at the least."""
        self._was_synced = False
        """Whether a file that takes this one's place is synced before."""
        self._before: tuple[str, list[Entry]] | None = None
        """What a power cut may bring back: the last rename may not be on the disk."""

    def load(self, boot: str) -> tuple[list[Entry], bool]:
        """Give what a keeper left, and whether that was in an earlier boot."""
        self._was_synced = _has_exits(self.entries)
        return list(self.entries), self.boot != boot

    def rewrite(self, boot: str, entries: list[Entry]) -> None:
        """Replace all that is there."""
        if self._before is None:
            self._before = self.boot, self.entries[: self.synced]
        self.boot, self.entries = boot, entries
        self._was_synced = self._was_synced and _has_exits(entries)
        self.synced = len(entries) if self._was_synced else 0
        self.version += 1

    def cut(self, count: int) -> None:
        """Take the last entries back."""
        del self.entries[-count:]
        left = len(self.entries)
        self.synced, self._least = min(self.synced, left), min(self._least, left)

    def begin_sync(self) -> int:
        """Begin to have the disk keep all entries; return which file this is."""
        self._least, self._was_synced = len(self.entries), True
        return self.version

    def sync(self, version: int) -> None:
        """Have the disk keep what the file has had since then, and its name."""
        self._before = None
        if version == self.version:
            self.synced = max(self.synced, self._least)

    def lose_power(self, rng: Random) -> None:
        """Lose some of what is not synced."""
        if self._before is not None and rng.random() < 0.3:
            self.boot, self.entries = self._before
        else:
            del self.entries[rng.randint(self.synced, len(self.entries)) :]
        self.synced, self._before = len(self.entries), None

    def lose(self) -> None:
        """Be gone, with all that was ever synced."""
        self.boot, self.entries, self.synced = "", [], 0

    def exits(self) -> list[str]:
        """Name the attempts whose exit is on record and known."""
        kept = attempts_of(self.entries).values()
        ends = ("ended", "exited")
        return [one.id for one in kept if one.state in ends and not one.lost]


def _has_exits(entries: list[Entry]) -> bool:
    return any(isinstance(entry, ExitEntry) for entry in entries)


class Line:
    """A connection of a worker to the keeper: lines both ways."""

    def __init__(
        self, host: Host, number: int, keeper: "SimKeeper", worker: Life
    ) -> None:
        self.number = number
        self.listening = False
        self.to_keeper: Channel[Verb] = Channel(host, "line>keeper", keeper)
        self.to_worker: Channel[Entry] = Channel(host, "line>worker", worker)

    def close(self) -> None:
        """End it for both sides."""
        self.to_keeper.close()
        self.to_worker.close()


class SimKeeper:
    """One keeper's life."""

    def __init__(
        self, host: Host, boot: str, records: RecordsFile, processes: Processes
    ) -> None:
        self.alive = True
        self.on_left: Callable[[], None] = lambda: None
        self.dies_in = 0
        self.dies_handing = False
        """Whether it dies between the record of a task and handing it over."""
        self.on_killed: Callable[[], None] = lambda: None
        self.core = KeeperCore(1, boot)
        self._host = host
        self._boot = boot
        self._records = records
        self._pending: list[Entry] = []
        self._behind = True
        self._lines: dict[int, Line] = {}
        self._inbox: deque[events.KeeperEvent] = deque()
        self._unsent: list[tuple[Line, Entry]] = []
        self._hold_until: int | None = None
        self._urgent = False
        self._stalled_until = 0
        self.can_be_found = True
        """Whether its socket is where workers look for it."""
        self._exited_at: dict[str, int] = {}
        self._hindered_at = host.now
        """Until when it could not sync."""
        self._planned: Event | None = None
        self._jobs = KeeperJobs(host, processes, self)
        actions: dict[type, Callable[[Any], events.KeeperEvent | None]] = {
            effects.Publish: self._publish,
            effects.Tell: self._tell,
            effects.Reply: self._reply,
            effects.SendHello: self._send_hello,
            effects.Unrecord: self._unrecord,
            effects.GiveUp: lambda effect: events.SpawnFailed(
                effect.id, effect.reason, self._host.wall_us
            ),
            effects.Sync: self._sync,
            effects.CheckSocket: self._put_socket_back,
            effects.Exit: self._exit,
            **self._jobs.actions(),
        }
        self._order = KeeperTurn(self.core, self, actions)
        self._order.feed(events.Restored(*records.load(boot)))
        self._order.finish()
        self._arm()

    # Connections.

    def _put_socket_back(self, _effect: effects.CheckSocket) -> None:
        self.can_be_found = True

    def connect(self, line: Line) -> None:
        """Take a connection in, after all that was said on the others before."""
        for earlier in self._lines.values():
            earlier.to_keeper.arrive()
        self._lines[line.number] = line
        line.to_keeper.listen(
            lambda batch: self._received(line, batch), lambda: self._hung_up(line)
        )
        self.post(events.Opened(line.number))

    def _received(self, line: Line, batch: list[Verb]) -> None:
        for verb in batch:
            # A real keeper decodes each line anew, and tells starts by identity.
            self.post(events.VerbReceived(line.number, _received(verb)))

    def _hung_up(self, line: Line) -> None:
        self._lines.pop(line.number, None)
        self.post(events.Closed(line.number))

    def post(self, event: events.KeeperEvent) -> None:
        """Have the core told in the next turn."""
        self._inbox.append(event)
        self._turn_within(TURN_US, quiet=_is_quiet(event))

    def take_answer(self, pid: int) -> events.Answered | None:
        """Take what a runner has answered and the core was not told."""
        for event in self._inbox:
            if isinstance(event, events.Answered) and event.pid == pid:
                self._inbox.remove(event)
                return event
        return None

    def woke(self) -> None:
        """Look at the clock after a sleep: with a lease that is done every second."""
        self._stalled_until = 0
        leased = self.core.leases.watched
        soon = LEASED_SLEEP_US if leased else LONGEST_SLEEP_US
        self._turn_within(self._host.between(TURN_US, soon), quiet=True)

    def child_died(self, process: Process) -> None:
        """Note that a child can be reaped."""
        self._jobs.zombies.append(process)
        self._turn_within(TURN_US)

    # The loop.

    def _turn_within(self, delay_us: int, *, quiet: bool = False) -> None:
        planned, now = self._planned, self._host.now
        at = now + delay_us
        if planned is not None:
            if planned.at <= at and (quiet or not planned.quiet):
                return
            at, quiet = min(at, planned.at), quiet and planned.quiet
            self._host.cancel(planned)
        self._planned = self._host.after(
            at - now, "keeper", self._turn, self, quiet=quiet
        )

    def stall(self, lasts_us: int) -> None:
        """Get no time to run for a while."""
        self._stalled_until = self._hindered_at = self._host.now + lasts_us

    def _turn(self) -> None:
        self._planned = None
        if self._host.now < self._stalled_until:
            self._turn_within(self._stalled_until - self._host.now)
            return
        while self._inbox:
            self._order.feed(self._inbox.popleft())
        for event in self._jobs.reaped():
            self._order.feed(event)
        due = self.core.timers.next_due()
        if due is not None and due <= self.now:
            self._order.feed(events.TimerTick())
        self._order.finish()
        if self.alive:
            self._arm()

    def _arm(self) -> None:
        if self._planned is not None:
            self._host.cancel(self._planned)
            self._planned = None
        if self._inbox or self._jobs.zombies:
            self._turn_within(TURN_US)
            return
        due = self.core.timers.next_due()
        sleeps = [LONGEST_SLEEP_US]
        if due is not None:
            sleeps.append(max(TURN_US, int((due - self.now) * SECOND) + 1))
        if self._hold_until is not None:
            sleeps.append(max(TURN_US, self._hold_until - self._host.now))
        if len(sleeps) > 1:
            quiet = self._hold_until is None and self._waits_for_lease_only()
            self._turn_within(min(sleeps), quiet=quiet)

    def _waits_for_lease_only(self) -> bool:
        return all(purpose == "lease" for purpose, _ in self.core.timers._due)

    # What the order of a turn needs.

    @property
    def now(self) -> float:
        """Tell the time since boot, with sleep."""
        return self._host.boot_us / SECOND

    def record(self, entry: Entry) -> None:
        """Have an entry written with the next flush."""
        if isinstance(entry, SpawningEntry):
            self._jobs.recorded(entry)
        self._note_exit(entry)
        self._pending.append(entry)

    def _note_exit(self, entry: Entry) -> None:
        if isinstance(entry, ExitEntry):
            self._exited_at[entry.id] = self._host.now

    def send(self) -> None:
        """Send all that waits to be sent."""
        self._flush_lines()

    def send_unless_held(self) -> None:
        """Send the same, unless it may wait for more."""
        held = self._hold_until is not None and self._host.now < self._hold_until
        if self._urgent or not held:
            self._flush_lines()

    def spawn(self, start: StartVerb) -> events.KeeperEvent:
        """Start an attempt's process, and tell what came of it."""
        event = self._jobs.spawn(start)
        self.crash_point()
        return event

    def hand_over(self, start: StartVerb, runner: int) -> events.KeeperEvent:
        """Hand a task to a runner, and tell what came of it."""
        if self.dies_handing:
            raise Killed(self.on_killed)
        event = self._jobs.hand_over(start, runner)
        self.crash_point()
        return event

    def spawn_result(self, event: events.KeeperEvent) -> None:
        """Tell the core."""
        self._order.feed(event)

    def crash_point(self) -> None:
        """Die here, if that was drawn."""
        if self.dies_in:
            self.dies_in -= 1
            if not self.dies_in:
                raise Killed(self.on_killed)

    # Records.

    def flush_records(self) -> str | None:
        """Write the entries; tell why the records are not complete, if so."""
        pending, self._pending = self._pending, []
        if (pending or self._behind) and self._write_fails():
            self._behind = True
            self._hindered_at = self._host.now
            return DISK_FULL
        if self._behind:
            self._records.rewrite(self._boot, self.core.snapshot())
        else:
            self._records.entries.extend(pending)
        self._behind = False
        self.crash_point()
        return None

    def _unrecord(self, effect: effects.Unrecord) -> None:
        """Cut entries off that are not true any more, as a file can be cut."""
        written, false = self._records.entries, effect.entries
        if not self._pending and not self._behind and written[-len(false) :] == false:
            self._records.cut(len(false))
        else:
            self._pending.append(ForgottenEntry([effect.id]))

    def _sync(self, effect: effects.Sync) -> events.Synced | None:
        if self.flush_records() is not None:
            return events.Synced(done=False)
        version = self._records.begin_sync()
        delay = self._host.between(0, LONGEST_SYNC_US)
        synced = lambda: self._synced(version)  # noqa: E731
        self._host.after(delay, "synced", synced, self)
        return None

    def _synced(self, version: int) -> None:
        done = not self._host.chance(FAILED_SYNCS)
        if done:
            self._records.sync(version)
        else:
            self._behind, self._hindered_at = True, self._host.now
        self.post(events.Synced(done))

    def check_synced(self) -> None:
        """Check that a power cut now loses no exit that was told long ago."""
        synced = set(attempts_of(self._records.entries[: self._records.synced]))
        for name in self._records.exits():
            since = max(self._exited_at.get(name, 0), self._hindered_at)
            if self._behind:
                since += int(PAUSES_S[-1] * SECOND)
            if name not in synced and self._host.now > since + MOST_UNSYNCED_US:
                raise Violation(f"the exit of {name} is not synced")

    def _write_fails(self) -> bool:
        return self._records.full or self._host.chance(FAILED_WRITES)

    # What is said.

    def _publish(self, effect: effects.Publish) -> None:
        self._note_exit(effect.entry)
        self._pending.append(effect.entry)
        if effect.urgent:
            self._urgent = True
        elif self._hold_until is None:
            self._hold_until = self._host.now + HOLD_US
        self._say(effect.entry)

    def _tell(self, effect: effects.Tell) -> None:
        self._urgent = True
        self._say(effect.entry)

    def _say(self, entry: Entry) -> None:
        for line in self._lines.values():
            if line.listening:
                self._unsent.append((line, entry))

    def _reply(self, effect: effects.Reply) -> None:
        self._urgent = True
        line = self._lines.get(effect.connection)
        if line is not None:
            self._unsent.append((line, effect.entry))

    def _send_hello(self, effect: effects.SendHello) -> None:
        line = self._lines.get(effect.connection)
        if line is not None:
            line.listening = True
        self._reply(effects.Reply(effect.connection, effect.entry))

    def _flush_lines(self) -> None:
        self._urgent = False
        self._hold_until = None
        unsent, self._unsent = self._unsent, []
        for line, entry in unsent:
            line.to_worker.send(entry)

    # The end.

    def _exit(self, effect: effects.Exit) -> None:
        if any(isinstance(event, events.Opened) for event in self._inbox):
            return
        if self.core.empty and not self._records.full:
            self._records.rewrite(self._boot, [])
        self.end()
        self.on_left()

    def end(self) -> None:
        """Be gone; what was written to connections still arrives."""
        self.alive = False
        self._jobs.hang_up_all()
        for line in self._lines.values():
            line.close()


def _received(verb: Verb) -> Verb:
    """Return a verb as a keeper has read it; some starts are of tasks."""
    if not isinstance(verb, StartVerb) or "TASK" not in verb.env:
        return verb._replace()
    keep = "vram" not in cast("Notes", verb.meta).allocation
    key = verb.env["TASK"]
    task = verb.task or TaskRun(key, "/f", "", "", "/r", {})
    return verb._replace(task=task._replace(key=key, keep=keep))


def _is_quiet(event: events.KeeperEvent) -> bool:
    """Tell whether an event follows from a heartbeat alone."""
    verb = event.verb if isinstance(event, events.VerbReceived) else None
    return isinstance(verb, LeaseVerb)
