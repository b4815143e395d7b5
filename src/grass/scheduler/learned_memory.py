"""Memory that is looked up: what a job of a type asks for on the GPUs of one worker.

Such a shape names its type in place of an amount of `vram`. On one worker it stands for
one ordinary key per amount, a *choice*, with the GPUs on which that amount holds. Where
nothing is known of a model, or more than a GPU has, the choice is a whole GPU; a queue
that may have less of it gives all that it may. So placement knows ordinary keys alone.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from grass.model.amount_text import WHOLE
from grass.model.gpu_details import UNITS
from grass.model.resources import GPU_KINDS, Allocation, Request, Units
from grass.scheduler.job_types import JobType
from grass.scheduler.shapes import Shape, ShapeKey
from grass.scheduler.worker_units import NO_UNITS, WorkerUnits, gpus_in

MOST_CHOICES = 256
"""For how many keys a worker remembers the choices."""
PROFILES_LAST = 1e6
"""Added to the slack of a worker on which a job would profile its type."""
NOT_LISTED = 2**62
"""More than any GPU has: what a shape needs that no release can help."""


class Choice(NamedTuple):
    """An ordinary key for some GPUs of a worker."""

    key: ShapeKey
    least: int
    """The memory that a GPU has free at least where it fits."""
    profiles: str | None
    """The model of GPU for which a job would profile its type."""
    is_known: bool
    """Whether the memory is what was learned."""


def choices(worker: WorkerUnits, key: ShapeKey) -> tuple[Choice, ...]:
    """Return what a key stands for on a worker, known amounts first."""
    found = worker.choices.get(key)
    if found is None:
        if len(worker.choices) >= MOST_CHOICES:
            worker.choices.clear()
        found = worker.choices[key] = tuple(_choices(worker, key))
    return found


def open_choices(worker: WorkerUnits, key: ShapeKey) -> list[Choice]:
    """Return the choices but those that another job of the type is profiling."""
    profilers = type_of(worker, key).profilers
    return [one for one in choices(worker, key) if one.profiles not in profilers]


def idle_choices(worker: WorkerUnits, key: ShapeKey) -> list[Choice]:
    """Return the open choices, without GPUs that are busy."""
    found = open_choices(worker, key)
    if not worker.busy:
        return found
    narrow = ((one, _units_of(worker, one.key) - worker.busy) for one in found)
    return [
        one._replace(key=one.key._replace(model=UNITS + ",".join(sorted(units))))
        for one, units in narrow
        if units
    ]


def uses_busy(worker: WorkerUnits, allocation: Allocation) -> bool:
    """Return whether some of the GPUs are busy."""
    return not worker.busy.isdisjoint(gpus_in(allocation))


def least_needed(worker: WorkerUnits, key: ShapeKey) -> int:
    """Return the memory that some GPU must have free before a job may start."""
    return min((one.least for one in open_choices(worker, key)), default=NOT_LISTED)


def type_of(worker: WorkerUnits, key: ShapeKey) -> JobType:
    """Return the type that a key names."""
    assert key.learned is not None
    return worker.types[key.learned]


def models_of(worker: WorkerUnits, units: Iterable[str]) -> set[str]:
    """Return the models of some GPUs; a declared one has no name."""
    return {_model(worker, unit) for unit in units}


def profiling_cost(worker: WorkerUnits, key: ShapeKey, allocation: Allocation) -> float:
    """Return what counts against a worker where a job would profile its type."""
    units = allocation.get("vram", NO_UNITS)
    unknown = type_of(worker, key).is_unknown(models_of(worker, units))
    return PROFILES_LAST if unknown else 0.0


def whole_models(
    worker: WorkerUnits, queue: str | None, allocation: Allocation
) -> set[str]:
    """Return the models of GPUs of which a job has all that its queue may have."""
    shares = _shares_for(worker, queue or "")
    held = allocation.get("gpu", NO_UNITS).items()
    whole = (unit for unit, share in held if share == shares.get(unit))
    return models_of(worker, whole)


def without_gpus(key: ShapeKey) -> ShapeKey:
    """Return a key for the other kinds that jobs of a shape ask for."""
    rest = tuple(asked for asked in key.request if asked[0] not in GPU_KINDS)
    return key._replace(request=rest, learned=None)


def with_any_memory(key: ShapeKey) -> ShapeKey:
    """Return a key that any GPU with memory meets, whatever its model needs."""
    asked = {"gpu": 1, **dict(key.request), "vram": 1}
    return key._replace(request=tuple(sorted(asked.items())), learned=None)


def packed_units(
    worker: WorkerUnits, job_type: JobType, allocation: Allocation, request: Request
) -> Allocation | None:
    """Return what a job on whole GPUs keeps by what is known now; None: all of it."""
    units = allocation.get("gpu", NO_UNITS)
    amounts = {unit: job_type.amounts.get(_model(worker, unit)) for unit in units}
    vram = allocation.get("vram", NO_UNITS)
    memory = {unit: n for unit, n in amounts.items() if n and n < vram.get(unit, 0)}
    if not memory or len(memory) < len(units):
        return None
    rest = {kind: dict(has) for kind, has in allocation.items() if kind != "gpu"}
    shares = _shares(units, dict(request).get("gpu", 0))
    return rest | {"vram": memory} | ({"gpu": shares} if shares else {})


def _shares(units: Units, asked: int) -> Units:
    shares = {}
    for unit, held in units.items():
        shares[unit] = min(held, asked)
        asked -= shares[unit]
    return {unit: share for unit, share in shares.items() if share}


def _units_of(worker: WorkerUnits, key: ShapeKey) -> frozenset[str]:
    gpus = None if key.model is None else worker.gpus_of(key.model)
    return frozenset(gpus_in(worker.capacity)) if gpus is None else gpus


def _model(worker: WorkerUnits, unit: str) -> str:
    details = worker.gpus.get(unit)
    return "" if details is None else details.model


def _choices(worker: WorkerUnits, key: ShapeKey) -> Iterator[Choice]:
    amounts = type_of(worker, key).amounts
    known: dict[int, list[str]] = {}
    whole: dict[tuple[str | None, Request], list[str]] = {}
    sizes = _memory_sizes(worker, key)
    for unit, size in sizes.items():
        model = _model(worker, unit)
        amount = amounts.get(model)
        if amount is not None and amount < size:
            known.setdefault(amount, []).append(unit)
            continue
        asked = _all_of(worker, key, unit, size)
        if asked is not None:
            profiles = model if amount is None else None
            whole.setdefault((profiles, asked), []).append(unit)
    for amount, units in sorted(known.items()):
        asked = _with_memory(key.request, amount)
        concrete = _concrete(worker, key, asked, units)
        yield Choice(concrete, amount, None, is_known=True)
    for (profiles, asked), units in whole.items():
        least = min(sizes[unit] for unit in units) * worker.least // WHOLE
        least = dict(asked).get("vram", max(1, least))
        concrete = _concrete(worker, key, asked, units)
        yield Choice(concrete, least, profiles, is_known=False)


def _concrete(
    worker: WorkerUnits, key: ShapeKey, asked: Request, units: list[str]
) -> ShapeKey:
    """Return a key for some GPUs, which are named unless they are all that it has."""
    kinds = worker.kinds_for(key.queue)
    every = {unit for kind in GPU_KINDS & kinds.keys() for unit in kinds[kind].sizes}
    gpus = None if key.model is None else worker.gpus_of(key.model)
    if gpus is not None:
        every &= gpus
    model = key.model if every == set(units) else UNITS + ",".join(units)
    return key._replace(request=asked, model=model, learned=None)


def _memory_sizes(worker: WorkerUnits, key: ShapeKey) -> Units:
    """Return the GPUs with memory that a job may use."""
    vram = worker.kinds_for(key.queue).get("vram")
    sizes = NO_UNITS if vram is None else vram.sizes
    gpus = None if key.model is None else worker.gpus_of(key.model)
    if gpus is None:
        return sizes
    return {unit: size for unit, size in sizes.items() if unit in gpus}


def _all_of(worker: WorkerUnits, key: ShapeKey, unit: str, size: int) -> Request | None:
    """Return a request for all that a queue may have of a GPU; None: too little.

    Of a part of a GPU the memory is asked for too: what a share brings depends on what
    others hold.
    """
    share = _shares_for(worker, key.queue).get(unit, 0)
    whole = worker.capacity.get("gpu", NO_UNITS).get(unit, 0)
    if share and share == whole:
        return _whole_gpus(key.request)
    asked = dict(key.request).get("gpu", 0)
    memory = min(size, worker.capacity["vram"][unit] * share // max(whole, 1))
    memory = memory * worker.least // WHOLE
    if not memory or asked > share:
        return None
    return tuple(sorted({**dict(key.request), "gpu": share, "vram": memory}.items()))


def _shares_for(worker: WorkerUnits, queue: str) -> Units:
    gpu = worker.kinds_for(queue).get("gpu")
    return NO_UNITS if gpu is None else gpu.sizes


def _with_memory(request: Request, amount: int) -> Request:
    """Ask for an amount of memory of each GPU."""
    asked = dict(request)
    asked["vram"] = amount * _count(request)
    return tuple(sorted(asked.items()))


def _whole_gpus(request: Request) -> Request:
    asked = dict(request)
    asked["gpu"] = WHOLE * _count(request)
    return tuple(sorted(asked.items()))


def _count(request: Request) -> int:
    """Return how many GPUs a request is for."""
    return max(1, -(-dict(request).get("gpu", 0) // WHOLE))


def closed_type(shape: Shape, eligible: list[WorkerUnits]) -> JobType | None:
    """Return a shape's type if jobs could only profile what is being profiled."""
    job_type = shape.gates.learned
    if job_type is None or not job_type.profilers or not eligible:
        return None
    is_open = any(open_choices(worker, shape.key) for worker in eligible)
    return None if is_open else job_type
