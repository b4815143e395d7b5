"""Ranked amounts compared with plain sorting."""

import random

from grass.scheduler.blocked.buckets import BlockedEntry, Bucket
from grass.scheduler.blocked.ranked_amounts import Ranked, RankedAmounts
from grass.scheduler.shapes import QueueGate, Shape, ShapeKey
from grass.scheduler.worker_units import WorkerUnits


def test_the_best_of_any_range_is_found_while_amounts_come_and_go() -> None:
    chance = random.Random(7)
    key = ShapeKey("q", (), None, frozenset())
    shape = Shape(1, key, QueueGate("q"))
    bucket = Bucket(WorkerUnits("w"), "cpu", "", None)
    amounts, plain = RankedAmounts(), dict[int, Ranked]()
    for number in range(3000):
        amount = chance.randrange(1, 400)
        if amount in plain and chance.random() < 0.4:
            amounts.remove(amount)
            del plain[amount]
        else:
            order = chance.randrange(10**6) * 3000 + number
            plain[amount] = order, BlockedEntry(shape, amount, bucket)
            amounts.put(amount, plain[amount])
        low = chance.randrange(0, 400)
        high = low + chance.randrange(0, 200)
        within = [ranked for at, ranked in plain.items() if low < at <= high]
        assert amounts.best(low, high) == min(within, default=None)
        assert amounts.top() == min(plain.values(), default=None)
        assert amounts.greatest() == max(plain, default=0)
