"""A shape compared with plain sorting."""

import random

from grass.scheduler.shapes import QueueGate, Shape, ShapeKey, first, job_of, order_of


def a_shape() -> Shape:
    key = ShapeKey("q", (), None, frozenset())
    return Shape(1, key, QueueGate("q"))


def test_jobs_come_and_go_anywhere_in_a_shape() -> None:
    for seed in range(30):
        chance, shape, plain = random.Random(seed), a_shape(), set[int]()
        for _ in range(600):
            change(chance, shape, plain)
            assert shape.head == min(plain, default=None)
            assert shape.count == len(plain)
            assert shape.orders() == sorted(plain)
            some = chance.randrange(-5, 305)
            assert shape.before(some) == sum(one < some for one in plain)
            jobs = [job_of(order) for order in sorted(plain)]
            assert first([shape] if plain else [], 4) == jobs[:4]


def change(chance: random.Random, shape: Shape, plain: set[int]) -> None:
    """Add one job or several, or remove one, the head more often than others."""
    new = chance.randrange(1, 300)
    roll = chance.random()
    if plain and roll < 0.25:
        shape.discard(min(plain))
        plain.remove(min(plain))
    elif plain and roll < 0.55:
        gone = chance.choice(sorted(plain))
        shape.discard(gone)
        plain.remove(gone)
    elif roll < 0.7:
        run = [one for one in range(new, new + 6) if one not in plain]
        if run:
            shape.extend(run)
            plain.update(run)
    elif new not in plain:
        shape.add(new)
        plain.add(new)


def test_an_order_has_its_job_whatever_the_priority() -> None:
    for priority in (-(10**6), -1, 0, 1, 10**6):
        assert job_of(order_of(7, priority)) == 7
    orders = [order_of(2, 1), order_of(9, 1), order_of(1, 0), order_of(1, -1)]
    assert orders == sorted(orders)
