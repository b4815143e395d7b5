"""Why a job waits, in numbers.

Reads, never changes. An `Explanation` is about the worker that is nearest to meeting
the request: what the job needs of each kind it lacks, what is free, who holds the rest.
Its `feasibility` tells the same of every worker of the queue.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from grass.model.pools import lacking_text
from grass.scheduler.dispatch import Dispatch
from grass.scheduler.learned_memory import closed_type, open_choices
from grass.scheduler.pilot_terms import has_time
from grass.scheduler.placement import (
    fits_when_empty,
)
from grass.scheduler.reasons.memory_users import Blame, Told
from grass.scheduler.reasons.shortages import (
    Need,
    Shortfall,
    missing_share,
    nearest_key,
    shortfall,
)
from grass.scheduler.reasons.unmet_requests import never_fits, too_small
from grass.scheduler.shapes import Shape, ShapeKey, StartOrder
from grass.scheduler.worker_units import Gpus, Holder, WorkerUnits


class PlacementObstacle(StrEnum):
    """What keeps a job from starting on one worker."""

    FREE = "free"
    """None on this worker: the job waits for something else."""
    RESERVED = "kept"
    BUSY = "busy"
    AWAY = "away"
    TOO_SMALL = "too-small"
    AVOIDED = "avoided"
    """Jobs of its kind are not placed there: the broker has the reason."""
    LABEL = "label"
    PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Whether a job could start on one worker of its queue, and if not, why."""

    worker: str
    obstacle: PlacementObstacle
    why: str = ""
    """In words, with numbers where there are any."""
    blame: Blame | None = None
    """Who has the memory of GPUs that it lacks."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a waiting job waits for; as text, the first thing it waits for."""

    job: int
    queue: str
    paused: bool
    queue_paused: bool
    queue_full: tuple[int, int] | None
    """Running and allowed, where the queue is at its limit."""
    limiter_full: tuple[int, int] | None
    """The same of its first limiter that is reached."""
    profiler: tuple[str, Holder] | None
    """Its type and who profiles it, where it waits for nothing but that."""
    worker: str | None
    """The eligible worker that is nearest to meeting the request."""
    gpus: Gpus
    """The GPUs of it that match the model; None: all."""
    choices: int
    """How many workers are eligible."""
    impossible: str | None
    """Why no connected worker could run it, even when empty."""
    away: tuple[str, ...]
    """Workers that could run it, but are away."""
    needs: tuple[Need, ...]
    together: tuple[Need, ...]
    """Kinds that are free on the worker, but not on the same units."""
    lack: str
    """What is short on the worker, in words."""
    blame: Blame | None
    """Who has the memory of GPUs that is short there."""
    holders: tuple[Holder, ...]
    """The holders of units of the kinds that are short on the worker."""
    reserved_on: str | None
    """The worker on which units drain for this job."""
    reserved_for: int | None
    """The job for which units of the nearest worker drain."""
    overtaken: int
    """How often it was overtaken since it last had a reservation."""
    overtaken_s: float
    """Seconds since the first time."""
    feasibility: Callable[[], tuple[Feasibility, ...]]
    """Examines every worker of the queue, by name, when it is called."""

    def __str__(self) -> str:
        """Return in one short line why the job waits."""
        return self.text(Told())

    def text(self, told: Told) -> str:
        """Return in one line why the job waits."""
        closed = self.gate()
        if closed is not None:
            return closed
        return self._no_worker() if self.worker is None else self._shortage(told)

    def gate(self) -> str | None:
        """Return what is paused or full; None: no gate is closed."""
        if self.paused:
            return "everything is paused"
        if self.queue_paused:
            return f"queue `{self.queue}` is paused"
        if self.queue_full is not None:
            return "queue `{}` runs {} of at most {}".format(
                self.queue, *self.queue_full
            )
        if self.limiter_full is not None:
            return "{} of at most {} of its array run".format(*self.limiter_full)
        return None if self.profiler is None else _waits_for_profile(*self.profiler)

    def _no_worker(self) -> str:
        if self.away:
            return f"no worker of queue `{self.queue}` that could run it is here"
        text = f"no worker of queue `{self.queue}` can run it at present"
        return f"{text}: {self.impossible}" if self.impossible else text

    def _shortage(self, told: Told) -> str:
        text = self.lack
        if text and self.choices > 1 and self.worker is not None:
            # The numbers are those of the nearest worker.
            text += f" on `{told.name(self.worker)}`"
        if text and self.blame is not None:
            text = "; ".join(filter(None, (text, self.blame.text(told))))
        if self.reserved_on is not None:
            return f"{text}; units of `{told.name(self.reserved_on)}` are kept for it"
        if self.reserved_for is not None:
            return f"{text or 'would fit'}; units are kept for job {self.reserved_for}"
        return text or "starts with the next decision"


def _waits_for_profile(job_type: str, holder: Holder) -> str:
    who = f"job {holder}" if isinstance(holder, int) else holder
    return f"waits for the profile of `{job_type}`, which {who} is making"


def explain(
    dispatch: Dispatch, shape: Shape, job: int, *, now: float, paused: bool
) -> Explanation:
    """Collect what keeps a waiting job from starting."""
    order = dispatch.order_of(job)
    eligible = shape.eligible
    if eligible is None:
        eligible = dispatch.fleet.eligible(shape)
    nearest = _nearest(eligible, shape, order)
    short = Shortfall() if nearest is None else shortfall(nearest, shape.key, order)
    profiler = _profiler(shape, eligible)
    record = dispatch.reservations.overtaken.get(order)
    reserved = dispatch.reservations.active.get(order)
    return Explanation(
        job=job,
        queue=shape.key.queue,
        paused=paused,
        queue_paused=shape.queue.paused,
        queue_full=shape.queue.fullness(),
        limiter_full=_limiter_full(shape),
        profiler=profiler,
        worker=None if nearest is None else nearest.name,
        gpus=None if nearest is None else _gpus(nearest, shape),
        choices=len(eligible),
        impossible=None if nearest is not None else _impossible(dispatch, shape),
        away=() if nearest is not None else _away(dispatch, shape, order),
        needs=short.needs,
        together=short.together,
        lack=short.text,
        blame=short.blame,
        holders=short.holders if profiler is None else (profiler[1],),
        reserved_on=None if reserved is None else reserved[0].name,
        reserved_for=None if nearest is None else _reserved_for(nearest, order),
        overtaken=0 if record is None else record.times,
        overtaken_s=0.0 if record is None else now - record.first_at,
        feasibility=partial(_feasibility, dispatch, shape, order),
    )


def _limiter_full(shape: Shape) -> tuple[int, int] | None:
    return next(filter(None, (one.fullness() for one in shape.gates.limiters)), None)


def _profiler(shape: Shape, eligible: list[WorkerUnits]) -> tuple[str, Holder] | None:
    job_type = closed_type(shape, eligible)
    if job_type is None:
        return None
    return job_type.name, next(iter(job_type.profilers.values()))


def _feasibility(
    dispatch: Dispatch, shape: Shape, order: StartOrder
) -> tuple[Feasibility, ...]:
    known = dispatch.fleet.known(shape.queue)
    now = dispatch.fleet.now
    return tuple(_feasibility_of(worker, shape, order, now) for worker in known)


def _feasibility_of(
    worker: WorkerUnits, shape: Shape, order: StartOrder, now: float
) -> Feasibility:
    """Return what keeps a job from starting on a worker, most lasting reason first."""
    name, key = worker.name, shape.key
    bound = worker.terms is not None and worker.terms.bound
    if key.worker not in ((name,) if bound else (None, name)):
        return Feasibility(name, PlacementObstacle.PINNED)
    missing = sorted(key.labels - worker.labels)
    if missing:
        return Feasibility(name, PlacementObstacle.LABEL, lacking_text(missing))
    if not (fits_when_empty(worker, key) and has_time(worker, key, now)):
        why = too_small(worker, key, now)
        return Feasibility(name, PlacementObstacle.TOO_SMALL, why)
    if key.kind in worker.avoided_by:
        return Feasibility(name, PlacementObstacle.AVOIDED)
    if worker.away:
        return Feasibility(name, PlacementObstacle.AWAY)
    return _feasibility_here(worker, key, order)


def _feasibility_here(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder
) -> Feasibility:
    """Return what a connected worker that could run a job is short of."""
    short = shortfall(worker, key, order)
    text = short.text
    if key.learned is not None and not open_choices(worker, key):
        text = f"another job is making the profile of `{key.learned}` there"
    reserved_for = _reserved_for(worker, order)
    if reserved_for is not None:
        why = f"{text or 'would fit'}; units are kept for job {reserved_for}"
        return Feasibility(worker.name, PlacementObstacle.RESERVED, why)
    obstacle = PlacementObstacle.BUSY if text else PlacementObstacle.FREE
    return Feasibility(worker.name, obstacle, text, short.blame)


def _impossible(dispatch: Dispatch, shape: Shape) -> str | None:
    key = shape.key
    serving = dispatch.fleet.serving(shape.queue)
    if key.worker is not None:
        serving = [each for each in serving if each.name == key.worker]
    return never_fits(serving, key, dispatch.fleet.now)


def _away(dispatch: Dispatch, shape: Shape, order: StartOrder) -> tuple[str, ...]:
    feasibility = _feasibility(dispatch, shape, order)
    return tuple(
        one.worker for one in feasibility if one.obstacle is PlacementObstacle.AWAY
    )


def position(dispatch: Dispatch, shape: Shape, job: int) -> int:
    """Return a job's position in its queue, from 1; asks each shape of the queue."""
    order = dispatch.order_of(job)
    return 1 + sum(each.before(order) for each in shape.queue.shapes)


def _nearest(
    workers: list[WorkerUnits], shape: Shape, order: StartOrder
) -> WorkerUnits | None:
    def missing(worker: WorkerUnits) -> tuple[float, str]:
        key = nearest_key(worker, shape.key, order)
        # The name makes the choice stable.
        return missing_share(worker, key, order), worker.name

    return min(workers, key=missing, default=None)


def _gpus(worker: WorkerUnits, shape: Shape) -> Gpus:
    model = shape.key.model
    return None if model is None else worker.gpus_of(model)


def _reserved_for(worker: WorkerUnits, order: StartOrder) -> int | None:
    reservation = worker.reservation
    return (
        reservation.job
        if reservation is not None and reservation.order < order
        else None
    )
