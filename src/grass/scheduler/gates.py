"""Gates: what keeps a shape waiting though units may be free.

A gate counts running holders against a limit. A queue is a gate that can also be
paused; a limiter, such as an array's cap, is a plain one. Shapes that met a closed gate
are parked with it, best order first, and come back one at a time when it opens, so
that opening for one job never costs a look at every shape behind it.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from grass.scheduler.shapes import Standing

if TYPE_CHECKING:
    from grass.scheduler.shapes import Order, Shape


class Gate:
    """A limit on running holders, with the shapes that wait for it to open."""

    __slots__ = ("at_most", "name", "parked", "paused", "running")

    def __init__(self, name: str) -> None:
        self.name = name
        self.at_most: int | None = None
        self.paused = False
        self.running = 0
        self.parked: list[tuple[Order, Shape]] = []

    def is_open(self) -> bool:
        """Tell whether one more holder may start."""
        if self.paused:
            return False
        return self.at_most is None or self.running < self.at_most

    def is_paused(self) -> bool:
        """Tell whether it stays closed whatever ends."""
        return self.paused or self.at_most == 0

    def fullness(self) -> tuple[int, int] | None:
        """Return running and allowed where the limit is reached."""
        if self.at_most is None or self.running < self.at_most:
            return None
        return self.running, self.at_most

    def park(self, shape: "Shape") -> None:
        """Keep a shape until the gate opens; parking again renews its order."""
        assert shape.head is not None
        shape.standing = Standing.PARKED
        shape.parked_at = self
        heappush(self.parked, (shape.head, shape))

    def next_parked(self) -> "Shape | None":
        """Take out the parked shape with the best head, if any."""
        parked = self.parked
        while parked:
            order, shape = heappop(parked)
            if shape.standing is not Standing.PARKED or shape.head is None:
                continue
            if shape.parked_at is not self:
                continue
            if order < shape.head:
                heappush(parked, (shape.head, shape))
                continue
            return shape
        return None


class Queue(Gate):
    """A named line of jobs and the workers that serve it."""

    __slots__ = ("open_to_all", "shapes", "waiting")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.open_to_all = False
        self.waiting = 0
        self.shapes: dict[Shape, None] = {}
        """Those of its waiting jobs."""
