"""Blocked items ranked by the amount they ask for: finds the best one that fits.

The question after every release: of all items that ask for at most this much, which
has the best order? `BlockedSet` answers it for one kind of one worker. An item is a
blocked shape, or stands for all entries of one bucket and amount (`buckets`). It
is ranked by the order of its head at that time: a head can only have become worse since
(a better one is ranked anew), so a stale rank comes up early and is then renewed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, NamedTuple

from grass.scheduler.device_memory import largest_tied
from grass.scheduler.unit_choice import largest_on_one, largest_on_several
from grass.scheduler.worker_units import only_of

if TYPE_CHECKING:
    from grass.model.resources import Units
    from grass.scheduler.shapes import StartOrder
    from grass.scheduler.worker_units import Gpus, WorkerUnits

BLOCK = 48


class BlockedItem:
    """Something blocked, until it is removed."""

    __slots__ = ("amount", "live")

    def __init__(self, amount: int) -> None:
        self.amount = amount
        # Read for every item that comes up, so it is kept here.
        self.live = True

    @property
    def head(self) -> StartOrder | None:
        """The order of its first job; None: no job waits in it any more."""
        raise NotImplementedError

    def __lt__(self, other: BlockedItem) -> bool:
        """Break ties of heaps with items that are removed."""
        return self.amount < other.amount


Ranked = tuple["StartOrder", BlockedItem]
"""An item, and the order of its head when it was last examined."""


class LargestFit(NamedTuple):
    """The largest amounts that fit at present."""

    one: int
    """On one unit, for amounts up to `largest`."""
    largest: int
    """The size of the largest unit: a greater amount needs several."""
    several: int
    """On several units, for amounts above `largest`."""

    def fits(self, amount: int) -> bool:
        """Return whether an amount fits."""
        return amount <= (self.one if amount <= self.largest else self.several)


def tied_fit(gpu: Units, vram: Units) -> LargestFit:
    """Return what fits of a request for both kinds on the same units."""
    most = largest_tied(gpu, vram)
    return LargestFit(most, most, 0)


def learned_fit(vram: Units) -> LargestFit:
    """Return the memory that one GPU has for a job whose memory is looked up."""
    most = largest_on_one(vram)
    return LargestFit(most, most, 0)


class BlockedSet:
    """Items that lack one kind of one worker."""

    __slots__ = ("_buckets", "_by_amount", "_dead", "_live", "gpus", "kind", "worker")

    def __init__(self, worker: WorkerUnits, kind: str, gpus: Gpus = None) -> None:
        self.worker = worker
        self.kind = kind
        self.gpus = gpus
        """The GPUs that its items can use."""
        self._live = 0
        self._dead = 0
        self._buckets: dict[int, list[Ranked]] = {}
        self._by_amount = RankedAmounts()

    def largest_fit(self, order: StartOrder | None) -> LargestFit:
        """Return what fits for a job of this order; None ignores reservations."""
        raise NotImplementedError

    def add(self, order: StartOrder, item: BlockedItem) -> bool:
        """Rank an item by its head; return whether it is the best of its amount."""
        self._live += 1
        bucket = self._buckets.setdefault(item.amount, [])
        ranked = order, item
        heappush(bucket, ranked)
        if bucket[0] is not ranked:
            return False
        self._by_amount.put(item.amount, ranked)
        return True

    def discard(self, item: BlockedItem) -> None:
        """Mark an item as removed; its rank stays until it comes up or is compacted."""
        item.live = False
        self._live -= 1
        self._dead += 1
        if self._dead > self._live + 64:
            self._compact()

    def best_that_fits(self) -> Ranked | None:
        """Return the best live item whose amount fits on the worker."""
        best = self._best_that_fits(None)
        reservation = self.worker.reservation
        if best is None or reservation is None or best[0] <= reservation.order:
            return best
        return self._best_that_fits(best[0])

    def best(self, better_than: StartOrder) -> BlockedItem | None:
        """Return the best live item of all, if it beats this order."""
        while True:
            best = self._by_amount.top()
            if best is None or best[0] >= better_than:
                return None
            if _is_current(best):
                return best[1]
            self._renew(best[1].amount)

    def best_of(self, amount: int) -> Ranked | None:
        """Return the best live item of one amount."""
        bucket = self._buckets.get(amount)
        if bucket is None or _is_current(bucket[0]):
            return None if bucket is None else bucket[0]
        self._renew(amount)
        return bucket[0] if bucket else None

    def items(self) -> Iterator[BlockedItem]:
        """Yield the live items, in no order."""
        for bucket in self._buckets.values():
            for _, item in bucket:
                if item.live:
                    yield item

    def check(self) -> None:
        """Compare counts and ranked amounts with the buckets."""
        live = sum(1 for _ in self.items())
        total = sum(len(bucket) for bucket in self._buckets.values())
        assert live == self._live, f"{self.kind}: {live} live, counted {self._live}"
        assert total - live == self._dead, f"{self.kind}: dead count"
        for amount, bucket in self._buckets.items():
            assert self._by_amount.best(amount - 1, amount) is bucket[0], "rank"

    def _best_that_fits(self, order: StartOrder | None) -> Ranked | None:
        if not self._buckets:
            return None
        one, largest, several = self.largest_fit(order)
        while True:
            # Nothing is what a guest needs whose own process has enough.
            best = self._by_amount.best(-1, one)
            if several > largest:
                larger = self._by_amount.best(largest, several)
                if larger is not None and (best is None or larger < best):
                    best = larger
            if best is None or _is_current(best):
                return best
            self._renew(best[1].amount)

    def _fit_on(self, queue: str, units: Units) -> LargestFit:
        worker, gpus = self.worker, self.gpus
        kinds = (
            worker.kinds_for(queue) if gpus is None else worker.kinds_with(queue, gpus)
        )
        kind_units = kinds.get(self.kind)
        if kind_units is None:
            return LargestFit(0, 0, 0)
        several, largest = 0, kind_units.largest
        if self._by_amount.greatest() > largest:
            whole = self.worker.whole_sizes(self.kind, queue)
            several = largest_on_several(units, whole)
        return LargestFit(min(largest_on_one(units), largest), largest, several)

    def _only(self, units: Units) -> Units:
        """Return those of some units that its items can use."""
        return units if self.gpus is None else only_of(units, self.gpus)

    def _renew(self, amount: int) -> None:
        """Bring a current item to a bucket's top: renew stale ranks, drop dead ones.

        Jobs that started on other workers may have made many of them stale at once.
        """
        bucket = self._buckets[amount]
        while bucket:
            order, item = bucket[0]
            head = item.head if item.live else None
            if head is None:
                heappop(bucket)
                if item.live:
                    item.live = False
                    self._live -= 1
                else:
                    self._dead -= 1
            elif order == head:
                self._by_amount.put(amount, bucket[0])
                return
            else:
                heapreplace(bucket, (head, item))
        del self._buckets[amount]
        self._by_amount.remove(amount)

    def _compact(self) -> None:
        for amount, bucket in list(self._buckets.items()):
            bucket[:] = [ranked for ranked in bucket if ranked[1].live]
            if not bucket:
                del self._buckets[amount]
        self._dead = 0
        self._by_amount = RankedAmounts()
        for amount, bucket in self._buckets.items():
            heapify(bucket)
            self._by_amount.put(amount, bucket[0])


def _is_current(ranked: Ranked) -> bool:
    order, item = ranked
    return item.live and order == item.head


class _Block:
    """Some neighbouring amounts, sorted, with the best entry of all of them."""

    __slots__ = ("amounts", "best", "entries")

    def __init__(self, amounts: list[int], entries: list[Ranked]) -> None:
        self.amounts = amounts
        self.entries = entries
        self.best = min(entries)

    def put(self, amount: int, entry: Ranked) -> None:
        at = bisect_left(self.amounts, amount)
        if at < len(self.amounts) and self.amounts[at] == amount:
            old = self.entries[at]
            self.entries[at] = entry
            if old is self.best:
                self.best = min(self.entries)
        else:
            self.amounts.insert(at, amount)
            self.entries.insert(at, entry)
        self.best = min(self.best, entry)

    def remove(self, amount: int) -> None:
        at = bisect_left(self.amounts, amount)
        del self.amounts[at]
        if self.entries.pop(at) is self.best and self.entries:
            self.best = min(self.entries)

    def best_within(self, above: int, up_to: int) -> Ranked | None:
        amounts = self.amounts
        if amounts[0] > above and amounts[-1] <= up_to:
            return self.best
        low, high = bisect_right(amounts, above), bisect_right(amounts, up_to)
        return min(self.entries[low:high], default=None)


class RankedAmounts:
    """Sorted amounts, each with its best entry, and the best entry of any range.

    Amounts are in blocks of bounded size, each with its own best, so a question reads
    the best of whole blocks and looks into two blocks at most.
    """

    __slots__ = ("_blocks", "_lasts")

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._lasts: list[int] = []

    def put(self, amount: int, entry: Ranked) -> None:
        """Set the best entry of an amount."""
        if not self._blocks:
            self._blocks.append(_Block([amount], [entry]))
            self._lasts.append(amount)
            return
        at = min(bisect_left(self._lasts, amount), len(self._lasts) - 1)
        block = self._blocks[at]
        block.put(amount, entry)
        self._lasts[at] = block.amounts[-1]
        if len(block.amounts) > BLOCK:
            self._split(at)

    def remove(self, amount: int) -> None:
        """Remove an amount that is in it."""
        at = bisect_left(self._lasts, amount)
        block = self._blocks[at]
        block.remove(amount)
        if block.amounts:
            self._lasts[at] = block.amounts[-1]
        else:
            del self._blocks[at]
            del self._lasts[at]

    def best(self, above: int, up_to: int) -> Ranked | None:
        """Return the best entry with an amount above one bound and up to another."""
        found = None
        for at in range(bisect_right(self._lasts, above), len(self._blocks)):
            block = self._blocks[at]
            if block.amounts[0] > up_to:
                break
            if found is None or block.best < found:
                entry = block.best_within(above, up_to)
                if entry is not None and (found is None or entry < found):
                    found = entry
        return found

    def top(self) -> Ranked | None:
        """Return the best entry of all."""
        return min((block.best for block in self._blocks), default=None)

    def greatest(self) -> int:
        """Return the largest amount, 0 if there is none."""
        return self._lasts[-1] if self._lasts else 0

    def _split(self, at: int) -> None:
        block = self._blocks[at]
        middle = len(block.amounts) // 2
        left = _Block(block.amounts[:middle], block.entries[:middle])
        right = _Block(block.amounts[middle:], block.entries[middle:])
        self._blocks[at : at + 1] = [left, right]
        self._lasts[at : at + 1] = [left.amounts[-1], right.amounts[-1]]
