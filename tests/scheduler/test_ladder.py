"""The ladder against plain sorting."""

import random

from grass.scheduler.gates import Queue
from grass.scheduler.index import Entry, Pool
from grass.scheduler.ranked_amounts import Ladder
from grass.scheduler.ranks import Ranked
from grass.scheduler.shapes import Shape, ShapeKey
from grass.scheduler.worker import Worker


def test_the_best_of_any_range_is_found_while_amounts_come_and_go() -> None:
    chance = random.Random(7)
    key = ShapeKey("q", (), None, frozenset(), None)
    shape = Shape(1, key, Queue("q"), None)
    pool = Pool(Worker("w"), "cpu", "")
    ladder, plain = Ladder(), dict[int, Ranked]()
    for number in range(3000):
        amount = chance.randrange(1, 400)
        if amount in plain and chance.random() < 0.4:
            ladder.remove(amount)
            del plain[amount]
        else:
            order = chance.randrange(10**6) * 3000 + number
            plain[amount] = order, Entry(shape, amount, pool)
            ladder.put(amount, plain[amount])
        low = chance.randrange(0, 400)
        high = low + chance.randrange(0, 200)
        within = [ranked for at, ranked in plain.items() if low < at <= high]
        assert ladder.best(low, high) == min(within, default=None)
        assert ladder.top() == min(plain.values(), default=None)
        assert ladder.greatest() == max(plain, default=0)
