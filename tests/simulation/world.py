"""The virtual clock, the hosts and the event queue of one simulated run.

The code under test is the code that ships: scheduler, broker, worker and keeper are
steps without I/O, so only the shells around them are simulated. Everything random is
drawn from one `Random`; there is no real time, no thread and no socket, and two runs of
a seed do exactly the same, event by event.

The world's own time is true, and no simulated code reads it. Each `Host` has its own
clocks, and a heap of events by the clock that stands still while it sleeps.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple, Protocol

SECOND = 1_000_000
MILLISECOND = 1_000
EPOCH_US = 1_800_000_000 * SECOND
"""What the wall clocks show at the beginning."""
TAIL = 60
MOST_EVENTS = 60_000

Act = Callable[[], object]


class Violation(BaseException):
    """An invariant is broken.

    Not an `Exception`: the code under test must not swallow it.
    """


class Killed(BaseException):
    """A process dies here, at a crash point."""

    def __init__(self, kill: Act) -> None:
        super().__init__()
        self.kill = kill


class Life(Protocol):
    """Something whose events die with it."""

    alive: bool


class Event(NamedTuple):
    """Something that will happen; the number makes the order total."""

    at: int
    number: int
    label: str
    act: Act
    life: Life | None
    quiet: bool
    """Whether it does not keep the run going: a heartbeat, and what follows from it."""


class World:
    """The hosts, the order of all events and the trace of one run."""

    def __init__(self, seed: int, tail: int = TAIL) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.now = 0
        self.events = 0
        self.faults: Counter[str] = Counter()
        self.after_step: list[Callable[[Host], None]] = []
        """Called after each event with the host that it was on."""
        self.tail: deque[str] = deque(maxlen=tail)
        self.hosts: list[Host] = []
        self.numbered = 0
        self.loud = 0
        """How many events there are that are not quiet."""
        self.cancelled: set[int] = set()
        self.elsewhere = Host(self, "")
        """The host of clients and of injected faults."""
        self._hash = hashlib.blake2b(digest_size=16)

    def between(self, least_us: int, most_us: int) -> int:
        """Draw a time."""
        return least_us + int(self.rng.random() * (most_us - least_us))

    def chance(self, probability: float) -> bool:
        """Draw a boolean."""
        return self.rng.random() < probability

    def spread(self, least_us: int, most_us: int) -> int:
        """Draw a time, log-uniformly."""
        return int(least_us * (most_us / least_us) ** self.rng.random())

    def new_host(self, name: str) -> "Host":
        """Add a machine."""
        return Host(self, name)

    # Events.

    def run(self, until_us: int | None = None) -> None:
        """Process events, up to a time or until only quiet ones are left."""
        while until_us is not None or self.loud:
            host = self._next()
            if host is None:
                break
            event = host.heap[0]
            at = event.at + host.slept
            if until_us is not None and at > until_us:
                break
            heappop(host.heap)
            self.loud -= not event.quiet
            if event.number in self.cancelled:
                self.cancelled.discard(event.number)
            elif event.life is None or event.life.alive:
                self.now = at
                self._happen(host, event)
        if until_us is not None:
            self.now = max(self.now, until_us)

    def _next(self) -> "Host | None":
        found, first = None, (0, 0)
        for host in self.hosts:
            if host.heap and not host.asleep:
                event = host.heap[0]
                place = (event.at + host.slept, event.number)
                if found is None or place < first:
                    found, first = host, place
        return found

    def _happen(self, host: "Host", event: Event) -> None:
        self.events += 1
        if self.events > MOST_EVENTS:
            raise Violation(f"no end after {MOST_EVENTS} events")
        host.note(event.label)
        try:
            event.act()
        except Killed as death:
            death.kill()
        for look in self.after_step:
            look(host)

    # The trace.

    def note(self, text: str) -> None:
        """Write a line of the trace."""
        line = f"{self.now} {text}"
        self._hash.update(line.encode())
        self.tail.append(line)

    def trace_hash(self) -> str:
        """Return the hash of the whole trace."""
        return self._hash.hexdigest()


class Host:
    """One machine's clocks and events."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.rng = world.rng
        self.seed = world.seed
        self.between, self.chance = world.between, world.chance
        self.name = name
        self.heap: list[Event] = []
        self.slept = 0
        """How long it has slept, without a sleep that is not over."""
        self.asleep = False
        self.excused_until = 0
        """Until when it may not have noticed yet that it slept."""
        self._asleep_at = 0
        self._booted_at = 0
        self._jumped = 0
        world.hosts.append(self)

    # Clocks.

    @property
    def now(self) -> int:
        """Time awake since the beginning."""
        return (self._asleep_at if self.asleep else self.world.now) - self.slept

    @property
    def boot_us(self) -> int:
        """Time since its boot, sleep included."""
        return self.world.now - self._booted_at

    @property
    def wall_us(self) -> int:
        """What its wall clock shows."""
        return EPOCH_US + self.world.now + self._jumped

    def sleep(self) -> None:
        """Suspend it: only the boot clock and the wall clock go on."""
        if not self.asleep:
            self.asleep, self._asleep_at = True, self.world.now

    def wake(self) -> None:
        """Resume it."""
        if self.asleep:
            self.slept += self.world.now - self._asleep_at
            self.asleep = False

    def boot(self, ago_us: int = 0) -> None:
        """Begin a new boot."""
        self._booted_at = self.world.now - ago_us

    def jump(self, us: int) -> None:
        """Set the wall clock."""
        self._jumped += us

    def set_clock(self, us: int) -> None:
        """Have the wall clock wrong by so much."""
        self._jumped = us

    # Events.

    def after(
        self,
        delay_us: int,
        label: str,
        act: Act,
        life: Life | None = None,
        *,
        quiet: bool = False,
    ) -> Event:
        """Schedule an event, which is dropped if its `life` ends before."""
        world = self.world
        world.numbered += 1
        world.loud += not quiet
        at = self.now + max(0, delay_us)
        event = Event(at, world.numbered, label, act, life, quiet)
        heappush(self.heap, event)
        return event

    def cancel(self, event: Event | None) -> None:
        """Cancel an event that has not happened yet."""
        if event is not None:
            self.world.cancelled.add(event.number)

    def note(self, text: str) -> None:
        """Write a line of the trace."""
        self.world.note(f"{self.name} {text}")
