"""Why a job waits, in numbers.

Reads, never changes. The answer is about the worker that is nearest to meeting the
request: what the job needs of each kind it lacks, what is free, who holds the rest.
Whoever wants to know of the others asks for each of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from grass.model.amounts import decimal_text
from grass.scheduler.dispatch import Dispatch
from grass.scheduler.fitting import never_fits, too_small
from grass.scheduler.placement import allocate, fits_when_empty, shortage
from grass.scheduler.shapes import Order, Shape
from grass.scheduler.worker import Holder, Worker


@dataclass(frozen=True, slots=True)
class Need:
    """One kind that is short: amounts asked, free to this job, and in all."""

    kind: str
    asked: int
    free: int
    total: int
    drained: int = 0
    """How much of it nothing new may start on."""

    def __str__(self) -> str:
        """Say it in numbers."""
        asked, free, total = map(decimal_text, (self.asked, self.free, self.total))
        pieces = ", in smaller pieces" if self.free >= self.asked else ""
        drained = f", {decimal_text(self.drained)} drained" if self.drained else ""
        return f"needs {self.kind} {asked}, free {free} of {total}{drained}{pieces}"


class Obstacle(StrEnum):
    """What keeps a job from starting on one worker."""

    FREE = "free"
    """Nothing there: it waits for something else."""
    KEPT = "kept"
    BUSY = "busy"
    AWAY = "away"
    TOO_SMALL = "too-small"
    LABEL = "label"
    PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class Prospect:
    """How it stands with a job on one worker of its queue."""

    worker: str
    obstacle: Obstacle
    why: str = ""
    """In words, with numbers where there are any."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a waiting job waits for; as text, the first thing that stands in its way."""

    job: int
    queue: str
    paused: bool
    queue_paused: bool
    queue_full: tuple[int, int] | None
    """Running and allowed, where the queue is at its limit."""
    limiter_full: tuple[int, int] | None
    worker: str | None
    """The eligible worker that is nearest to meeting the request."""
    choices: int
    """How many workers are eligible."""
    impossible: str | None
    """Why no worker that is here could run it, even when empty."""
    away: tuple[str, ...]
    """Workers that could, and are not here."""
    needs: tuple[Need, ...]
    together: tuple[Need, ...]
    """Kinds that are free there, but not on the same units as they must be."""
    holders: tuple[Holder, ...]
    """Who holds units of the kinds that are short there."""
    claimed_on: str | None
    """The worker on which units drain for this job."""
    held_for: int | None
    """The job for which units of the nearest worker drain."""
    overtaken: int
    """How often jobs of worse order went ahead since units were last kept for it."""
    overtaken_s: float
    """Seconds since the first of them did."""
    prospects: Callable[[], tuple[Prospect, ...]]
    """Looks at every worker of the queue, by name: only where somebody asks."""

    def __str__(self) -> str:
        """Say in one short line why the job waits."""
        return self.told(str)

    def told(self, name: Callable[[str], str]) -> str:
        """Say it with the names that people give workers."""
        shut = self.gate()
        if shut is not None:
            return shut
        return self._nobody() if self.worker is None else self._shortage(name)

    def gate(self) -> str | None:
        """Say what is paused or full; None: nothing that concerns the job."""
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
        return None

    def _nobody(self) -> str:
        if self.away:
            return f"no worker of queue `{self.queue}` that could run it is here"
        nobody = f"no worker of queue `{self.queue}` can run it at present"
        return f"{nobody}: {self.impossible}" if self.impossible else nobody

    def _shortage(self, name: Callable[[str], str]) -> str:
        text = _short(self.needs, self.together)
        if text and self.choices > 1 and self.worker is not None:
            # The others are further from it, and each has numbers of its own.
            text += f" on `{name(self.worker)}`"
        if self.claimed_on is not None:
            return f"{text}; units of `{name(self.claimed_on)}` are kept for it"
        if self.held_for is not None:
            return f"{text or 'would fit'}; units are kept for job {self.held_for}"
        return text or "starts with the next decision"


def explain(
    dispatch: Dispatch, shape: Shape, job: int, *, now: float, paused: bool
) -> Explanation:
    """Collect what keeps a waiting job from starting."""
    order = dispatch.order_of(job)
    eligible = shape.eligible
    if eligible is None:
        eligible = dispatch.fleet.eligible(shape)
    nearest = _nearest(eligible, shape, order)
    needs = () if nearest is None else _needs(nearest, shape, order)
    together = () if nearest is None or needs else _together(nearest, shape, order)
    record = dispatch.claims.overtaken.get(order)
    claimed = dispatch.claims.held.get(order)
    return Explanation(
        job=job,
        queue=shape.key.queue,
        paused=paused,
        queue_paused=shape.queue.paused,
        queue_full=shape.queue.fullness(),
        limiter_full=None if shape.limiter is None else shape.limiter.fullness(),
        worker=None if nearest is None else nearest.name,
        choices=len(eligible),
        impossible=None if nearest is not None else _impossible(dispatch, shape),
        away=() if nearest is not None else _away(dispatch, shape, order),
        needs=needs,
        together=together,
        holders=() if nearest is None else _holders(nearest, needs + together),
        claimed_on=None if claimed is None else claimed[0].name,
        held_for=None if nearest is None else _held_for(nearest, order),
        overtaken=0 if record is None else record.times,
        overtaken_s=0.0 if record is None else now - record.first_at,
        prospects=partial(_prospects, dispatch, shape, order),
    )


def _prospects(dispatch: Dispatch, shape: Shape, order: Order) -> tuple[Prospect, ...]:
    known = dispatch.fleet.known(shape.queue)
    return tuple(_prospect(worker, shape, order) for worker in known)


def _prospect(worker: Worker, shape: Shape, order: Order) -> Prospect:
    """Name what stands in the way on a worker, the most lasting thing first."""
    name, key = worker.name, shape.key
    if key.worker not in (None, name):
        return Prospect(name, Obstacle.PINNED)
    missing = sorted(key.labels - worker.labels)
    if missing:
        labels = ", ".join(f"`{label}`" for label in missing)
        return Prospect(name, Obstacle.LABEL, f"does not have {labels}")
    if not fits_when_empty(worker, key.queue, key.request):
        return Prospect(
            name, Obstacle.TOO_SMALL, too_small(worker, key.queue, key.request)
        )
    if worker.away:
        return Prospect(name, Obstacle.AWAY)
    return _prospect_here(worker, shape, order)


def _prospect_here(worker: Worker, shape: Shape, order: Order) -> Prospect:
    """Tell what a worker that is here, and could run a job, is short of."""
    needs = _needs(worker, shape, order)
    together = () if needs else _together(worker, shape, order)
    text = _short(needs, together)
    held_for = _held_for(worker, order)
    if held_for is not None:
        kept = f"units are kept for job {held_for}"
        return Prospect(worker.name, Obstacle.KEPT, f"{text or 'would fit'}; {kept}")
    obstacle = Obstacle.BUSY if text else Obstacle.FREE
    return Prospect(worker.name, obstacle, text)


def _short(needs: tuple[Need, ...], together: tuple[Need, ...]) -> str:
    if together:
        asked = [f"{need.kind} {decimal_text(need.asked)}" for need in together]
        return f"needs {' and '.join(asked)} on the same unit"
    return "; ".join(map(str, needs))


def _impossible(dispatch: Dispatch, shape: Shape) -> str | None:
    key = shape.key
    serving = dispatch.fleet.serving(shape.queue)
    if key.worker is not None:
        serving = [each for each in serving if each.name == key.worker]
    pinned = key.worker is not None
    return never_fits(serving, key.queue, key.request, key.labels, pinned=pinned)


def _away(dispatch: Dispatch, shape: Shape, order: Order) -> tuple[str, ...]:
    prospects = _prospects(dispatch, shape, order)
    return tuple(one.worker for one in prospects if one.obstacle is Obstacle.AWAY)


def position(dispatch: Dispatch, shape: Shape, job: int) -> int:
    """Count a job's place in its queue's order, from 1; asks each of its lines once."""
    order = dispatch.order_of(job)
    return 1 + sum(each.before(order) for each in shape.queue.shapes)


def _nearest(workers: list[Worker], shape: Shape, order: Order) -> Worker | None:
    asked = dict(shape.request)

    def missing(worker: Worker) -> tuple[float, str]:
        short = shortage(worker, shape.key.queue, shape.request, order)
        # Of two that are as near it is always the same one.
        return sum(amount / asked[kind] for kind, amount in short.items()), worker.name

    return min(workers, key=missing, default=None)


def _needs(worker: Worker, shape: Shape, order: Order) -> tuple[Need, ...]:
    short = shortage(worker, shape.key.queue, shape.request, order)
    needs = tuple(_need(worker, shape, order, kind) for kind in short)
    if "gpu" not in dict(shape.request):
        return needs
    return tuple(n for n in needs if n.kind != "vram" or n.free < n.asked)


def _together(worker: Worker, shape: Shape, order: Order) -> tuple[Need, ...]:
    if allocate(worker, shape.key.queue, shape.request, order) is not None:
        return ()
    return tuple(_need(worker, shape, order, kind) for kind in ("gpu", "vram"))


def _need(worker: Worker, shape: Shape, order: Order, kind: str) -> Need:
    queue = shape.key.queue
    free = sum(worker.units_for(kind, queue, order).values())
    total = worker.stocks_for(queue)[kind].total
    drained = worker.drained.get(kind, ())
    idle = sum(worker.capacity.get(kind, {}).get(unit, 0) for unit in drained)
    return Need(kind, dict(shape.request)[kind], free, total, idle)


def _holders(worker: Worker, needs: tuple[Need, ...]) -> tuple[Holder, ...]:
    kinds = {need.kind for need in needs}
    return tuple(
        holder
        for holder, allocation in worker.holders.items()
        if not kinds.isdisjoint(allocation)
    )


def _held_for(worker: Worker, order: Order) -> int | None:
    claim = worker.claim
    return claim.job if claim is not None and claim.order < order else None
