"""Blocked shapes, found by what a worker must free before they can start.

A blocked shape has one entry per eligible worker, in the pool of a kind that this
worker lacks for it. So no wake-up is lost, and a release asks only the pools of the
kinds it freed for the best shape whose amount is now within reach. Entries are ranked
by the head's order of that time: it can only have become worse since (a better head
makes the shape ready again), so a stale rank surfaces early and is then renewed.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

from grass.model.resources import Units
from grass.scheduler.ladder import Ladder
from grass.scheduler.placement import TIED, reach_one, reach_several, tied_reach
from grass.scheduler.shapes import Order, Shape
from grass.scheduler.worker import Worker

TIED_KINDS = frozenset({"gpu", "vram"})


class Entry:
    """One blocked shape in one worker's pool."""

    __slots__ = ("amount", "live", "pool", "shape")

    def __init__(self, shape: Shape, amount: int, pool: "Pool") -> None:
        """Stand for a shape until it is taken out."""
        self.shape = shape
        self.amount = amount
        self.pool = pool
        # Asked of every entry that surfaces, so it is not looked up in the shape.
        self.live = True

    def __lt__(self, other: "Entry") -> bool:
        """Let heaps break ties with entries that are dead."""
        return self.shape.number < other.shape.number


Ranked = tuple[Order, Entry]
"""An entry, and the order of its shape's head when it was last looked at."""


class Pool:
    """Shapes that lack one kind of one worker, as all queues or one view sees it."""

    __slots__ = ("_buckets", "_dead", "_ladder", "_live", "kind", "queue", "worker")

    def __init__(self, worker: Worker, kind: str, queue: str) -> None:
        """Start empty; `queue` is empty where no view limits the kind."""
        self.worker = worker
        self.kind = kind
        self.queue = queue
        self._live = 0
        self._dead = 0
        self._buckets: dict[int, list[Ranked]] = {}
        self._ladder = Ladder()

    def push(self, shape: Shape, amount: int) -> None:
        """Add a blocked shape that asks for this amount of the kind."""
        assert shape.head is not None
        entry = shape.entries[self.worker.name] = Entry(shape, amount, self)
        self._live += 1
        bucket = self._buckets.setdefault(amount, [])
        ranked = shape.head, entry
        heappush(bucket, ranked)
        if bucket[0] is ranked:
            self._ladder.put(amount, ranked)

    def forget(self, entry: Entry) -> None:
        """Count one entry as dead; its shape no longer names it."""
        entry.live = False
        self._live -= 1
        self._dead += 1
        if self._dead > self._live + 64:
            self._compact()

    def best_startable(self) -> Ranked | None:
        """Return the best live entry whose amount is within reach on the worker."""
        best = self._best_within(None)
        claim = self.worker.claim
        if best is None or claim is None or best[0] <= claim.order:
            return best
        return self._best_within(best[0])

    def best_live(self, better_than: Order) -> Entry | None:
        """Return the best live entry of all, if it beats this order."""
        while True:
            best = self._ladder.top()
            if best is None or best[0] >= better_than:
                return None
            if _is_current(best):
                return best[1]
            self._renew(best[1].amount)

    def entries(self) -> Iterator[Entry]:
        """Yield the live entries, in no order."""
        for bucket in self._buckets.values():
            for _, entry in bucket:
                if entry.live:
                    yield entry

    def check(self) -> None:
        """Compare counts and the ladder with the buckets."""
        live = sum(1 for _ in self.entries())
        total = sum(len(bucket) for bucket in self._buckets.values())
        assert live == self._live, f"{self.kind}: {live} live, counted {self._live}"
        assert total - live == self._dead, f"{self.kind}: dead count"
        for amount, bucket in self._buckets.items():
            assert self._ladder.best(amount - 1, amount) is bucket[0], "ladder"

    def _best_within(self, order: Order | None) -> Ranked | None:
        if not self._buckets:
            return None
        one, largest, several = self._reach(order)
        while True:
            best = self._ladder.best(0, one) if one else None
            if several > largest:
                larger = self._ladder.best(largest, several)
                if larger is not None and (best is None or larger < best):
                    best = larger
            if best is None or _is_current(best):
                return best
            self._renew(best[1].amount)

    def _reach(self, order: Order | None) -> tuple[int, int, int]:
        """Return the reach on one unit, the largest unit, and the reach on several."""
        worker, queue = self.worker, self.queue
        if self.kind is TIED:
            gpu = worker.units_for("gpu", queue, order)
            reach = tied_reach(gpu, worker.units_for("vram", queue, order))
            return reach, reach, 0
        stock = worker.stocks_for(queue).get(self.kind)
        if stock is None:
            return 0, 0, 0
        units: Units = worker.units_for(self.kind, queue, order)
        several = 0
        if self._ladder.greatest() > stock.largest:
            several = reach_several(units, stock.sizes)
        return min(reach_one(units), stock.largest), stock.largest, several

    def _renew(self, amount: int) -> None:
        """Bring a current entry to a bucket's top: renew stale ones, drop dead ones.

        What other workers started since the last look made many of them stale at once.
        """
        bucket = self._buckets[amount]
        while bucket:
            order, entry = bucket[0]
            head = entry.shape.head
            if head is None or not entry.live:
                heappop(bucket)
                self._dead -= 1
            elif order is head:
                self._ladder.put(amount, bucket[0])
                return
            else:
                heapreplace(bucket, (head, entry))
        del self._buckets[amount]
        self._ladder.remove(amount)

    def _compact(self) -> None:
        for amount, bucket in list(self._buckets.items()):
            bucket[:] = [ranked for ranked in bucket if ranked[1].live]
            if not bucket:
                del self._buckets[amount]
        self._dead = 0
        self._ladder = Ladder()
        for amount, bucket in self._buckets.items():
            heapify(bucket)
            self._ladder.put(amount, bucket[0])


class BlockedIndex:
    """The pools of every worker."""

    def __init__(self) -> None:
        """Start empty."""
        self._pools: dict[str, dict[str, dict[str, Pool]]] = {}

    def insert(self, shape: Shape, worker: Worker, kind: str, amount: int) -> None:
        """Enter a shape for one worker under the kind it lacks there."""
        queue = shape.key.queue
        view = worker.views.get(queue)
        if view is None or not _limits(view.limits, kind):
            queue = ""
        kinds = self._pools.setdefault(worker.name, {})
        pools = kinds.setdefault(kind, {})
        pool = pools.get(queue)
        if pool is None:
            pool = pools[queue] = Pool(worker, kind, queue)
        pool.push(shape, amount)

    def withdraw(self, shape: Shape, worker: str) -> None:
        """Take out a shape's entry for one worker."""
        entry = shape.entries.pop(worker, None)
        if entry is not None:
            entry.pool.forget(entry)

    def forget(self, shape: Shape) -> None:
        """Take out all entries of a shape."""
        entries = list(shape.entries.values())
        shape.entries.clear()
        for entry in entries:
            entry.pool.forget(entry)

    def best_startable(self, worker: Worker, kinds: Iterable[str]) -> Ranked | None:
        """Return the best shape that a release of these kinds may have unblocked."""
        found: Ranked | None = None
        for pool in self.pools(worker, kinds):
            best = pool.best_startable()
            if best is not None and (found is None or best[0] < found[0]):
                found = best
        return found

    def pools(self, worker: Worker, kinds: Iterable[str]) -> list[Pool]:
        """Return a worker's pools that any of these kinds feeds."""
        of_worker = self._pools.get(worker.name)
        if of_worker is None:
            return []
        found: list[Pool] = []
        for kind in kinds:
            if kind in of_worker:
                found += of_worker[kind].values()
        if TIED in of_worker and not TIED_KINDS.isdisjoint(kinds):
            found += of_worker[TIED].values()
        return found

    def every_pool(self) -> Iterator[Pool]:
        """Yield all pools."""
        for kinds in self._pools.values():
            for pools in kinds.values():
                yield from pools.values()

    def clear(self) -> None:
        """Forget everything; the shapes' own entries are the caller's to clear."""
        self._pools.clear()


def _is_current(ranked: Ranked) -> bool:
    order, entry = ranked
    return entry.live and order is entry.shape.head


def _limits(limits: dict[str, Units], kind: str) -> bool:
    if kind is TIED:
        return not TIED_KINDS.isdisjoint(limits)
    return kind in limits
