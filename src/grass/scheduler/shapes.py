"""Shapes: jobs that ask for the same thing wait in one line.

A shape is a queue, a request, constraints and a limiter. Jobs of one shape are
interchangeable to the placement, so only the head of each line is ever looked at, and
a decision does not depend on how many wait behind it. `head` is always the best order
in the line. A waiting job is one number there: a million of them may wait.
"""

from bisect import bisect_left
from collections.abc import Iterable
from enum import Enum
from heapq import heappop, heappush, nsmallest
from typing import TYPE_CHECKING, NamedTuple

from grass.model.resources import Request

if TYPE_CHECKING:
    from grass.scheduler.gates import Gate, Queue
    from grass.scheduler.index import Entry
    from grass.scheduler.worker import Worker

Order = int
"""Minus priority, then the job: the smaller goes first."""
_JOBS = 2**63
_FEW = 64


def order_of(job: int, priority: int) -> Order:
    """Give a job's place among all; without a priority it is the job's own number."""
    return job - priority * _JOBS if priority else job


def job_of(order: Order) -> int:
    """Give the job of an order."""
    return order if 0 < order < _JOBS else order % _JOBS


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
        "_gone",
        "_run",
        "_strays",
        "_taken",
        "count",
        "eligible",
        "entries",
        "head",
        "key",
        "limiter",
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
        self.count = 0
        """How many jobs wait in it."""
        self.head: Order | None = None
        self.standing = Standing.PARKED
        self.entries: dict[str, Entry] = {}
        self.parked_at: Gate | None = None
        self.eligible: list[Worker] | None = None
        # Most jobs arrive in order: those are appended and taken in constant time.
        # Only jobs that jump ahead pay for a heap. Who leaves from the middle is noted.
        self._run: list[Order] = []
        self._taken = 0
        self._strays: list[Order] = []
        self._gone: set[Order] = set()

    def __lt__(self, other: "Shape") -> bool:
        """Let heaps break ties between stale entries."""
        return self.number < other.number

    def add(self, order: Order) -> bool:
        """Add a job; tell whether it is the new head."""
        self.count += 1
        run = self._run
        if order in self._gone:
            self._gone.discard(order)
        elif self._taken == len(run) or order > run[-1]:
            run.append(order)
        else:
            heappush(self._strays, order)
            if len(self._strays) > _FEW + len(run) // 4:
                self._sort()
        if self.head is None or order < self.head:
            self.head = order
            return True
        return False

    def extend(self, orders: list[Order]) -> bool:
        """Add some jobs, the first to start first; tell whether it is the new head."""
        is_head = self.add(orders[0])
        if self._run and self._run[-1] == orders[0] and not self._gone:
            self._run += orders[1:]
            self.count += len(orders) - 1
        else:
            for order in orders[1:]:
                self.add(order)
        return is_head

    def discard(self, order: Order) -> None:
        """Take a job out of the line, wherever it stands."""
        self.count -= 1
        if order != self.head:
            self._gone.add(order)
            if len(self._gone) > _FEW + self.count // 8:
                self._sort()
            return
        if self._taken < len(self._run) and self._run[self._taken] == order:
            self._take()
        else:
            heappop(self._strays)
        self._settle_head()

    def before(self, order: Order) -> int:
        """Count the jobs of the line that go before this order."""
        ahead = bisect_left(self._run, order, self._taken) - self._taken
        ahead += sum(one < order for one in self._strays)
        return ahead - sum(one < order for one in self._gone)

    def first(self, most: int) -> list[Order]:
        """Return the orders of the first jobs in line."""
        gone = self._gone
        run = self._run[self._taken : self._taken + most + len(gone)]
        found = [one for one in run if one not in gone][:most]
        found += nsmallest(most, (one for one in self._strays if one not in gone))
        return sorted(found)[:most]

    def orders(self) -> list[Order]:
        """Return the orders of all waiting jobs, the first to start first."""
        gone = self._gone
        line = [*self._run[self._taken :], *self._strays]
        return sorted(one for one in line if one not in gone)

    def gate(self) -> "Gate | None":
        """Return the closed gate that keeps this shape from starting jobs, if any."""
        if not self.queue.is_open():
            return self.queue
        if self.limiter is not None and not self.limiter.is_open():
            return self.limiter
        return None

    def _take(self) -> None:
        self._taken += 1
        if self._taken > _FEW + len(self._run) // 2:
            del self._run[: self._taken]
            self._taken = 0

    def _sort(self) -> None:
        self._run, self._taken = self.orders(), 0
        self._strays, self._gone = [], set()

    def _settle_head(self) -> None:
        run, strays, gone = self._run, self._strays, self._gone
        while self._taken < len(run) and run[self._taken] in gone:
            gone.discard(run[self._taken])
            self._take()
        while strays and strays[0] in gone:
            gone.discard(heappop(strays))
        first = run[self._taken] if self._taken < len(run) else None
        if first is not None and not (strays and strays[0] < first):
            self.head = first
        else:
            self.head = strays[0] if strays else None


def first(shapes: Iterable[Shape], most: int) -> list[int]:
    """Return the first jobs in order of all that wait in these lines."""
    best = nsmallest(most, shapes, key=lambda shape: shape.head or 0)
    orders = sorted(order for shape in best for order in shape.first(most))
    return [job_of(order) for order in orders[:most]]
