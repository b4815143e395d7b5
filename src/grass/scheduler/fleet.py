"""All workers together: who comes and goes, who holds what, who may serve a shape.

`version` grows whenever units or labels change, which is when everything known about
blocked shapes is void; a change of one queue's views concerns its own shapes alone
(`stale`). Holders of a worker that went away stay held until they
are released, and a worker that was never seen can be held from: after a restart jobs
are known before their workers are back.
"""

from grass.errors import NotFound, Refused
from grass.model.resources import Allocation, Capacity
from grass.scheduler.gates import Gate, Queue
from grass.scheduler.placement import fits_when_empty
from grass.scheduler.shapes import Shape
from grass.scheduler.worker import Hold, Holder, Stock, View, Worker, ordered


class Fleet:
    """Every worker by name, and every holder."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}
        self.holds: dict[Holder, Hold] = {}
        self.version = 0
        self.stale: dict[str, None] = {}
        """Queues whose views changed since somebody looked."""

    def add(self, name: str, capacity: Capacity, labels: frozenset[str]) -> None:
        """Add a worker, or give a known one a new capacity."""
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = Worker(name)
        elif self._unchanged(worker, capacity, labels):
            return
        worker.away = False
        worker.labels = labels
        _restock(worker, ordered(capacity))
        self._changed(worker)

    def know(self, name: str, capacity: Capacity, labels: frozenset[str]) -> None:
        """Remember what a worker has, be it here or not."""
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = Worker(name)
        same = worker.capacity == capacity and worker.labels == labels
        if worker.known and same and not worker.leaving:
            return
        worker.known = True
        worker.labels = labels
        _restock(worker, ordered(capacity))
        self._changed(worker)

    def forget(self, name: str) -> None:
        """Take a worker out that will not come back, with its views."""
        worker = self.workers.get(name)
        if worker is None:
            return
        worker.away, worker.known = True, False
        worker.views.clear()
        self._changed(worker)
        self._forget_if_unused(worker)

    def remove(self, name: str) -> None:
        """Take a worker out; what is held on it stays held."""
        worker = self.workers.get(name)
        if worker is None or worker.away:
            return
        worker.away = True
        self._changed(worker)
        self._forget_if_unused(worker)

    def drain(self, name: str, kind: str, unit: str, *, on: bool) -> None:
        """Stop or resume placing on one unit."""
        worker = self.worker(name)
        units = worker.drained.setdefault(kind, set())
        if on:
            units.add(unit)
        else:
            units.discard(unit)
        self._changed(worker)

    def set_view(self, queue: str, name: str, limits: Capacity | None) -> None:
        """Set or remove a queue's view on a worker, which need not be there yet."""
        worker = self.workers.get(name)
        if worker is None:
            if limits is None:
                return
            worker = self.workers[name] = Worker(name)
        if limits is None:
            worker.views.pop(queue, None)
        else:
            worker.views[queue] = self._new_view(worker, queue, limits)
        self.stale[queue] = None
        self._forget_if_unused(worker)

    def remove_queue(self, queue: str) -> None:
        """Remove every view of a queue."""
        for worker in list(self.workers.values()):
            if queue in worker.views:
                self.set_view(queue, worker.name, None)

    def occupy(
        self,
        holder: Holder,
        name: str,
        allocation: Allocation,
        queue: Queue | None,
        limiter: Gate | None,
    ) -> None:
        """Give units to a holder that did not come out of a decision."""
        if holder in self.holds:
            raise Refused(f"{holder} holds units already")
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = Worker(name)
        short = worker.lacks(allocation)
        if short is not None:
            if not worker.away:
                raise Refused(f"{short} of worker `{name}` has too little free")
            _grow(worker, allocation)
        self.take(holder, worker, allocation, queue, limiter)
        view = None if queue is None else worker.views.get(queue.name)
        if view is not None:
            view.inherited = view.inherited or view.exceeded()

    def take(
        self,
        holder: Holder,
        worker: Worker,
        allocation: Allocation,
        queue: Queue | None,
        limiter: Gate | None,
    ) -> None:
        """Record a holder and subtract what it holds."""
        worker.take(allocation, None if queue is None else queue.name)
        worker.holders[holder] = allocation
        self.holds[holder] = Hold(worker, allocation, queue, limiter)
        if queue is not None:
            queue.running += 1
        if limiter is not None:
            limiter.running += 1

    def give(self, holder: Holder) -> Hold | None:
        """Forget a holder and add back what it held; None if it held nothing."""
        hold = self.holds.pop(holder, None)
        if hold is None:
            return None
        worker, allocation, queue, limiter = hold
        worker.give(allocation, None if queue is None else queue.name)
        del worker.holders[holder]
        if queue is not None:
            queue.running -= 1
        if limiter is not None:
            limiter.running -= 1
        if worker.leaving:
            self._let_leave(worker)
        if worker.away:
            self._forget_if_unused(worker)
        return hold

    def pass_on(self, holder: Holder, heir: Holder) -> None:
        """Let a holder's units be another's, without their being free in between."""
        hold = self.holds.pop(holder)
        self.holds[heir] = hold
        hold.worker.holders[heir] = hold.worker.holders.pop(holder)

    def hold_of(self, holder: Holder) -> Hold | None:
        """Return what a holder has, if anything."""
        return self.holds.get(holder)

    def worker(self, name: str) -> Worker:
        """Return a worker that must be known."""
        worker = self.workers.get(name)
        if worker is None:
            raise NotFound(f"no worker `{name}`")
        return worker

    def serving(self, queue: Queue) -> list[Worker]:
        """Return the workers of a queue that are here, by name."""
        return [worker for worker in self._of(queue) if not worker.away]

    def known(self, queue: Queue) -> list[Worker]:
        """Return the workers of a queue, here or away, of which it is known, by name.

        One that is away and of which nothing is known may turn out to have anything.
        """
        return [worker for worker in self._of(queue) if worker.known or not worker.away]

    def _of(self, queue: Queue) -> list[Worker]:
        return [
            worker
            for _, worker in sorted(self.workers.items())
            if queue.open_to_all or queue.name in worker.views
        ]

    def eligible(self, shape: Shape) -> list[Worker]:
        """Return the workers that could run a job of this shape when empty, by name."""
        key = shape.key
        return [
            worker
            for worker in self.serving(shape.queue)
            if (key.worker is None or key.worker == worker.name)
            and key.labels <= worker.labels
            and fits_when_empty(worker, key.queue, key.request)
        ]

    def _unchanged(
        self, worker: Worker, capacity: Capacity, labels: frozenset[str]
    ) -> bool:
        same = worker.capacity == capacity and worker.labels == labels
        return same and not worker.away and not worker.leaving

    def _new_view(self, worker: Worker, queue: str, limits: Capacity) -> View:
        view = View(limits)
        for holder, allocation in worker.holders.items():
            held_for = self.holds[holder].queue
            if held_for is not None and held_for.name == queue:
                view.shift(allocation, 1)
        view.inherited = view.exceeded()
        return view

    def _changed(self, worker: Worker) -> None:
        _derive(worker)
        self.version += 1

    def _let_leave(self, worker: Worker) -> None:
        done = [
            (kind, unit)
            for kind, unit in worker.leaving
            if _held(worker, kind, unit) <= worker.leaving[kind, unit]
        ]
        for kind, unit in done:
            _resize(worker, kind, unit, worker.leaving.pop((kind, unit)))
        if done:
            self._changed(worker)

    def _forget_if_unused(self, worker: Worker) -> None:
        if worker.known or worker.holders or worker.views:
            return
        if worker.away:
            del self.workers[worker.name]


def _restock(worker: Worker, wanted: Capacity) -> None:
    held = {
        (kind, unit): _held(worker, kind, unit)
        for kind, units in worker.capacity.items()
        for unit in units
    }
    worker.leaving.clear()
    for kind, unit in held:
        wanted.setdefault(kind, {}).setdefault(unit, 0)
    for kind, units in wanted.items():
        for unit, amount in units.items():
            if held.get((kind, unit), 0) > amount:
                worker.leaving[kind, unit] = amount
            else:
                _resize(worker, kind, unit, amount)
    worker.capacity = ordered(worker.capacity)
    worker.free = ordered(worker.free)


def _resize(worker: Worker, kind: str, unit: str, amount: int) -> None:
    held = _held(worker, kind, unit)
    if amount:
        worker.capacity.setdefault(kind, {})[unit] = amount
        worker.free.setdefault(kind, {})[unit] = amount - held
        return
    for units in (worker.capacity, worker.free):
        units.get(kind, {}).pop(unit, None)
        if not units.get(kind, {"": 0}):
            del units[kind]


def _grow(worker: Worker, allocation: Allocation) -> None:
    for kind, units in allocation.items():
        for unit, amount in units.items():
            free = worker.free.setdefault(kind, {})
            has = worker.capacity.setdefault(kind, {})
            missing = amount - free.get(unit, 0)
            if missing > 0:
                worker.leaving.setdefault((kind, unit), has.get(unit, 0))
                has[unit] = has.get(unit, 0) + missing
                free[unit] = amount
    _derive(worker)


def _held(worker: Worker, kind: str, unit: str) -> int:
    has = worker.capacity.get(kind, {}).get(unit, 0)
    return has - worker.free.get(kind, {}).get(unit, 0)


def _derive(worker: Worker) -> None:
    """Compute again what follows from capacity and drains."""
    worker.shut = {kind: set(units) for kind, units in worker.drained.items() if units}
    for kind, unit in worker.leaving:
        worker.shut.setdefault(kind, set()).add(unit)
    worker.stocks = {}
    for kind, units in worker.capacity.items():
        sizes = {
            unit: worker.leaving.get((kind, unit), amount)
            for unit, amount in units.items()
        }
        worker.stocks[kind] = Stock({unit: has for unit, has in sizes.items() if has})
    worker.moves += 1
    worker.changes += 1
