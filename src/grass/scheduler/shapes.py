"""Shapes and gates: what waits, and what keeps it waiting though units may be free.

Jobs of one shape (queue, request, constraints, limiters, policy) are interchangeable to
the placement, so only the head of each shape is ever examined, and a decision does not
depend on how many jobs wait behind it. `head` is always the best order in the shape. A
waiting job is one integer: a million of them may wait.

A gate counts running holders against a limit. A queue is a gate that can also be
paused; a limiter, such as an array's cap, is a plain one. Shapes that met a closed gate
are parked with it, best order first, and come back one at a time when it opens, so
that opening for one job does not examine every shape behind it.
"""

from bisect import bisect_left
from collections.abc import Iterable
from enum import Enum
from heapq import heappop, heappush, nsmallest
from typing import TYPE_CHECKING, NamedTuple

from grass.model.resources import Policy, Request

if TYPE_CHECKING:
    from grass.scheduler.blocked.buckets import BlockedEntry
    from grass.scheduler.job_types import JobType
    from grass.scheduler.worker_units import WorkerUnits

StartOrder = int
"""Minus priority, then the job: the smaller goes first."""
_JOBS = 2**63
_FEW = 64


def order_of(job: int, priority: int) -> StartOrder:
    """Return a job's order among all; without a priority it is the job's own id."""
    return job - priority * _JOBS if priority else job


def job_of(order: StartOrder) -> int:
    """Return the job of an order."""
    return order if 0 < order < _JOBS else order % _JOBS


class ShapeState(Enum):
    """Where a shape with waiting jobs is kept."""

    READY = "ready"
    """In `Dispatch.ready`: to be tried on every eligible worker."""
    BLOCKED = "blocked"
    """In the `BlockedIndex`, once per eligible worker."""
    PARKED = "parked"
    """With a closed gate."""


class ShapeKey(NamedTuple):
    """What makes two jobs interchangeable."""

    queue: str
    request: Request
    worker: str | None
    labels: frozenset[str]
    limiters: tuple[str, ...] = ()
    model: str | None = None
    """A pattern that the model of each of its GPUs matches; None: any."""
    policy: Policy | None = None
    """Which of the units and workers that fit it takes; None: see `spreads`."""
    learned: str | None = None
    """The job type by which its GPU memory is looked up: see `learned_memory`."""
    process: int | None = None
    """The pid of a guest that asks again for a GPU of its worker, which `model` names.

    Memory that the process has kept is not withheld from it.
    """
    time_s: float | None = None
    """How long it may take, its grace included; None: it has no limit."""
    kind: str | None = None
    """Which workers it avoids: see `Fleet.set_avoided`."""


def spreads(key: ShapeKey) -> bool:
    """Return whether a shape takes what has most free, not the tightest fit.

    Without a policy that is so for memory of a GPU alone: the share that such a job
    uses of the GPU is unknown, so it is best with the fewest beside it.
    """
    if key.policy is not None:
        return key.policy == "spread"
    kinds = [kind for kind, _ in key.request]
    memory = "vram" in kinds or key.learned is not None
    return memory and "gpu" not in kinds


class Shape:
    """The waiting jobs with one key, and where the scheduler keeps them."""

    __slots__ = (
        "_heap",
        "_removed",
        "_sorted",
        "_start",
        "count",
        "eligible",
        "entries",
        "gates",
        "head",
        "key",
        "number",
        "parked_at",
        "queue",
        "request",
        "state",
    )

    def __init__(
        self,
        number: int,
        key: ShapeKey,
        queue: "QueueGate",
        limiters: "tuple[Gate, ...]" = (),
        learned: "JobType | None" = None,
    ) -> None:
        """Start empty; `number` breaks ties without hashes."""
        self.number = number
        self.key = key
        self.request = key.request
        self.queue = queue
        self.gates = Gates(queue, limiters, learned)
        self.count = 0
        """How many jobs wait in it."""
        self.head: StartOrder | None = None
        self.state = ShapeState.PARKED
        self.entries: dict[str, BlockedEntry] = {}
        self.parked_at: Gate | None = None
        self.eligible: list[WorkerUnits] | None = None
        # Most jobs arrive in order: they are appended and taken in constant time.
        # Only a job that goes before the last one pays for a heap. A job that leaves
        # from the middle is recorded in `_removed` and skipped later.
        self._sorted: list[StartOrder] = []
        self._start = 0
        self._heap: list[StartOrder] = []
        self._removed: set[StartOrder] = set()

    def __lt__(self, other: "Shape") -> bool:
        """Break ties between stale entries of heaps."""
        return self.number < other.number

    def add(self, order: StartOrder) -> bool:
        """Add a job; return whether it is the new head."""
        self.count += 1
        in_order = self._sorted
        if order in self._removed:
            self._removed.discard(order)
        elif self._start == len(in_order) or order > in_order[-1]:
            in_order.append(order)
        else:
            heappush(self._heap, order)
            if len(self._heap) > _FEW + len(in_order) // 4:
                self._sort()
        if self.head is None or order < self.head:
            self.head = order
            return True
        return False

    def extend(self, orders: list[StartOrder]) -> bool:
        """Add jobs, best order first; return whether the first is the new head."""
        is_head = self.add(orders[0])
        if self._sorted and self._sorted[-1] == orders[0] and not self._removed:
            self._sorted += orders[1:]
            self.count += len(orders) - 1
        else:
            for order in orders[1:]:
                self.add(order)
        return is_head

    def discard(self, order: StartOrder) -> None:
        """Remove a job, head or not."""
        self.count -= 1
        if order != self.head:
            self._removed.add(order)
            if len(self._removed) > _FEW + self.count // 8:
                self._sort()
            return
        if self._start < len(self._sorted) and self._sorted[self._start] == order:
            self._take_first()
        else:
            heappop(self._heap)
        self._update_head()

    def before(self, order: StartOrder) -> int:
        """Count the jobs that go before this order."""
        count = bisect_left(self._sorted, order, self._start) - self._start
        count += sum(one < order for one in self._heap)
        return count - sum(one < order for one in self._removed)

    def first(self, most: int) -> list[StartOrder]:
        """Return the best orders."""
        removed = self._removed
        in_order = self._sorted[self._start : self._start + most + len(removed)]
        found = [one for one in in_order if one not in removed][:most]
        found += nsmallest(most, (one for one in self._heap if one not in removed))
        return sorted(found)[:most]

    def orders(self) -> list[StartOrder]:
        """Return the orders of all waiting jobs, best first."""
        removed = self._removed
        all = [*self._sorted[self._start :], *self._heap]
        return sorted(one for one in all if one not in removed)

    def gate(self) -> "Gate | None":
        """Return the closed gate that keeps this shape from starting jobs, if any."""
        if not self.queue.is_open():
            return self.queue
        for limiter in self.gates.limiters:
            if not limiter.is_open():
                return limiter
        return None

    def _take_first(self) -> None:
        self._start += 1
        if self._start > _FEW + len(self._sorted) // 2:
            del self._sorted[: self._start]
            self._start = 0

    def _sort(self) -> None:
        self._sorted, self._start = self.orders(), 0
        self._heap, self._removed = [], set()

    def _update_head(self) -> None:
        in_order, heap, removed = self._sorted, self._heap, self._removed
        while self._start < len(in_order) and in_order[self._start] in removed:
            removed.discard(in_order[self._start])
            self._take_first()
        while heap and heap[0] in removed:
            removed.discard(heappop(heap))
        first = in_order[self._start] if self._start < len(in_order) else None
        if first is not None and not (heap and heap[0] < first):
            self.head = first
        else:
            self.head = heap[0] if heap else None


def first(shapes: Iterable[Shape], most: int) -> list[int]:
    """Return the first jobs in order of all that wait in these shapes."""
    best = nsmallest(most, shapes, key=lambda shape: shape.head or 0)
    orders = sorted(order for shape in best for order in shape.first(most))
    return [job_of(order) for order in orders[:most]]


class Gate:
    """A limit on running holders, with the shapes that wait for it to open."""

    __slots__ = ("max_running", "name", "parked", "paused", "running")

    def __init__(self, name: str) -> None:
        self.name = name
        self.max_running: int | None = None
        self.paused = False
        self.running = 0
        self.parked: list[tuple[StartOrder, Shape]] = []

    def is_open(self) -> bool:
        """Return whether one more holder may start."""
        if self.paused:
            return False
        return self.max_running is None or self.running < self.max_running

    def is_paused(self) -> bool:
        """Return whether the gate stays closed when running jobs end."""
        return self.paused or self.max_running == 0

    def fullness(self) -> tuple[int, int] | None:
        """Return running and allowed where the limit is reached."""
        if self.max_running is None or self.running < self.max_running:
            return None
        return self.running, self.max_running

    def park(self, shape: Shape) -> None:
        """Keep a shape until the gate opens; parking again renews its order."""
        assert shape.head is not None
        shape.state = ShapeState.PARKED
        shape.parked_at = self
        heappush(self.parked, (shape.head, shape))

    def next_parked(self) -> Shape | None:
        """Remove and return the parked shape with the best head, if any."""
        parked = self.parked
        while parked:
            order, shape = heappop(parked)
            if shape.state is not ShapeState.PARKED or shape.head is None:
                continue
            if shape.parked_at is not self:
                continue
            if order < shape.head:
                heappush(parked, (shape.head, shape))
                continue
            return shape
        return None


class QueueGate(Gate):
    """A queue: its gate, its waiting shapes, and whether every worker serves it."""

    __slots__ = ("open_to_all", "shapes", "waiting")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.open_to_all = False
        self.waiting = 0
        self.shapes: dict[Shape, None] = {}


class Gates(NamedTuple):
    """What counts the holders of one shape."""

    queue: QueueGate | None
    limiters: tuple[Gate, ...] = ()
    learned: "JobType | None" = None

    def are_of_queue(self) -> bool:
        """Return whether the queue alone decides when one more may start."""
        return not self.limiters and self.learned is None
