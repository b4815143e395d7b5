"""One worker: its units, and what is free of them.

Always true: for each unit, free plus the amounts of all holders is the capacity. What
is withheld of a unit has no holder: it is free, and not on offer. A view limits one
queue's share of the kinds it names; the amounts that follow from it are computed on
demand, so a change of units costs the same however many queues there are.
A drained unit takes nothing new; a unit that was withdrawn while held is drained too,
and removed when it is unused. Units are chosen in `placement`; `fleet` has all workers.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from grass.model.amount_text import WHOLE
from grass.model.gpu_details import GpuDetails, has_model, named_gpus
from grass.model.resources import GPU_KINDS, Allocation, Capacity, Units, unit_order
from grass.scheduler.shapes import Gates, ShapeKey, StartOrder

if TYPE_CHECKING:
    from grass.scheduler.job_types import JobType
    from grass.scheduler.learned_memory import Choice
    from grass.scheduler.pilot_terms import PilotTerms

Holder = int | str
"""A job's id, or a lease's name."""

NO_UNITS: Units = {}
NO_PROCESSES: dict[int, Units] = {}
LEAST_MEMORY = WHOLE * 9 // 10
"""The part of its memory that a share of a GPU has at least, unless it is set."""
Gpus = frozenset[str] | None
"""The GPUs of a worker that a job may use; None: any."""
MOST_PATTERNS = 256
"""For how many patterns a worker remembers which of its GPUs match."""


class KindUnits:
    """The units of one kind with their sizes, as if no holder had any."""

    __slots__ = ("largest", "sizes", "total")

    def __init__(self, sizes: Units) -> None:
        self.sizes = sizes
        self.largest = max(sizes.values(), default=0)
        self.total = sum(sizes.values())


class ViewUsage:
    """One queue's share of one worker: limits, and what the queue holds of them."""

    __slots__ = (
        "available",
        "available_version",
        "exceeded_when_set",
        "kinds",
        "kinds_version",
        "limits",
        "used",
    )

    def __init__(self, limits: Capacity) -> None:
        self.limits = ordered(limits)
        self.used: Capacity = {kind: {} for kind in limits}
        self.available: Capacity = {}
        self.available_version = -1
        """The worker's `free_version` that `available` was computed at."""
        self.kinds: dict[str, KindUnits] = {}
        self.kinds_version = -1
        """The worker's `kinds_version` that `kinds` was computed at."""
        self.exceeded_when_set = False

    def shift(self, allocation: Allocation, sign: int) -> None:
        """Count an allocation of this queue in (1) or out (-1)."""
        for kind, units in allocation.items():
            used = self.used.get(kind)
            if used is not None:
                for unit, amount in units.items():
                    used[unit] = used.get(unit, 0) + sign * amount

    def headroom(self, kind: str) -> Units:
        """Return what the queue could still take if others held nothing."""
        used = self.used[kind]
        return {
            unit: max(0, limit - used.get(unit, 0))
            for unit, limit in self.limits[kind].items()
        }

    def exceeded(self) -> bool:
        """Return whether the queue holds more than its limits allow."""
        return any(
            amount > self.limits[kind].get(unit, 0)
            for kind, units in self.used.items()
            for unit, amount in units.items()
        )


class Reservation(NamedTuple):
    """Units that drain for one overtaken job; jobs of worse order leave them alone."""

    job: int
    order: StartOrder
    queue: str
    allocation: Allocation


class HeldUnits(NamedTuple):
    """What one holder has, and the gates that count it."""

    worker: "WorkerUnits"
    allocation: Allocation
    gates: Gates


class GpuJobs:
    """How many holders each GPU of a worker has, and how many it may have."""

    __slots__ = ("_counts", "full", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.full: set[str] = set()
        """GPUs that take no further job."""
        self._counts: dict[str, int] = {}

    def count(self, allocation: Allocation, sign: int) -> None:
        """Count a holder in (1) or out (-1)."""
        for unit in gpus_in(allocation):
            self._counts[unit] = self._counts.get(unit, 0) + sign
            is_full = self._counts[unit] >= self.most
            (self.full.add if is_full else self.full.discard)(unit)


class WorkerUnits:
    """The units of one worker, their holders and the views of queues on them.

    `away`: not connected, though units of it may be held. `known`: the capacity is
    known even while it is away, so it counts for what could ever be met.
    """

    __slots__ = (
        "avoided_by",
        "away",
        "busy",
        "capacity",
        "choices",
        "closed",
        "drained",
        "free",
        "free_version",
        "gpu_jobs",
        "gpus",
        "holders",
        "kinds",
        "kinds_version",
        "known",
        "labels",
        "least",
        "matching",
        "name",
        "processes",
        "reservation",
        "terms",
        "types",
        "views",
        "with_gpus",
        "withdrawn",
        "withheld",
    )

    def __init__(
        self,
        name: str,
        least: int = LEAST_MEMORY,
        types: "dict[str, JobType] | None" = None,
    ) -> None:
        self.name = name
        self.types = {} if types is None else types
        """The job types of the whole fleet."""
        self.least = least
        """The part of its memory that a share of a GPU has at least."""
        self.avoided_by = set[str | None]()  # Kinds of jobs that are not placed here.
        self.away, self.known = True, False
        self.labels: frozenset[str] = frozenset()
        self.capacity: Capacity = {}
        self.free: Capacity = {}
        self.holders: dict[Holder, Allocation] = {}
        self.views: dict[str, ViewUsage] = {}
        self.reservation: Reservation | None = None
        self.terms: PilotTerms | None = None
        self.drained: dict[str, set[str]] = {}
        self.withdrawn: dict[tuple[str, str], int] = {}
        """Kind and unit, and the amount it gets once that much is held at most."""
        self.closed: dict[str, set[str]] = {}
        """Units that take nothing new: drained or withdrawn."""
        self.withheld: Capacity = {}
        """What of a unit is not on offer: it is used by processes without a holder."""
        self.processes: dict[int, Units] = {}
        """By pid what one process has of the memory that is withheld."""
        self.gpu_jobs: GpuJobs | None = None
        """Counts the holders of each GPU where their number is limited."""
        self.busy: frozenset[str] = frozenset()
        """GPUs that take no job whose memory is looked up."""
        self.gpus: dict[str, GpuDetails] = {}
        """What is known of found GPUs."""
        self.matching: dict[str, Gpus] = {}
        """What `gpus_of` returned, by pattern."""
        self.with_gpus: dict[tuple[str, Gpus], tuple[object, dict[str, KindUnits]]] = {}
        """What `kinds_with` made, and of what."""
        self.choices: dict[ShapeKey, tuple[Choice, ...]] = {}
        """What `learned_memory` made of the keys that name a job type."""
        self.kinds: dict[str, KindUnits] = {}
        self.free_version = 0
        """Grows whenever `free`, `closed` or `withheld` changes."""
        self.kinds_version = 0
        """Grows whenever `kinds` changes."""

    def kinds_for(self, queue: str) -> dict[str, KindUnits]:
        """Return what a queue could get here if no unit was held."""
        view = self.views.get(queue)
        if view is None:
            return self.kinds
        if view.kinds_version != self.kinds_version:
            view.kinds = self._kinds_of(view)
            view.kinds_version = self.kinds_version
        return view.kinds

    def gpus_of(self, model: str) -> Gpus:
        """Return the GPUs whose model matches a pattern; None: all of them do.

        Those that are named are meant, whether they were found or declared.
        """
        named = named_gpus(model)
        if named is not None:
            return named
        if model in self.matching:
            return self.matching[model]
        if len(self.matching) >= MOST_PATTERNS:
            self.matching.clear()
        names = frozenset(
            name for name, gpu in self.gpus.items() if has_model(gpu.model, model)
        )
        known = (self.kinds[kind].sizes for kind in GPU_KINDS if kind in self.kinds)
        every = all(names.issuperset(sizes) for sizes in known)
        self.matching[model] = None if every else names
        return self.matching[model]

    def kinds_with(self, queue: str, gpus: Gpus) -> dict[str, KindUnits]:
        """Return what a queue could get here with these GPUs alone."""
        kinds = self.kinds_for(queue)
        if gpus is None:
            return kinds
        known = self.with_gpus.get((queue, gpus))
        if known is None or known[0] is not kinds:
            only = {
                kind: KindUnits(only_of(kinds[kind].sizes, gpus))
                for kind in GPU_KINDS & kinds.keys()
            }
            known = self.with_gpus[queue, gpus] = kinds, kinds | only
        return known[1]

    def available(self, view: ViewUsage, kind: str) -> Units:
        """Return what a view's queue may take now of a kind that the view limits."""
        if view.available_version != self.free_version:
            view.available = {}
            view.available_version = self.free_version
        available = view.available.get(kind)
        if available is None:
            offered = self.offered(kind)
            available = view.available[kind] = {
                unit: min(offered[unit], left)
                for unit, left in view.headroom(kind).items()
                if unit in offered
            }
        return available

    def offered(self, kind: str) -> Units:
        """Return what is free and not withheld, of units that take jobs."""
        free = self.free.get(kind, NO_UNITS)
        closed, withheld = self.closed.get(kind, ()), self.withheld.get(kind)
        if self.gpu_jobs is not None and kind in GPU_KINDS:
            closed = self.gpu_jobs.full.union(closed)
        if withheld:
            free = less(free, withheld)
        if not closed:
            return free
        return {unit: amount for unit, amount in free.items() if unit not in closed}

    def seen_by(self, process: int | None, queue: str) -> "WorkerUnits":
        """Return the worker as the guest of a process sees it, which is only read.

        What the process has itself is not withheld from it.
        """
        own = None if process is None else self.processes.get(process)
        if not own:
            return self
        seen = copy(self)
        seen.processes = {}
        withheld = self.withheld.get("vram", NO_UNITS)
        seen.withheld = self.withheld | {"vram": less(withheld, own)}
        if queue in self.views:
            # What a view has computed is for all other jobs.
            view = copy(self.views[queue])
            view.available_version = -1
            seen.views = {queue: view}
        return seen

    def whole_sizes(self, kind: str, queue: str) -> Units:
        """Return what each unit offers to a queue while no job holds any of it."""
        kind_units = self.kinds_for(queue).get(kind)
        sizes = NO_UNITS if kind_units is None else kind_units.sizes
        withheld = self.withheld.get(kind)
        if not withheld:
            return sizes
        most = less(self.capacity.get(kind, NO_UNITS), withheld)
        return {unit: min(size, most.get(unit, 0)) for unit, size in sizes.items()}

    def units_for(self, kind: str, queue: str, order: StartOrder | None) -> Units:
        """Return what is free for a job of this order; None ignores reservations."""
        view = self.views.get(queue)
        limited = view is not None and kind in view.limits
        reservation = self.reservation
        if reservation is None or order is None or order <= reservation.order:
            if view is not None and limited:
                return self.available(view, kind)
            return self.offered(kind)
        reserved = reservation.allocation.get(kind, NO_UNITS)
        units = less(self.offered(kind), reserved)
        if view is None or not limited:
            return units
        available = self.available(view, kind)
        if reservation.queue == queue:
            available = less(available, reserved)
        return {unit: min(left, units[unit]) for unit, left in available.items()}

    def lacks(self, allocation: Allocation) -> str | None:
        """Return the first unit that has less free than the allocation needs."""
        for kind, units in allocation.items():
            free = self.free.get(kind, NO_UNITS)
            for unit, amount in units.items():
                if free.get(unit, 0) < amount:
                    return f"{kind} {unit}"
        return None

    def shift(self, allocation: Allocation, sign: int, queue: str | None) -> None:
        """Free an allocation (1), or take it (-1), which the caller has checked."""
        self.free_version += 1
        if queue is not None and queue in self.views:
            self.views[queue].shift(allocation, -sign)
        for kind, units in allocation.items():
            free = self.free[kind]
            for unit, amount in units.items():
                free[unit] += sign * amount

    def limit_jobs(self, most: int | None) -> None:
        """Set how many holders a GPU may have."""
        self.gpu_jobs = None if most is None else GpuJobs(most)
        if self.gpu_jobs is not None:
            for allocation in self.holders.values():
                self.gpu_jobs.count(allocation, 1)

    def _kinds_of(self, view: ViewUsage) -> dict[str, KindUnits]:
        kinds = dict(self.kinds)
        for kind, limits in view.limits.items():
            sizes = self.kinds[kind].sizes if kind in self.kinds else NO_UNITS
            kinds[kind] = KindUnits(
                {
                    unit: min(limit, sizes[unit])
                    for unit, limit in limits.items()
                    if unit in sizes
                }
            )
        return kinds


def gpus_in(allocation: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the GPUs that units of some kinds are of."""
    return {unit for kind in GPU_KINDS for unit in allocation.get(kind, ())}


def ordered(capacity: Capacity) -> Capacity:
    """Copy a capacity with units in natural order: 2 before 10."""
    return {
        kind: {unit: units[unit] for unit in sorted(units, key=unit_order)}
        for kind, units in capacity.items()
    }


def only_of(units: Units, names: frozenset[str]) -> Units:
    """Return some of the units."""
    return {unit: amount for unit, amount in units.items() if unit in names}


def less(units: Units, reserved: Units) -> Units:
    """Return units without what is reserved of them, never less than none."""
    return {
        unit: max(0, amount - reserved.get(unit, 0)) for unit, amount in units.items()
    }
