"""The scheduler: calls that change what is known, and `decide`, which starts jobs.

Pure and deterministic: time is an argument, nothing is read or written, and the same
calls give the same decisions. Units of a placement are taken at once and held under the
job's id until `release`. The caller owns states, attempts and durability; this knows
only which jobs wait and which holder has which units.
"""

from collections.abc import Iterable
from typing import Any

from grass.errors import NotFound, Refused
from grass.model.amount_text import WHOLE
from grass.model.gpu_details import GpuDetails
from grass.model.resources import Allocation, Capacity, Policy, Request, Units
from grass.scheduler import invariants
from grass.scheduler.dispatch import Dispatch, Placement
from grass.scheduler.explanation import Explanation, explain, position
from grass.scheduler.fleet import Fleet, WorkerTraits
from grass.scheduler.prefetch import PrefetchChains, may_follow
from grass.scheduler.reservations import Reservations
from grass.scheduler.shapes import (
    Gate,
    QueueGate,
    Shape,
    ShapeKey,
    first,
    job_of,
    order_of,
)
from grass.scheduler.unmet_requests import never_fits
from grass.scheduler.worker_units import NO_PROCESSES, Holder, less

NO_LABELS: frozenset[str] = frozenset()


class Scheduler:
    """Decides which waiting jobs start, and on which units."""

    def __init__(self, overtakes: int = 100, patience_s: float = 900.0) -> None:
        self._fleet = Fleet()
        self._reservations = Reservations(overtakes, patience_s)
        self._dispatch = Dispatch(self._fleet, self._reservations)
        self._queues = self._dispatch.queues
        self._limiters: dict[str, Gate] = {}
        self._prefetched = PrefetchChains()
        self._paused = False
        self._shapes_made = 0

    def add_worker(
        self,
        worker: str,
        capacity: Capacity,
        labels: frozenset[str] = NO_LABELS,
        gpus: dict[str, GpuDetails] | None = None,
    ) -> None:
        """Add a worker or replace its capacity.

        A unit that is withdrawn or made smaller than what is held of it keeps its
        amount, takes nothing new, and changes once enough of it was released.
        """
        self._fleet.add(worker, WorkerTraits(capacity, labels, gpus or {}))

    def remove_worker(self, worker: str) -> None:
        """Place nothing more on a worker; what is held stays held until released."""
        self._fleet.remove(worker)

    def remember_worker(
        self,
        worker: str,
        capacity: Capacity,
        labels: frozenset[str] = NO_LABELS,
        gpus: dict[str, GpuDetails] | None = None,
    ) -> None:
        """Remember what a worker has, also while it is away: for `never_fits`."""
        self._fleet.remember(worker, WorkerTraits(capacity, labels, gpus or {}))

    def forget_worker(self, worker: str) -> None:
        """Remove a worker that will not come back, with its views."""
        self._fleet.forget(worker)

    def drain(self, worker: str, kind: str, unit: str, on: bool) -> None:
        """Stop (or resume) placing on one unit."""
        self._fleet.drain(worker, kind, unit, on=on)

    def set_most_strangers(self, part: int) -> None:
        """Set how much of a GPU's memory may be withheld before it gives no share."""
        if WHOLE - part != self._fleet.least:
            self._fleet.set_least(WHOLE - part)

    def withhold(
        self,
        worker: str,
        withheld: Capacity,
        processes: dict[int, Units] = NO_PROCESSES,
    ) -> None:
        """Set what is not on offer of a worker, and what processes have of it."""
        self._dispatch.withhold(worker, withheld, processes)

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
        record.max_running = max_running
        if record.open_to_all != open_to_all:
            record.open_to_all = open_to_all
            self._fleet.changed_queues[queue] = None
        self._dispatch.opened(record)

    def set_queue_paused(self, queue: str, *, paused: bool) -> None:
        """Pause or resume a queue."""
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
        """Pause or resume all starts."""
        self._paused = on

    def set_limit(self, limiter: str, at_most: int) -> None:
        """Set how many jobs with the limiter may run at once."""
        record = self._limiter(limiter)
        record.max_running = at_most
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
        """Add a waiting job. Higher priority first, then arrival, which is its id."""
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
        gpu_model: str | None = None,
        policy: Policy | None = None,
        process: int | None = None,
    ) -> None:
        """Add waiting jobs that ask for the same, in the order of their ids."""
        dispatch = self._dispatch
        for job in jobs:
            if job in dispatch.shape_of or job in self._fleet.holds:
                raise Refused(f"job {job} waits or runs already")
        key = ShapeKey(
            queue, request, worker, labels, limiter, gpu_model, policy, process
        )
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
        """Return whether a job waits."""
        return job in self._dispatch.shape_of

    def remove(self, job: int) -> None:
        """Remove a waiting job; does nothing for one that does not wait."""
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

        Refused where too little is free. A worker that is away is assumed to have the
        units.
        """
        self._fleet.occupy(
            holder,
            worker,
            allocation,
            None if queue is None else self._queue(queue),
            None if limiter is None else self._limiter(limiter),
        )

    def release(self, holder: Holder) -> int | None:
        """Free what a holder has, or pass it to its prefetched follower.

        Returns the follower. A prefetched job is removed from its chain. Does nothing
        for a holder that has nothing.
        """
        if holder in self._prefetched.predecessors:
            assert isinstance(holder, int)
            self._prefetched.remove(holder)
            return None
        follower = self._prefetched.pop_follower(holder)
        if follower is not None:
            self._fleet.transfer(holder, follower)
            return follower
        held = self._fleet.release(holder)
        if held is not None:
            self._dispatch.released(held)
        return None

    def prefetch(self, holder: Holder, at_most: int) -> Placement | None:
        """Decide which job takes over a holder's units, if it overtakes no other job.

        At most so many jobs are prefetched behind one holder. The placement's units
        are still the holder's: the job has them once `release` returns it.
        """
        held = self._fleet.holds.get(holder)
        if held is None or self._paused or len(self._dispatch.shapes) != 1:
            return None
        shape = next(iter(self._dispatch.shapes.values()))
        last, count = self._prefetched.last_of(holder)
        if count >= at_most or not may_follow(shape, held) or shape.head is None:
            return None
        job = job_of(shape.head)
        self._dispatch.leave(shape, job)
        self._prefetched.append(job, last)
        allocation = _copy(held.allocation)
        return Placement(job, held.worker.name, allocation)

    def restore_prefetched(self, job: int, predecessor: Holder) -> None:
        """Restore a prefetched job after a restart."""
        self._prefetched.append(job, predecessor)

    def follower(self, holder: Holder) -> int | None:
        """Return the job that is prefetched right behind a holder, if any."""
        return self._prefetched.followers.get(holder)

    def prefetched_count(self, holder: Holder) -> int:
        """Return how many jobs are prefetched behind a holder."""
        return self._prefetched.last_of(holder)[1]

    def predecessor(self, job: int) -> Holder | None:
        """Return what a prefetched job waits for; None for any other job."""
        return self._prefetched.predecessors.get(job)

    def decide(self, now: float) -> list[Placement]:
        """Start all jobs that may start, in order; `now` is of a monotonic clock."""
        return [] if self._paused else self._dispatch.run(now)

    def wake_at(self) -> float | None:
        """Return when to decide again even if nothing happens; None: never."""
        return None if self._paused else self._reservations.deadline()

    def never_fits(
        self,
        queue: str,
        request: Request,
        *,
        worker: str | None = None,
        labels: frozenset[str] = NO_LABELS,
        gpu_model: str | None = None,
    ) -> str | None:
        """Say why no known worker of the queue could ever meet a request, or None."""
        record = self._queues.get(queue) or QueueGate(queue)
        known = self._fleet.known(record)
        if worker is not None:
            known = [each for each in known if each.name == worker]
        key = ShapeKey(queue, request, worker, labels, None, gpu_model)
        return never_fits(known, key)

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

    def capacity(self, worker: str) -> Capacity:
        """Return what a worker has, per unit."""
        return _copy(self._fleet.worker(worker).capacity)

    def free(self, worker: str) -> Capacity:
        """Return what is free of a worker, per unit."""
        return _copy(self._fleet.worker(worker).free)

    def spare(self, worker: str, process: int | None = None) -> Capacity:
        """Return what is free of a worker and not withheld, drained or not."""
        units = self._fleet.worker(worker).seen_by(process, "")
        return {
            kind: less(amounts, units.withheld.get(kind, {}))
            for kind, amounts in units.free.items()
        }

    def withholds(
        self, worker: str, allocation: Allocation, process: int | None
    ) -> bool:
        """Return whether units that no job holds are not on offer all the same."""
        units = self._fleet.worker(worker).seen_by(process, "")
        return units.lacks(allocation) is None and any(
            units.offered(kind).get(unit, 0) < amount
            for kind, amounts in allocation.items()
            for unit, amount in amounts.items()
        )

    def holders(self, worker: str) -> dict[Holder, Allocation]:
        """Return who holds what of a worker."""
        holders = self._fleet.worker(worker).holders
        return {holder: _copy(allocation) for holder, allocation in holders.items()}

    def allocation(self, holder: Holder) -> Allocation | None:
        """Return what one holder has."""
        held = self._fleet.holds.get(holder)
        return None if held is None else _copy(held.allocation)

    def check(self) -> None:
        """Walk every invariant; raise AssertionError with the one that is broken."""
        invariants.check_fleet(self._fleet)
        invariants.check_prefetched(self._fleet, self._dispatch, self._prefetched)
        invariants.check_gates(self._fleet, self._queues, self._limiters)
        invariants.check_shapes(self._dispatch)
        invariants.check_reservations(self._dispatch)

    def _new_shape(self, key: ShapeKey) -> Shape:
        limiter = None if key.limiter is None else self._limiter(key.limiter)
        self._shapes_made += 1
        shape = Shape(self._shapes_made, key, self._queue(key.queue), limiter)
        self._dispatch.shapes[key] = shape
        shape.queue.shapes[shape] = None
        return shape

    def _queue(self, name: str) -> QueueGate:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = QueueGate(name)
        return queue

    def _limiter(self, name: str) -> Gate:
        limiter = self._limiters.get(name)
        if limiter is None:
            limiter = self._limiters[name] = Gate(name)
        return limiter


def _copy(capacity: Capacity) -> Capacity:
    return {kind: dict(units) for kind, units in capacity.items()}
