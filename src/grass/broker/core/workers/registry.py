"""Names of workers, and whether one of them could ever run a job.

A worker is identified by its random id; users say its name. No two workers share one:
the second gets a number behind it, and so does one whose name reads as an id.
"""

import re
from collections.abc import Mapping

from grass.broker.core.state import State
from grass.errors import NeverFits, NotFound
from grass.model.jobs.spec import Spec, least_request
from grass.model.pools import PoolMode
from grass.model.queue import Queue
from grass.model.worker import Worker, is_worker_id

LONGEST_NAME = 64
MOST_SKEW_S = 60.0
_ODD = re.compile(r"[^A-Za-z0-9_.-]")


def find(state: State, named: str) -> Worker:
    """Return a worker by its name or its id.

    Names go first: a worker chooses its own id, and must not be taken for another.
    """
    for worker in state.workers.values():
        if worker.name == named:
            return worker
    if named in state.workers:
        return state.workers[named]
    known = ", ".join(sorted(worker.name for worker in state.workers.values()))
    raise NotFound(f"there is no worker `{named}`", f"workers: {known or 'none yet'}")


def name_of(state: State, worker: str) -> str:
    """Return the name of a worker, or its id where it was forgotten."""
    known = state.workers.get(worker)
    return known.name if known else worker


def note_machines(state: State, own: str, addresses: Mapping[str, str]) -> None:
    """Have workers that were part of other brokers' daemons be those of other machines.

    They were, while their brokers led. `addresses` has where each broker is, by the id
    of its worker.
    """
    for worker in state.workers.values():
        if worker.address is None and worker.id != own:
            worker.address = addresses.get(worker.id, "").rpartition(":")[0]


def name_for(state: State, worker: str, wanted: str) -> str:
    """Return the name a worker asks for, or the first free one like it."""
    wanted = _ODD.sub("-", wanted)[:LONGEST_NAME] or "worker"
    taken = {one.name for one in state.workers.values() if one.id != worker}
    if wanted not in taken and not is_worker_id(wanted):
        return wanted
    own = state.workers.get(worker)
    if own is not None and re.fullmatch(rf"{re.escape(wanted)}-\d+", own.name):
        return own.name
    number = 2
    while f"{wanted}-{number}" in taken:
        number += 1
    return f"{wanted}-{number}"


def check_fit(state: State, queue: Queue, spec: Spec) -> None:
    """Refuse a job that no known worker could ever run, be it here or away."""
    pinned = spec.worker
    if pinned is not None and queue.views and pinned not in queue.views:
        name = name_of(state, pinned)
        words = f"worker `{name}` has no part in queue `{queue.name}`"
        raise NeverFits(words, _hint(state, spec))
    problem = state.scheduler.never_fits(
        queue.name,
        spec.request,
        worker=pinned,
        labels=spec.all_labels,
        gpu_model=spec.gpu_model,
        learned="" if spec.auto_vram else None,
        time_s=spec.rounded_time_s,
    )
    if problem is not None:
        raise NeverFits(problem, _hint(state, spec))


def _hint(state: State, spec: Spec) -> str:
    """Say what to do about a request that can never be met."""
    if spec.pool is None:
        shown_by = "workers" if spec.all_labels else "show"
        return f"see `grass {shown_by}` for what there is"
    pool = state.pools.find(spec.pool)
    asks_memory = "vram" in dict(least_request(spec))
    if asks_memory and pool.gpus and pool.mode is PoolMode.SHARED:
        return (
            "ask for GPUs alone, `-g 1`, or add the pool with --mode auto: memory of"
            " GPUs is not known before a worker has come"
        )
    return "see `grass pool show` for what there is"


def note_clock(worker: Worker, wall_us: int, now_us: int) -> None:
    """Note what a worker's wall clock shows now; 0: it does not say.

    Nothing is decided by it. But people read times in what jobs write.
    """
    worker.skew_s = (wall_us - now_us) / 1e6 if wall_us else 0.0


def reported_skew_s(worker: Worker) -> float | None:
    """Return how far a worker's clock is ahead, if that is worth a warning."""
    return worker.skew_s if abs(worker.skew_s) > MOST_SKEW_S else None
