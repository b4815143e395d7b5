"""The scheduler: calls that change what is known, and `decide`, which starts jobs.

Pure and deterministic: time is an argument, nothing is read or written, and the same
calls give the same decisions. Units of a placement are taken at once and held under the
job's id until `release`. The caller owns states, attempts and durability; this knows
only which jobs wait and which holder has which units.
"""

from collections.abc import Mapping
from typing import Any

from grass.errors import Refused
from grass.model.amount_text import WHOLE
from grass.model.gpu_details import GpuDetails
from grass.model.resources import Allocation, Capacity, Policy, Request, Units
from grass.scheduler import invariants
from grass.scheduler.dispatch import Placement
from grass.scheduler.fleet import WorkerTraits
from grass.scheduler.inspection import Inspection, copied
from grass.scheduler.learned_memory import packed_units
from grass.scheduler.pilot_terms import PilotTerms, admits
from grass.scheduler.prefetch import PrefetchChains, may_follow
from grass.scheduler.shapes import (
    Gate,
    Gates,
    QueueGate,
    Shape,
    ShapeKey,
    job_of,
    order_of,
)
from grass.scheduler.worker_units import NO_PROCESSES, HeldUnits, Holder

NO_LABELS: frozenset[str] = frozenset()


class Scheduler(Inspection):
    """Decides which waiting jobs start, and on which units."""

    def __init__(self, overtakes: int = 100, patience_s: float = 900.0) -> None:
        super().__init__(overtakes, patience_s)
        self._limiters: dict[str, Gate] = {}
        self._prefetched = PrefetchChains()
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

    def set_terms(self, worker: str, terms: PilotTerms) -> None:
        """Set until when a worker is there, and whether for one job alone."""
        self._fleet.set_terms(worker, terms)

    def drain(self, worker: str, kind: str, unit: str, on: bool) -> None:
        """Stop (or resume) placing on one unit."""
        self._fleet.drain(worker, kind, unit, on=on)

    def set_most_strangers(self, part: int) -> None:
        """Set how much of a GPU's memory may be withheld before it gives no share."""
        if WHOLE - part != self._fleet.least:
            self._fleet.set_least(WHOLE - part)

    def set_jobs_per_gpu(self, most: int | None) -> None:
        """Set how many holders a GPU may have; None: as many as fit."""
        if most != self._fleet.most_jobs:
            self._fleet.set_most_jobs(most)

    def set_busy(self, worker: str, units: frozenset[str]) -> None:
        """Set which GPUs take no job whose memory is looked up for now."""
        calm = self._fleet.set_busy(worker, units)
        if calm:
            self._dispatch.add_freed_gpus(self._fleet.worker(worker), calm)

    def withhold(
        self,
        worker: str,
        withheld: Capacity,
        processes: dict[int, Units] = NO_PROCESSES,
    ) -> None:
        """Set what is not on offer of a worker, and what processes have of it."""
        offered = self._fleet.withhold(worker, withheld)
        units = self._fleet.worker(worker)
        if offered:
            self._dispatch.add_freed(units, offered)
        if units.processes != processes:
            units.processes = processes
            self._dispatch.reconsider_guests(worker)

    def set_avoided(self, worker: str, kind: str, queue: str, on: bool) -> None:
        """Set whether jobs of a kind, all of one queue, are not placed on a worker."""
        self._fleet.set_avoided(worker, kind, queue, on=on)

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

    def set_profile(self, job_type: str, amounts: Mapping[str, int]) -> None:
        """Set the memory that jobs of a type need, by model of GPU.

        More than a GPU has means all of it, alone. None at all: nothing is known. A
        job that runs keeps what it has: see `shrink`.
        """
        self._fleet.set_profile(self._fleet.job_type(job_type), amounts)

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
        limiters: tuple[str, ...] = (),
        gpu_model: str | None = None,
        policy: Policy | None = None,
        learned: str | None = None,
        process: int | None = None,
        time_s: float | None = None,
        kind: str | None = None,
    ) -> None:
        """Add waiting jobs that ask for the same, in the order of their ids.

        With `learned`, their type, the request has no `vram`: it is looked up.
        """
        dispatch = self._dispatch
        for job in jobs:
            if job in dispatch.shape_of or job in self._fleet.holds:
                raise Refused(f"job {job} waits or runs already")
        said = limiters, gpu_model, policy, learned, process, time_s, kind
        key = ShapeKey(queue, request, worker, labels, *said)
        shape = dispatch.shapes.get(key)
        if shape is None:
            shape = self._new_shape(key)
        dispatch.shape_of.update(dict.fromkeys(jobs, shape))
        shape.queue.waiting += len(jobs)
        if priority:
            dispatch.priorities.update(dict.fromkeys(jobs, priority))
        if shape.extend([order_of(job, priority) for job in jobs]):
            dispatch.wake(shape)

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
        limiters: tuple[str, ...] = (),
        learned: str | None = None,
    ) -> None:
        """Give units to a job that runs already, or to a lease.

        Refused where too little is free. A worker that is away is assumed to have the
        units.
        """
        gates = Gates(
            None if queue is None else self._queue(queue),
            tuple(map(self._limiter, limiters)),
            None if learned is None else self._fleet.job_type(learned),
        )
        self._fleet.occupy(holder, worker, allocation, gates)

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

    def packed(self, holder: Holder, request: Request) -> Allocation | None:
        """Return what a job on a whole GPU needs of it by what is known of its type.

        `request` is what it asked for, without memory. None: it needs all it has.
        """
        held = self._fleet.holds.get(holder)
        if held is None or held.gates.learned is None:
            return None
        return packed_units(held.worker, held.gates.learned, held.allocation, request)

    def shrink(self, holder: Holder, allocation: Allocation) -> None:
        """Let a holder keep this part of what it has; the rest is free at once."""
        assert self._prefetched.followers.get(holder) is None, f"{holder} is followed"
        self._dispatch.freed(self._fleet.shrink(holder, copied(allocation)))

    def prefetch(self, holder: Holder, at_most: int) -> Placement | None:
        """Decide which job takes over a holder's units, if it overtakes no other job.

        At most this many jobs are prefetched behind one holder. The placement's units
        are still the holder's: the job has them once `release` returns it.
        """
        held = self._fleet.holds.get(holder)
        last, count = self._prefetched.last_of(holder)
        if held is None or count >= at_most:
            return None
        job = self._take_follower(held)
        if job is None:
            return None
        self._prefetched.append(job, last)
        allocation = copied(held.allocation)
        return Placement(job, held.worker.name, allocation)

    def hand_over(self, holder: Holder) -> Placement | None:
        """Pass a holder's units at once to the job that would be prefetched behind it.

        None: there is none, or one is prefetched already; `release` is for these.
        """
        held = self._fleet.holds.get(holder)
        if held is None or holder in self._prefetched.followers:
            return None
        job = self._take_follower(held)
        if job is None:
            return None
        self._fleet.transfer(holder, job)
        return Placement(job, held.worker.name, held.allocation)

    def _take_follower(self, held: HeldUnits) -> int | None:
        """Remove the next job from its shape, if it may take over what is held."""
        if self._paused or len(self._dispatch.shapes) != 1:
            return None
        shape = next(iter(self._dispatch.shapes.values()))
        if shape.head is None or not may_follow(shape, held):
            return None
        if not admits(held.worker, shape.key, self._fleet.now):
            return None
        job = job_of(shape.head)
        self._dispatch.leave(shape, job)
        return job

    def restore_prefetched(self, job: int, predecessor: Holder) -> None:
        """Restore a prefetched job after a restart."""
        self._prefetched.append(job, predecessor)

    def follower(self, holder: Holder) -> int | None:
        """Return the job that is prefetched right behind a holder, if any."""
        return self._prefetched.followers.get(holder)

    def last_prefetched(self, holder: Holder) -> tuple[Holder, int]:
        """Return the last job behind a holder, or itself, and how many there are."""
        return self._prefetched.last_of(holder)

    def predecessor(self, job: int) -> Holder | None:
        """Return what a prefetched job waits for; None for any other job."""
        return self._prefetched.predecessors.get(job)

    def decide(self, now: float) -> list[Placement]:
        """Start all jobs that may start, in order; `now` is of a monotonic clock."""
        return [] if self._paused else self._dispatch.run(now)

    def check(self) -> None:
        """Walk every invariant; raise AssertionError with the one that is broken."""
        invariants.check_fleet(self._fleet)
        invariants.check_prefetched(self._fleet, self._dispatch, self._prefetched)
        invariants.check_gates(self._fleet, self._queues, self._limiters)
        invariants.check_types(self._dispatch)
        invariants.check_shapes(self._dispatch)
        invariants.check_reservations(self._dispatch)

    def _new_shape(self, key: ShapeKey) -> Shape:
        limiters = tuple(map(self._limiter, key.limiters))
        name, queue = key.learned, self._queue(key.queue)
        learned = None if name is None else self._fleet.job_type(name)
        self._shapes_made += 1
        shape = Shape(self._shapes_made, key, queue, limiters, learned)
        self._dispatch.shapes[key] = shape
        queue.shapes[shape] = None
        if learned is not None:
            learned.shapes[shape] = None
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
