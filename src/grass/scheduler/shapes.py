"""Shapes: jobs that ask for the same thing wait in one line.

A shape is a queue, a request, constraints and a limiter. Jobs of one shape are
interchangeable to the placement, so only the head of each line is ever looked at, and
a decision does not depend on how many wait behind it. `head` is always the best order
among `members`; entries of jobs that left stay in the line until they surface.
"""

from collections import deque
from enum import Enum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from grass.model.resources import Request

if TYPE_CHECKING:
    from grass.scheduler.gates import Gate, Queue
    from grass.scheduler.index import Entry
    from grass.scheduler.worker import Worker

Order = tuple[int, int, int]
"""Minus priority, arrival, job: the smaller goes first."""


class Standing(Enum):
    """Where a shape with waiting jobs is kept."""

    READY = "ready"
    BLOCKED = "blocked"
    PARKED = "parked"


class ShapeKey(NamedTuple):
    """What makes two jobs interchangeable."""

    queue: str
    request: Request
    worker: str | None
    labels: frozenset[str]
    limiter: str | None


class Shape:
    """The line of waiting jobs with one key, and where the scheduler keeps it."""

    __slots__ = (
        "_run",
        "_strays",
        "eligible",
        "entries",
        "head",
        "key",
        "limiter",
        "members",
        "number",
        "parked_at",
        "queue",
        "request",
        "standing",
    )

    def __init__(
        self, number: int, key: ShapeKey, queue: "Queue", limiter: "Gate | None"
    ) -> None:
        """Start an empty line; `number` breaks ties without looking at hashes."""
        self.number = number
        self.key = key
        self.request = key.request
        self.queue = queue
        self.limiter = limiter
        self.members: dict[int, Order] = {}
        self.head: Order | None = None
        self.standing = Standing.PARKED
        self.entries: dict[str, Entry] = {}
        self.parked_at: Gate | None = None
        self.eligible: list[Worker] | None = None
        # Most jobs arrive in order: those are appended and taken in constant time.
        # Only jobs that jump ahead pay for a heap.
        self._run: deque[Order] = deque()
        self._strays: list[Order] = []

    def __lt__(self, other: "Shape") -> bool:
        """Let heaps break ties between stale entries."""
        return self.number < other.number

    def add(self, order: Order) -> bool:
        """Add a job; tell whether it is the new head."""
        self.members[order[2]] = order
        run = self._run
        if not run or order > run[-1]:
            run.append(order)
        else:
            heappush(self._strays, order)
        if self.head is None or order < self.head:
            self.head = order
            return True
        return False

    def discard(self, job: int) -> None:
        """Take a job out of the line, wherever it stands."""
        if self.members.pop(job) is self.head:
            self._settle_head()
        if len(self._run) + len(self._strays) > 2 * len(self.members) + 64:
            self._run = deque(sorted(self.members.values()))
            self._strays = []

    def gate(self) -> "Gate | None":
        """Return the closed gate that keeps this shape from starting jobs, if any."""
        if not self.queue.is_open():
            return self.queue
        if self.limiter is not None and not self.limiter.is_open():
            return self.limiter
        return None

    def _settle_head(self) -> None:
        run, strays, members = self._run, self._strays, self.members
        while run and members.get(run[0][2]) is not run[0]:
            run.popleft()
        while strays and members.get(strays[0][2]) is not strays[0]:
            heappop(strays)
        if run and not (strays and strays[0] < run[0]):
            self.head = run[0]
        else:
            self.head = strays[0] if strays else None
