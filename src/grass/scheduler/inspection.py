"""What can be asked of the scheduler: reads, never changes.

The state is that of `Scheduler`, which inherits from this.
"""

from collections.abc import Iterable

from grass.errors import NotFound
from grass.model.resources import Allocation, Capacity, Request
from grass.scheduler.dispatch import Dispatch
from grass.scheduler.fleet import Fleet
from grass.scheduler.learned_memory import with_any_memory
from grass.scheduler.pilot_terms import has_time
from grass.scheduler.placement import fits_when_empty
from grass.scheduler.reasons.explanation import Explanation, explain, position
from grass.scheduler.reasons.unmet_requests import never_fits
from grass.scheduler.reservations import Reservations
from grass.scheduler.shapes import (
    QueueGate,
    Shape,
    ShapeKey,
    ShapeState,
    first,
    job_of,
)
from grass.scheduler.worker_units import Holder, WorkerUnits, less


class Inspection:
    """Workers, holders and waiting jobs, and the questions about them."""

    def __init__(self, overtakes: int, patience_s: float) -> None:
        self._fleet = Fleet()
        self._reservations = Reservations(overtakes, patience_s)
        self._dispatch = Dispatch(self._fleet, self._reservations)
        self._queues = self._dispatch.queues
        self._paused = False

    def waits(self, job: int) -> bool:
        """Return whether a job waits."""
        return job in self._dispatch.shape_of

    def wake_at(self) -> float | None:
        """Return when to decide again even if nothing happens; None: never."""
        return None if self._paused else self._reservations.deadline()

    def explain(self, job: int, now: float) -> Explanation:
        """Say what a waiting job waits for."""
        shape = self._shape_of(job)
        return explain(self._dispatch, shape, job, now=now, paused=self._paused)

    def position(self, job: int) -> int:
        """Return a waiting job's place in its queue, from 1."""
        return position(self._dispatch, self._shape_of(job), job)

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

    def waiting_for(self, worker: str) -> int:
        """Count the blocked jobs that an empty worker could run, be it away or new.

        Jobs count that wait for units, not those that a limit or a pause keeps.
        """
        return sum(shape.count for shape in self._blocked_for(worker))

    def first_waiting_for(self, worker: str, most: int) -> list[int]:
        """Return the first of such jobs in order."""
        return first(self._blocked_for(worker), most)

    def could_run(self, worker: str, job: int) -> bool:
        """Return whether a worker, be it away or new, could run a job that waits."""
        shape, known = self._dispatch.shape_of.get(job), self._fleet.worker(worker)
        return shape is not None and self._suits(shape, known)

    def _blocked_for(self, worker: str) -> list[Shape]:
        known = self._fleet.worker(worker)
        return [
            shape
            for shape in self._dispatch.shapes.values()
            if shape.state is not ShapeState.PARKED and self._suits(shape, known)
        ]

    def _suits(self, shape: Shape, worker: WorkerUnits) -> bool:
        return (
            shape.queue.open_to_all
            and shape.key.worker is None
            and shape.key.kind not in worker.avoided_by
            and shape.key.labels <= worker.labels
            and fits_when_empty(worker, shape.key)
            and has_time(worker, shape.key, self._fleet.now)
        )

    def never_fits(  # noqa: PLR0913 - as `enqueue_all` takes them
        self,
        queue: str,
        request: Request,
        *,
        worker: str | None = None,
        labels: frozenset[str] = frozenset(),
        gpu_model: str | None = None,
        learned: str | None = None,
        time_s: float | None = None,
    ) -> str | None:
        """Say why no known worker of the queue could ever meet a request, or None."""
        record = self._queues.get(queue) or QueueGate(queue)
        known = self._fleet.known(record)
        if worker is not None:
            known = [each for each in known if each.name == worker]
        key = ShapeKey(queue, request, worker, labels, model=gpu_model, learned=learned)
        return never_fits(known, key._replace(time_s=time_s), self._fleet.now)

    def hosts(  # noqa: PLR0913 - as `enqueue_all` takes them
        self,
        queue: str,
        request: Request,
        *,
        worker: str | None = None,
        labels: frozenset[str] = frozenset(),
        gpu_model: str | None = None,
        learned: str | None = None,
        time_s: float | None = None,
    ) -> list[str]:
        """Return the workers that could run such a job when empty, here or away."""
        gate = self._queues.get(queue) or QueueGate(queue)
        key = ShapeKey(queue, request, worker, labels, model=gpu_model, learned=learned)
        key = key._replace(time_s=time_s)
        key = key if learned is None else with_any_memory(key)
        known = self._fleet.known(gate)
        return [one.name for one in known if self._fleet.suits(one, key)]

    def of_no_kind(self, job: int, most: int) -> list[int]:
        """Return the first jobs that wait for the same as this one, but of no kind."""
        key = self._shape_of(job).key._replace(kind=None)
        shape = self._dispatch.shapes.get(key)
        return [] if shape is None else [job_of(one) for one in shape.first(most)]

    def capacity(self, worker: str) -> Capacity:
        """Return what a worker has, per unit."""
        return copied(self._fleet.worker(worker).capacity)

    def free(self, worker: str) -> Capacity:
        """Return what is free of a worker, per unit."""
        return copied(self._fleet.worker(worker).free)

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
        return {holder: copied(allocation) for holder, allocation in holders.items()}

    def allocation(self, holder: Holder) -> Allocation | None:
        """Return what one holder has."""
        held = self._fleet.holds.get(holder)
        return None if held is None else copied(held.allocation)

    def worker_of(self, holder: Holder) -> str | None:
        """Return the worker whose units a holder has; None: it has none."""
        held = self._fleet.holds.get(holder)
        return None if held is None else held.worker.name

    def _shape_of(self, job: int) -> Shape:
        shape = self._dispatch.shape_of.get(job)
        if shape is None:
            raise NotFound(f"job {job} is not waiting")
        return shape


def copied(capacity: Capacity) -> Capacity:
    """Return a copy of a capacity or allocation."""
    return {kind: dict(units) for kind, units in capacity.items()}
