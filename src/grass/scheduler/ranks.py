"""Blocked things by the amount they ask for, the best of them found for any reach.

What is ranked is an entry of one shape, or a lane that stands for all entries of one
pool and amount (`index`). It is ranked by the order of its head at that time: a head
can only have become worse since (a better one is ranked anew), so a stale rank surfaces
early and is then renewed.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, NamedTuple

from grass.scheduler.placement import reach_one, reach_several, tied_reach
from grass.scheduler.ranked_amounts import Ladder

if TYPE_CHECKING:
    from grass.model.resources import Units
    from grass.scheduler.shapes import Order
    from grass.scheduler.worker import Stock, Worker


class Item:
    """Something blocked, until it is taken out."""

    __slots__ = ("amount", "live")

    def __init__(self, amount: int) -> None:
        self.amount = amount
        # Asked of every item that surfaces, so it is not looked up elsewhere.
        self.live = True

    @property
    def head(self) -> Order | None:
        """The order of the first job behind it; None: there is none any more."""
        raise NotImplementedError

    def __lt__(self, other: Item) -> bool:
        """Let heaps break ties with items that are dead."""
        return self.amount < other.amount


Ranked = tuple["Order", Item]
"""An item, and the order of its head when it was last looked at."""


class Reach(NamedTuple):
    """How much can be given at present."""

    one: int
    """On one unit, to what fits on the largest unit."""
    largest: int
    several: int
    """On several units, to what does not."""

    def holds(self, amount: int) -> bool:
        """Tell whether an amount is within reach."""
        return amount <= (self.one if amount <= self.largest else self.several)


class Ranks:
    """Items that lack one kind of one worker."""

    __slots__ = ("_buckets", "_dead", "_ladder", "_live", "kind", "worker")

    def __init__(self, worker: Worker, kind: str) -> None:
        self.worker = worker
        self.kind = kind
        self._live = 0
        self._dead = 0
        self._buckets: dict[int, list[Ranked]] = {}
        self._ladder = Ladder()

    def reach(self, order: Order | None) -> Reach:
        """Tell what is within reach of a job of this order; None sees past claims."""
        raise NotImplementedError

    def add(self, order: Order, item: Item) -> bool:
        """Rank an item by its head; tell whether it is the best of its amount."""
        self._live += 1
        bucket = self._buckets.setdefault(item.amount, [])
        ranked = order, item
        heappush(bucket, ranked)
        if bucket[0] is not ranked:
            return False
        self._ladder.put(item.amount, ranked)
        return True

    def forget(self, item: Item) -> None:
        """Count one item as dead; nobody names it any more."""
        item.live = False
        self._live -= 1
        self._dead += 1
        if self._dead > self._live + 64:
            self._compact()

    def best_within_reach(self) -> Ranked | None:
        """Return the best live item whose amount is within reach on the worker."""
        best = self._best_within(None)
        claim = self.worker.claim
        if best is None or claim is None or best[0] <= claim.order:
            return best
        return self._best_within(best[0])

    def best(self, better_than: Order) -> Item | None:
        """Return the best live item of all, if it beats this order."""
        while True:
            best = self._ladder.top()
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

    def items(self) -> Iterator[Item]:
        """Yield the live items, in no order."""
        for bucket in self._buckets.values():
            for _, item in bucket:
                if item.live:
                    yield item

    def check(self) -> None:
        """Compare counts and the ladder with the buckets."""
        live = sum(1 for _ in self.items())
        total = sum(len(bucket) for bucket in self._buckets.values())
        assert live == self._live, f"{self.kind}: {live} live, counted {self._live}"
        assert total - live == self._dead, f"{self.kind}: dead count"
        for amount, bucket in self._buckets.items():
            assert self._ladder.best(amount - 1, amount) is bucket[0], "ladder"

    def _best_within(self, order: Order | None) -> Ranked | None:
        if not self._buckets:
            return None
        one, largest, several = self.reach(order)
        while True:
            best = self._ladder.best(0, one) if one else None
            if several > largest:
                larger = self._ladder.best(largest, several)
                if larger is not None and (best is None or larger < best):
                    best = larger
            if best is None or _is_current(best):
                return best
            self._renew(best[1].amount)

    def _reach_of(self, stock: Stock | None, units: Units) -> Reach:
        if stock is None:
            return Reach(0, 0, 0)
        several = 0
        if self._ladder.greatest() > stock.largest:
            several = reach_several(units, stock.sizes)
        return Reach(min(reach_one(units), stock.largest), stock.largest, several)

    def _renew(self, amount: int) -> None:
        """Bring a current item to a bucket's top: renew stale ones, drop dead ones.

        What other workers started since the last look made many of them stale at once.
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
                self._ladder.put(amount, bucket[0])
                return
            else:
                heapreplace(bucket, (head, item))
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


def tied(gpu: Units, vram: Units) -> Reach:
    """Tell what is within reach of a request for both kinds on the same units."""
    reach = tied_reach(gpu, vram)
    return Reach(reach, reach, 0)


def _is_current(ranked: Ranked) -> bool:
    order, item = ranked
    return item.live and order == item.head
