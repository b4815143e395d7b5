"""The decision itself: which waiting jobs start now, and where.

Three sources compete by order: shapes that are ready (new, or their gate opened),
and, per worker where something was freed, the best blocked shape now within reach. A
shape that finds no place becomes blocked; one that meets a closed gate is parked. What
nobody touched since the last decision is not looked at.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from grass.model.resources import Allocation
from grass.scheduler.fleet import Fleet
from grass.scheduler.gates import Gate, Queue
from grass.scheduler.index import BlockedIndex, Freed
from grass.scheduler.placement import TIED, allocate, lacking, slack
from grass.scheduler.reservations import Claims, claimed_units, is_paused
from grass.scheduler.shapes import (
    Order,
    Shape,
    ShapeKey,
    Standing,
    job_of,
    order_of,
)
from grass.scheduler.worker import Hold, Worker


class Placement(NamedTuple):
    """A job that starts, and the units it was given."""

    job: int
    worker: str
    allocation: Allocation


class Offer(NamedTuple):
    """The best blocked shape a worker may take, as of a number of moves."""

    order: Order
    worker_name: str
    moves: int
    shape: Shape
    worker: Worker


class Dispatch:
    """Waiting shapes in their three standings, and the loop that starts jobs."""

    def __init__(self, fleet: Fleet, claims: Claims) -> None:
        self.fleet = fleet
        self.claims = claims
        self.index = BlockedIndex()
        self.queues: dict[str, Queue] = {}
        self.shapes: dict[ShapeKey, Shape] = {}
        self.shape_of: dict[int, Shape] = {}
        self.priorities: dict[int, int] = {}
        """Of waiting jobs, where it is not 0."""
        self.ready: list[tuple[Order, Shape]] = []
        self._touched: dict[Worker, dict[str, set[str]]] = {}
        self._opened: dict[Gate, None] = {}
        self._aside: list[tuple[Shape, Worker, int]] = []
        self._offers: list[Offer] = []
        self._placements: list[Placement] = []
        self._moves = 0
        self._version = fleet.version

    def wake(self, shape: Shape) -> None:
        """Let a shape compete in the next decision on every worker."""
        assert shape.head is not None
        if shape.entries:
            self.index.forget(shape)
        shape.standing = Standing.READY
        heappush(self.ready, (shape.head, shape))

    def touch(self, worker: Worker, freed: Freed) -> None:
        """Note that some of these units may have become free on a worker."""
        touched = self._touched.setdefault(worker, {})
        for kind, units in freed.items():
            touched.setdefault(kind, set()).update(units)

    def released(self, hold: Hold) -> None:
        """Note that what a holder had is free."""
        self.touch(hold.worker, hold.allocation)
        if hold.queue is not None:
            self.index.given_back(hold.worker, hold.queue.name, hold.allocation)
            self.opened(hold.queue)
        if hold.limiter is not None:
            self.opened(hold.limiter)

    def opened(self, gate: Gate) -> None:
        """Note that a gate may have opened."""
        if gate.parked:
            self._opened[gate] = None

    def order_of(self, job: int) -> Order:
        """Return the place of a waiting job among all."""
        return order_of(job, self.priorities.get(job, 0))

    def leave(self, shape: Shape, job: int) -> Worker | None:
        """Take a job out of its line; return the worker its claim ended on, if any."""
        order = self.order_of(job)
        shape.discard(order)
        shape.queue.waiting -= 1
        del self.shape_of[job]
        self.priorities.pop(job, None)
        if shape.head is None:
            if shape.entries:
                self.index.forget(shape)
            del self.shapes[shape.key]
            del shape.queue.shapes[shape]
        worker = self.claims.forget(order)
        if worker is not None:
            self.touch(worker, worker.free)
        return worker

    def is_outdated(self) -> bool:
        """Tell whether units, views or labels changed since the last decision."""
        return self._version != self.fleet.version or bool(self.fleet.stale)

    def run(self, now: float) -> list[Placement]:
        """Start every job that may start, best order first."""
        self._prepare(now)
        self._offers = []
        placements: list[Placement] = []
        self._placements = placements
        for worker in list(self._touched):
            self._offer(worker)
        while True:
            shape = self._best_ready()
            offers = self._offers
            if offers and (shape is None or offers[0].order < self.ready[0][0]):
                self._serve_offer(heappop(offers), now)
            elif shape is not None:
                heappop(self.ready)
                self._serve_ready(shape, now)
            else:
                break
        self._finish()
        return placements

    def _prepare(self, now: float) -> None:
        if self._version != self.fleet.version:
            self._start_over()
        elif self.fleet.stale:
            self._look_again(list(self.fleet.stale))
        self.fleet.stale.clear()
        if self.claims.held:
            for worker, claim in self.claims.suspend(is_paused):
                self.touch(worker, claim.allocation)
        self.claims.expire(now)
        if self.claims.due:
            self.claims.settle()
        for gate in self._opened:
            self._admit(gate)
        self._opened.clear()

    def _start_over(self) -> None:
        """Forget what blocked shapes lack: units or labels have changed."""
        self._version = self.fleet.version
        self.claims.suspend(lambda _: True)
        self.index.clear()
        self._touched.clear()
        for shape in self.shapes.values():
            shape.entries.clear()
            self._reconsider(shape)

    def _look_again(self, queues: list[str]) -> None:
        """Forget what blocked shapes of some queues lack: their views have changed."""
        concerned = [one for one in map(self.queues.get, queues) if one is not None]
        ended = self.claims.suspend(lambda shape: shape.queue in concerned)
        for worker, claim in ended:
            self.touch(worker, claim.allocation)
        for queue in concerned:
            for shape in queue.shapes:
                self.index.forget(shape)
                self._reconsider(shape)
        for name in queues:
            self.index.drop(name)

    def _reconsider(self, shape: Shape) -> None:
        shape.eligible = None
        if shape.standing is Standing.BLOCKED:
            self.wake(shape)

    def _finish(self) -> None:
        for shape, worker, amount in self._aside:
            blocked = shape.standing is Standing.BLOCKED and shape.head is not None
            if blocked and worker.name not in shape.entries:
                self.index.insert(shape, worker, TIED, amount)
        self._aside.clear()
        self._touched.clear()
        if self.claims.due:
            self.claims.settle()

    def _best_ready(self) -> Shape | None:
        ready = self.ready
        while ready:
            order, shape = ready[0]
            if order == shape.head and shape.standing is Standing.READY:
                return shape
            heappop(ready)
            stale = shape.head is not None and order < shape.head
            if stale and shape.standing is Standing.READY:
                self.wake(shape)
        return None

    def _offer(self, worker: Worker) -> None:
        best = self.index.best_startable(worker, self._touched[worker])
        if best is not None:
            order, entry = best
            offer = Offer(order, worker.name, self._moves, entry.shape, worker)
            heappush(self._offers, offer)

    def _serve_offer(self, offer: Offer, now: float) -> None:
        worker = offer.worker
        if offer.moves == self._moves:
            self._moves += 1
            self._serve_blocked(offer.shape, worker, now)
        self._offer(worker)

    def _serve_blocked(self, shape: Shape, woken_by: Worker, now: float) -> None:
        if self._parked(shape):
            return
        places = [worker for worker in self._touched if worker.name in shape.entries]
        if self._start_head(shape, places, now):
            return
        self.index.withdraw(shape, woken_by.name)
        self._block(shape, woken_by)

    def _serve_ready(self, shape: Shape, now: float) -> None:
        self._moves += 1
        if not self._parked(shape):
            if shape.eligible is None:
                shape.eligible = self.fleet.eligible(shape)
            if not self._start_head(shape, shape.eligible, now):
                shape.standing = Standing.BLOCKED
                for worker in shape.eligible:
                    self._block(shape, worker)
            elif shape.head is not None:
                heappush(self.ready, (shape.head, shape))
        self._admit(shape.queue)
        if shape.limiter is not None:
            self._admit(shape.limiter)

    def _parked(self, shape: Shape) -> bool:
        gate = shape.gate()
        if gate is None:
            return False
        if shape.entries:
            self.index.forget(shape)
        gate.park(shape)
        return True

    def _admit(self, gate: Gate) -> None:
        """Let the best parked shape compete; the next follows once it was served."""
        if gate.parked and gate.is_open():
            shape = gate.next_parked()
            if shape is not None:
                self.wake(shape)

    def _block(self, shape: Shape, worker: Worker) -> None:
        assert shape.head is not None
        kind, amount = lacking(worker, shape.key.queue, shape.request, shape.head)
        if kind is TIED:
            self._aside.append((shape, worker, amount))
        else:
            self.index.insert(shape, worker, kind, amount)

    def _start_head(self, shape: Shape, places: list[Worker], now: float) -> bool:
        order, queue = shape.head, shape.key.queue
        assert order is not None
        chosen: tuple[float, Worker, Allocation] | None = None
        for worker in places:
            allocation = claimed_units(worker, order)
            if allocation is None:
                allocation = allocate(worker, queue, shape.request, order)
            if allocation is None:
                continue
            left = slack(worker, queue, shape.request) if len(places) > 1 else 0.0
            if chosen is None or (left, worker.name) < (chosen[0], chosen[1].name):
                chosen = left, worker, allocation
        if chosen is None:
            return False
        self._start(shape, order, chosen[1], chosen[2], now)
        return True

    def _start(
        self,
        shape: Shape,
        order: Order,
        worker: Worker,
        allocation: Allocation,
        now: float,
    ) -> None:
        job = job_of(order)
        # Counted before the start can close a gate, or a head of the same queue would
        # be parked each time it is overtaken.
        self._count_overtaken(worker, allocation, shape, now)
        self.fleet.take(job, worker, allocation, shape.queue, shape.limiter)
        self._placements.append(Placement(job, worker.name, allocation))
        unclaimed = self.leave(shape, job)
        if unclaimed is not None:
            self._offer(unclaimed)

    def _count_overtaken(
        self, worker: Worker, allocation: Allocation, by: Shape, now: float
    ) -> None:
        """Count the first of those who wait for units that a head takes.

        Whoever waits for the limits of its own queue is overtaken by that queue alone.
        """
        order, heads = by.head, dict[Shape, None]()
        assert order is not None
        pools = self.index.fed_by(worker, allocation)
        pools += self.index.own(worker, by.key.queue, allocation)
        for pool in pools:
            entry = pool.best_live(order)
            while entry is not None and self._parked(entry.shape):
                entry = pool.best_live(order)
            if entry is not None:
                heads[entry.shape] = None
        for shape in heads:
            self.claims.count(shape, now)
