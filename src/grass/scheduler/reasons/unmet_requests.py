"""Why a request can never be met, in words and with numbers.

What is held, drained or withheld does not count, nor that a worker is away: that
passes. A request for GPUs is answered with a list of those that there are.
"""

from collections import Counter
from collections.abc import Iterable

from grass.model.amount_text import WHOLE, amount_text, amount_texts
from grass.model.durations import duration_text
from grass.model.pools import lacking_text, pools_of
from grass.model.resources import ANY_MEMORY, GPU_KINDS, Units, request_text
from grass.scheduler.learned_memory import with_any_memory
from grass.scheduler.pilot_terms import has_time
from grass.scheduler.placement import fits_when_empty, kinds_of
from grass.scheduler.shapes import ShapeKey
from grass.scheduler.worker_units import NO_UNITS, WorkerUnits

MOST_LISTED = 8
"""How many sorts of GPUs are listed."""


def never_fits(serving: list[WorkerUnits], key: ShapeKey, now: float) -> str | None:
    """Say why none of these workers could meet a request when empty, or None."""
    if not serving:
        return None
    labelled = [worker for worker in serving if key.labels <= worker.labels]
    if not labelled:
        return _unlabelled(key)
    asked = _asked_text(key)
    if key.learned is not None:
        # What is known of its memory may change; that there is some may not.
        key = with_any_memory(key)
    if any(fits_when_empty(worker, key) for worker in labelled):
        in_time = key.time_s is None or any(
            has_time(worker, key, now)
            for worker in labelled
            if fits_when_empty(worker, key)
        )
        return None if in_time else _too_long(key)
    problems = (_too_much(labelled, key, kind, amount) for kind, amount in key.request)
    found = next(filter(None, problems), None)
    if found is not None:
        return found
    text = f"no worker of {_place(key)} has {asked} together"
    return _with_gpus(text, labelled, key)


def _too_long(key: ShapeKey) -> str:
    needed = duration_text(key.time_s or 0.0)
    return f"no worker of {_place(key)} stays for the {needed} that it may take"


def _place(key: ShapeKey) -> str:
    """Return where jobs of a shape may run: a pool that they name, or their queue."""
    pools = pools_of(key.labels)
    return f"pool `{pools[0]}`" if pools else f"queue `{key.queue}`"


def too_small(worker: WorkerUnits, key: ShapeKey, now: float) -> str:
    """Say why one worker could not meet a request, even when empty."""
    if not has_time(worker, key, now):
        needed = "" if key.time_s is None else f" for {duration_text(key.time_s)}"
        return f"does not stay long enough{needed}"
    asked_text = _asked_text(key)
    if key.learned is not None:
        key = with_any_memory(key)
    for kind, asked in key.request:
        most = _most(worker, key, kind)
        if asked > most:
            wanted, has = amount_texts(kind, asked, most)
            of_model = f" that matches `{key.model}`" if _is_of_model(key, kind) else ""
            return f"needs {kind} {wanted}, has {has if most else 'none'}{of_model}"
    return f"does not have {asked_text} together"


def _asked_text(key: ShapeKey) -> str:
    auto = [] if key.learned is None else ["vram auto"]
    return ", ".join(filter(None, [request_text(key.request), *auto]))


def _unlabelled(key: ShapeKey) -> str:
    if key.worker is not None:
        lacks = lacking_text(sorted(key.labels))
        return f"the worker that it is pinned to {lacks}"
    plain = [label for label in sorted(key.labels) if not pools_of([label])]
    if not plain:
        return f"there is no {_place(key)}"
    wanted = ", ".join(f"`{label}`" for label in plain)
    return f"no worker of {_place(key)} has {wanted}"


def _too_much(
    workers: list[WorkerUnits], key: ShapeKey, kind: str, asked: int
) -> str | None:
    """Say that there is no such kind, or less of it than is asked for, or None."""
    queue = key.queue
    if not any(_sizes(worker, queue, kind) for worker in workers):
        return f"{_place(key)} has no {kind}; {_kinds(workers, queue)}"
    most = max(_most(worker, key, kind) for worker in workers)
    if asked <= most:
        return None
    if kind not in GPU_KINDS:
        wanted, has = amount_texts(kind, asked, most)
        text = f"{kind}: asked {wanted}, the most any worker of"
        return f"{text} {_place(key)} has is {has}"
    return _with_gpus(_too_few_gpus(key, kind, asked, most), workers, key)


def _too_few_gpus(key: ShapeKey, kind: str, asked: int, most: int) -> str:
    if not most:
        return f"no GPU of {_place(key)} matches `{key.model}`"
    wanted, has = amount_texts(kind, asked, most)
    of_model = "" if key.model is None else f" that match `{key.model}`"
    if kind == "vram" and _is_on_one(key):
        which = f"that matches `{key.model}`" if key.model else f"of {_place(key)}"
        return f"vram: asked {wanted}, the largest GPU {which} has {has}"
    text = f"{kind}: asked {wanted}, the most any worker of {_place(key)} has"
    return f"{text} is {has}{of_model}"


def _with_gpus(text: str, workers: list[WorkerUnits], key: ShapeKey) -> str:
    """Add a list of the GPUs that there are, if the request is for any."""
    if GPU_KINDS.isdisjoint(kind for kind, _ in key.request):
        return text
    listed = gpu_list(workers, key.queue)
    return f"{text}; there are {listed}" if listed else text


def gpu_list(workers: Iterable[WorkerUnits], queue: str) -> str:
    """List the GPUs of a queue: `4 NVIDIA A100 of 80G, 1 Tesla T4 of 15G`."""
    sorts: Counter[str] = Counter()
    for worker in workers:
        vram = _sizes(worker, queue, "vram")
        for unit in _sizes(worker, queue, "gpu") or vram:
            details = worker.gpus.get(unit)
            model = details.model if details else ""
            known = vram.get(unit, ANY_MEMORY) < ANY_MEMORY
            memory = f" of {amount_text(vram[unit], 'vram')}" if known else ""
            if model or memory:
                sorts[f"{model or 'GPU'}{memory}"] += 1
    texts = [f"{count} {sort}" for sort, count in sorts.most_common(MOST_LISTED)]
    return ", ".join(texts + ["..."] * (len(sorts) > MOST_LISTED))


def _most(worker: WorkerUnits, key: ShapeKey, kind: str) -> int:
    """Return the most of a kind that a job of this shape could have on a worker."""
    kind_units = kinds_of(worker, key).get(kind)
    if kind_units is None:
        return 0
    on_one = kind == "vram" and _is_on_one(key)
    return kind_units.largest if on_one else kind_units.total


def _is_on_one(key: ShapeKey) -> bool:
    """Return whether a request for memory is for that of one GPU."""
    return all(kind != "gpu" or amount <= WHOLE for kind, amount in key.request)


def _is_of_model(key: ShapeKey, kind: str) -> bool:
    return key.model is not None and kind in GPU_KINDS


def _kinds(workers: list[WorkerUnits], queue: str) -> str:
    kinds = sorted(
        {
            kind
            for each in workers
            for kind, kind_units in each.kinds_for(queue).items()
            if kind_units.total
        }
    )
    return f"it has {', '.join(kinds)}" if kinds else "it has nothing"


def _sizes(worker: WorkerUnits, queue: str, kind: str) -> Units:
    kind_units = worker.kinds_for(queue).get(kind)
    return NO_UNITS if kind_units is None else kind_units.sizes
