"""One seed, three clocks, a heap of events: all that a simulated run is made of.

The code under test is the code that ships: scheduler, broker, worker and keeper are
steps without I/O, so only the shells around them are simulated. Whatever is drawn is
drawn from one `Random`; nothing here knows the real time, threads or sockets, and two
runs of a seed do exactly the same, event by event.

Time is a count of microseconds that the machine was awake. The boot clock adds the time
it slept, the wall clock adds that and the jumps somebody made it do.
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
"""What the wall clock shows at the beginning."""
TAIL = 60
MOST_EVENTS = 40_000

Act = Callable[[], object]


class Violation(BaseException):
    """Something that must always hold does not.

    Not an `Exception`: the code under test must not swallow it.
    """


class Killed(BaseException):
    """A process dies here, in the middle of what it does."""

    def __init__(self, kill: Act) -> None:
        """Carry what is to be done about it."""
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


class World:
    """The clocks, the heap and the trace of one run."""

    def __init__(self, seed: int, tail: int = TAIL) -> None:
        """Begin at time zero with nothing to do."""
        self.seed = seed
        self.rng = Random(seed)
        self.now = 0
        self.events = 0
        self.faults: Counter[str] = Counter()
        self.after_step: list[Act] = []
        self.tail: deque[str] = deque(maxlen=tail)
        self._slept = 0
        self._jumped = 0
        self._heap: list[Event] = []
        self._numbered = 0
        self._cancelled: set[int] = set()
        self._hash = hashlib.blake2b(digest_size=16)

    # Clocks.

    @property
    def boot_us(self) -> int:
        """Time since the beginning, sleep included."""
        return self.now + self._slept

    @property
    def wall_us(self) -> int:
        """What the wall clock shows."""
        return EPOCH_US + self.now + self._slept + self._jumped

    def sleep(self, us: int) -> None:
        """Suspend the machine: only the boot clock and the wall clock go on."""
        self._slept += us

    def jump(self, us: int) -> None:
        """Set the wall clock."""
        self._jumped += us

    # Events.

    def after(
        self, delay_us: int, label: str, act: Act, life: Life | None = None
    ) -> Event:
        """Have something happen later, unless the one it happens to dies before."""
        self._numbered += 1
        at = self.now + max(0, delay_us)
        event = Event(at, self._numbered, label, act, life)
        heappush(self._heap, event)
        return event

    def cancel(self, event: Event | None) -> None:
        """Have something not happen that has not happened yet."""
        if event is not None:
            self._cancelled.add(event.number)

    def between(self, least_us: int, most_us: int) -> int:
        """Draw a time."""
        return least_us + int(self.rng.random() * (most_us - least_us))

    def chance(self, probability: float) -> bool:
        """Draw whether."""
        return self.rng.random() < probability

    def run(self, until_us: int | None = None) -> None:
        """Let everything happen that is to happen, up to a time."""
        while self._heap and (until_us is None or self._heap[0].at <= until_us):
            event = heappop(self._heap)
            if event.number in self._cancelled:
                self._cancelled.discard(event.number)
            elif event.life is None or event.life.alive:
                self._happen(event)
        if until_us is not None:
            self.now = max(self.now, until_us)

    def _happen(self, event: Event) -> None:
        self.now = event.at
        self.events += 1
        if self.events > MOST_EVENTS:
            raise Violation(f"no end after {MOST_EVENTS} events")
        self.note(event.label)
        try:
            event.act()
        except Killed as death:
            death.kill()
        for look in self.after_step:
            look()

    # The trace.

    def note(self, text: str) -> None:
        """Write a line of the trace."""
        line = f"{self.now} {text}"
        self._hash.update(line.encode())
        self.tail.append(line)

    def trace_hash(self) -> str:
        """Give what the whole trace comes to."""
        return self._hash.hexdigest()
