"""The scheduler: calls that change what is known, and `decide`, which starts jobs.

Pure and deterministic: time comes in as an argument, nothing is read or written, and
the same calls give the same decisions. Units of a placement are taken at once and held
under the job's id until `release`. A call costs the shapes it touches, not the jobs
that wait. The caller owns states, attempts and durability; this knows only who waits
and who holds.
"""

from collections.abc import Iterable
from typing import Any

from grass.errors import NotFound, Refused
from grass.model.resources import Allocation, Capacity, Request
from grass.scheduler import check
from grass.scheduler.dispatch import Dispatch, Placement
from grass.scheduler.explain import Explanation, explain, position
from grass.scheduler.fitting import never_fits
from grass.scheduler.fleet import Fleet
from grass.scheduler.gates import Gate, Queue
from grass.scheduler.prefetch import Relays, may_follow
from grass.scheduler.reservations import Claims
from grass.scheduler.shapes import Shape, ShapeKey, first, job_of, order_of
from grass.scheduler.worker import Holder

NO_LABELS: frozenset[str] = frozenset()


class Scheduler:
    """Decides which waiting jobs start, and on which units."""

    def __init__(self, overtakes: int = 100, patience_s: float = 900.0) -> None:
        self._fleet = Fleet()
        self._claims = Claims(overtakes, patience_s)
        self._dispatch = Dispatch(self._fleet, self._claims)
        self._queues = self._dispatch.queues
        self._limiters: dict[str, Gate] = {}
        self._relays = Relays()
        self._paused = False
        self._shapes_made = 0

    def add_worker(
        self, worker: str, capacity: Capacity, labels: frozenset[str] = NO_LABELS
    ) -> None:
        """Add a worker or replace its capacity.

        A unit that is withdrawn or made smaller than what is held of it keeps its
        amount, takes nothing new, and changes once enough of it was released.
        """
        self._fleet.add(worker, capacity, labels)

    def remove_worker(self, worker: str) -> None:
        """Place nothing more on a worker; its holders stay held until released."""
        self._fleet.remove(worker)

    def know_worker(
        self, worker: str, capacity: Capacity, labels: frozenset[str] = NO_LABELS
    ) -> None:
        """Remember what a worker has, also while it is away: for `never_fits`."""
        self._fleet.know(worker, capacity, labels)

    def forget_worker(self, worker: str) -> None:
        """Remove a worker that will not come back, with its views."""
        self._fleet.forget(worker)

    def drain(self, worker: str, kind: str, unit: str, on: bool) -> None:
        """Stop (or resume) placing on one unit."""
        self._fleet.drain(worker, kind, unit, on=on)

    def set_view(self, queue: str, worker: str, capacity: Capacity | None) -> None:
        """Limit a queue to these units and amounts of the kinds named; None removes."""
        self._queue(queue)
        self._fleet.set_view(queue, worker, capacity)

    def set_queue(
        self, queue: str, *, paused: bool, max_running: int | None, open_to_all: bool
    ) -> None:
        """Add a queue or change it; open to all means that every worker serves it."""
        record = self._queue(queue)
        record.paused = paused
        record.at_most = max_running
        if record.open_to_all != open_to_all:
            record.open_to_all = open_to_all
            self._fleet.stale[queue] = None
        self._dispatch.opened(record)

    def set_queue_paused(self, queue: str, *, paused: bool) -> None:
        """Start nothing more of a queue, or go on."""
        record = self._queue(queue)
        record.paused = paused
        self._dispatch.opened(record)

    def remove_queue(self, queue: str) -> None:
        """Remove a queue and its views; jobs left waiting in it find no worker."""
        record = self._queues.get(queue)
        if record is None:
            return
        self._fleet.remove_queue(queue)
        self.set_queue(queue, paused=False, max_running=None, open_to_all=False)
        if not record.waiting and not record.running:
            del self._queues[queue]

    def set_paused(self, on: bool) -> None:
        """Start nothing at all, or go on."""
        self._paused = on

    def set_limit(self, limiter: str, at_most: int) -> None:
        """Let at most this many jobs with the limiter run at once."""
        record = self._limiter(limiter)
        record.at_most = at_most
        self._dispatch.opened(record)

    def forget_limit(self, limiter: str) -> None:
        """Drop a limiter that no job waits or runs under any more."""
        self._limiters.pop(limiter, None)

    def enqueue(
        self,
        job: int,
        queue: str,
        request: Request,
        priority: int = 0,
        **constraints: Any,  # noqa: ANN401 -- as `enqueue_all` takes them
    ) -> None:
        """Let a job wait. Higher priority first, then arrival, which is its id."""
        self.enqueue_all([job], queue, request, priority, **constraints)

    def enqueue_all(  # noqa: PLR0913 - what makes up a shape is named by the caller
        self,
        jobs: list[int],
        queue: str,
        request: Request,
        priority: int = 0,
        *,
        worker: str | None = None,
        labels: frozenset[str] = NO_LABELS,
        limiter: str | None = None,
    ) -> None:
        """Let jobs wait that ask for the same, in the order of their ids."""
        dispatch = self._dispatch
        for job in jobs:
            if job in dispatch.shape_of or job in self._fleet.holds:
                raise Refused(f"job {job} waits or runs already")
        key = ShapeKey(queue, request, worker, labels, limiter)
        shape = dispatch.shapes.get(key)
        if shape is None:
            shape = self._new_shape(key)
        dispatch.shape_of.update(dict.fromkeys(jobs, shape))
        shape.queue.waiting += len(jobs)
        if priority:
            dispatch.priorities.update(dict.fromkeys(jobs, priority))
        if shape.extend([order_of(job, priority) for job in jobs]):
            dispatch.wake(shape)

    def waits(self, job: int) -> bool:
        """Tell whether a job stands in line."""
        return job in self._dispatch.shape_of

    def remove(self, job: int) -> None:
        """Take a waiting job out; one that does not wait is left alone."""
        shape = self._dispatch.shape_of.get(job)
        if shape is not None:
            self._dispatch.leave(shape, job)

    def occupy(
        self,
        holder: Holder,
        worker: str,
        allocation: Allocation,
        queue: str | None = None,
        limiter: str | None = None,
    ) -> None:
        """Give units to a job that runs already, or to a lease.

        Refused where too little is free. A worker that is not here is believed to have
        had the units.
        """
        self._fleet.occupy(
            holder,
            worker,
            allocation,
            None if queue is None else self._queue(queue),
            None if limiter is None else self._limiter(limiter),
        )

    def release(self, holder: Holder) -> int | None:
        """Free what a holder has, or let the job take over that follows it.

        Returns that job. A follower leaves its line; who has nothing is left alone.
        """
        if holder in self._relays.leaders:
            assert isinstance(holder, int)
            self._relays.step_out(holder)
            return None
        heir = self._relays.heir(holder)
        if heir is not None:
            self._fleet.pass_on(holder, heir)
            return heir
        self._free(holder)
        return None

    def _free(self, holder: Holder) -> None:
        hold = self._fleet.give(holder)
        if hold is not None:
            self._dispatch.released(hold)

    def hand_ahead(self, holder: Holder, at_most: int) -> Placement | None:
        """Decide who takes over a holder's units when it lets go, if that is fair.

        At most so many jobs follow one holder. The placement's units are still the
        holder's: the job has them once `release` says so.
        """
        hold = self._fleet.hold_of(holder)
        if hold is None or self._paused or len(self._dispatch.shapes) != 1:
            return None
        shape = next(iter(self._dispatch.shapes.values()))
        last, count = self._relays.last_of(holder)
        if count >= at_most or not may_follow(shape, hold) or shape.head is None:
            return None
        job = job_of(shape.head)
        self._dispatch.leave(shape, job)
        self._relays.follow(job, last)
        allocation = _copy(hold.allocation)
        return Placement(job, hold.worker.name, allocation)

    def follow(self, job: int, leader: Holder) -> None:
        """Restore a decision that was made ahead."""
        self._relays.follow(job, leader)

    def follower(self, holder: Holder) -> int | None:
        """Return the job that takes over next, if any."""
        return self._relays.followers.get(holder)

    def followers(self, holder: Holder) -> int:
        """Return how many jobs stand in line behind a holder."""
        return self._relays.last_of(holder)[1]

    def leader(self, job: int) -> Holder | None:
        """Return whom a job follows, if anybody."""
        return self._relays.leaders.get(job)

    def decide(self, now: float) -> list[Placement]:
        """Start what may start, in order; `now` is of a clock that cannot jump."""
        return [] if self._paused else self._dispatch.run(now)

    def wake_at(self) -> float | None:
        """Return when to decide again though nothing happened; None: never."""
        return None if self._paused else self._claims.deadline()

    def never_fits(
        self,
        queue: str,
        request: Request,
        *,
        worker: str | None = None,
        labels: frozenset[str] = NO_LABELS,
    ) -> str | None:
        """Say why no known worker of the queue could ever meet a request, or None."""
        record = self._queues.get(queue) or Queue(queue)
        known = self._fleet.known(record)
        if worker is not None:
            known = [each for each in known if each.name == worker]
        return never_fits(known, queue, request, labels, pinned=worker is not None)

    def explain(self, job: int, now: float) -> Explanation:
        """Say what a waiting job waits for."""
        shape = self._dispatch.shape_of.get(job)
        if shape is None:
            raise NotFound(f"job {job} is not waiting")
        return explain(self._dispatch, shape, job, now=now, paused=self._paused)

    def position(self, job: int) -> int:
        """Return a waiting job's place in its queue, from 1."""
        shape = self._dispatch.shape_of.get(job)
        if shape is None:
            raise NotFound(f"job {job} is not waiting")
        return position(self._dispatch, shape, job)

    def first(self, most: int, queue: str | None = None) -> list[int]:
        """Return the first waiting jobs in order, of one queue or of all."""
        shapes: Iterable[Shape] = self._dispatch.shapes.values()
        if queue is not None:
            record = self._queues.get(queue)
            shapes = () if record is None else record.shapes
        return first(shapes, most)

    def waiting(self, queue: str | None = None) -> int:
        """Return how many jobs wait, in one queue or in all."""
        if queue is None:
            return len(self._dispatch.shape_of)
        record = self._queues.get(queue)
        return 0 if record is None else record.waiting

    def running(self, queue: str) -> int:
        """Return how many holders a queue has."""
        record = self._queues.get(queue)
        return 0 if record is None else record.running

    def workers(self) -> list[str]:
        """Return the names of the workers that are here."""
        return sorted(n for n, worker in self._fleet.workers.items() if not worker.away)

    def capacity(self, worker: str) -> Capacity:
        """Return what a worker has, per unit."""
        return _copy(self._fleet.worker(worker).capacity)

    def free(self, worker: str) -> Capacity:
        """Return what is free of a worker, per unit."""
        return _copy(self._fleet.worker(worker).free)

    def holders(self, worker: str) -> dict[Holder, Allocation]:
        """Return who holds what of a worker."""
        holders = self._fleet.worker(worker).holders
        return {holder: _copy(allocation) for holder, allocation in holders.items()}

    def allocation(self, holder: Holder) -> Allocation | None:
        """Return what one holder has."""
        hold = self._fleet.holds.get(holder)
        return None if hold is None else _copy(hold.allocation)

    def check(self) -> None:
        """Walk every invariant; raise AssertionError with the one that is broken."""
        check.check_fleet(self._fleet)
        check.check_relays(self._fleet, self._dispatch, self._relays)
        check.check_gates(self._fleet, self._queues, self._limiters)
        check.check_shapes(self._dispatch)
        check.check_claims(self._dispatch)

    def _new_shape(self, key: ShapeKey) -> Shape:
        limiter = None if key.limiter is None else self._limiter(key.limiter)
        self._shapes_made += 1
        shape = Shape(self._shapes_made, key, self._queue(key.queue), limiter)
        self._dispatch.shapes[key] = shape
        shape.queue.shapes[shape] = None
        return shape

    def _queue(self, name: str) -> Queue:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(name)
        return queue

    def _limiter(self, name: str) -> Gate:
        limiter = self._limiters.get(name)
        if limiter is None:
            limiter = self._limiters[name] = Gate(name)
        return limiter


def _copy(capacity: Capacity) -> Capacity:
    return {kind: dict(units) for kind, units in capacity.items()}
