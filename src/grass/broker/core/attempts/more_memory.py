"""More memory for a job that ended for want of it, when it is queued again.

Of a GPU it gets half as much again, then a whole device; of the machine's memory half
as much again each time. Where its memory is learned, the profile of its type gives it
that half; with a whole device it is still of that type. A job that ended because
another one used more than its share is queued again as it was. What no worker could
ever give is not asked for.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from grass.broker.core.state import State
from grass.link.messages import Exited
from grass.model.amount_text import WHOLE
from grass.model.jobs.endings import OUT_OF_GPU_MEMORY
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.job_types import type_of
from grass.model.jobs.spec import Spec
from grass.model.resources import Allocation, Request


def request(state: State, job: Job, attempt: Attempt, ended: Exited) -> None:
    """Have a job ask for more memory, if it was short of its own accord."""
    spec = state.specs[job.spec]
    changed = replace(spec, short_of_memory=spec.short_of_memory + 1)
    larger = larger_requests(spec, attempt.allocation, ended.cause)
    fitting = (one for one in larger if _may_fit(state, job, spec, one))
    asked = None if ended.blamed else next(fitting, None)
    if asked is not None:
        changed = replace(changed, request=asked)
        if spec.auto_vram and ended.cause == OUT_OF_GPU_MEMORY:
            changed = replace(changed, auto_vram=False, job_type=type_of(spec, job))
    number = state.specs.acquire(changed)
    state.specs.release(job.spec)
    state.note_before(job)
    job.change(spec=number)


def _may_fit(state: State, job: Job, spec: Spec, asked: Request) -> bool:
    problem = state.scheduler.never_fits(
        job.queue,
        asked,
        worker=spec.worker,
        labels=spec.all_labels,
        gpu_model=spec.gpu_model,
        time_s=spec.rounded_time_s,
    )
    return problem is None


def larger_requests(spec: Spec, held: Allocation, cause: str) -> Iterator[Request]:
    """Yield requests with more memory, the one to be preferred first."""
    asked = dict(spec.request)
    if cause == OUT_OF_GPU_MEMORY:
        gpus = asked.get("gpu", 0)
        if spec.auto_vram and spec.short_of_memory == 0:
            # The profile of its type learns from this end.
            return
        if gpus >= WHOLE and "vram" not in asked and not spec.auto_vram:
            return
        had = max(held.get("vram", {}).values(), default=0)
        if had and spec.short_of_memory == 0 and gpus <= WHOLE:
            yield _with(asked, vram=_half_more(had))
        whole = -(-max(gpus, 1) // WHOLE) * WHOLE
        yield _with(asked, gpu=whole, vram=0)
    elif "ram" in asked:
        yield _with(asked, ram=_half_more(asked["ram"]))


def _half_more(amount: int) -> int:
    return -(-amount * 3 // 2)


def _with(asked: dict[str, int], **other: int) -> Request:
    amounts = {**asked, **other}
    return tuple(sorted((kind, one) for kind, one in amounts.items() if one))
