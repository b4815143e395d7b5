"""What the caller of an enqueue is told besides the ids: why its jobs may not run.

Each hint is one line; nothing of it changes what happens to the jobs.
"""

from collections.abc import Iterable, Iterator

from grass.broker.core.jobs import enforcing
from grass.broker.core.jobs.bulk_enqueue import Prepared
from grass.broker.core.state import State
from grass.model.jobs.dependencies import HAS_ENDED, VERBS
from grass.model.jobs.spec import Spec, least_request
from grass.model.queue import Queue


def hints(state: State, prepared: Iterable[Prepared]) -> str:
    """Return what the caller should know of new jobs, a line for each thing."""
    specs = list(prepared)
    found: dict[str, None] = {}
    for one in specs:
        queue = state.queues[one.queue]
        found.update(dict.fromkeys(_of_dependencies(one)))
        found.update(dict.fromkeys(_of_queue(state, queue, one.spec)))
        found.update(dict.fromkeys(enforcing.hints(state, queue, one.spec)))
    found.update(dict.fromkeys(_of_gpus(state, specs)))
    return "\n".join(found)


def _of_dependencies(prepared: Prepared) -> Iterator[str]:
    if prepared.unmet is not None:
        one, end = prepared.unmet
        yield (
            f"job {one.first} {HAS_ENDED[end]} already, so what waits for it to"
            f" {VERBS[one.need]} is cancelled"
            f" (`grass rerun {one.first} --with-dependents` brings it back)"
        )


def _of_queue(state: State, queue: Queue, spec: Spec) -> Iterator[str]:
    if state.paused:
        yield "everything is paused: `grass resume` lets jobs start"
    elif queue.paused:
        why = f" ({queue.paused_reason})" if queue.paused_reason else ""
        paused = f"queue `{queue.name}` is paused{why}"
        yield f"{paused}: `grass resume {queue.name}` lets its jobs start"
    if not _has_worker(state, queue, spec):
        yield "no worker that may run it is connected: it waits for one"


def _has_worker(state: State, queue: Queue, spec: Spec) -> bool:
    """Tell whether a connected worker may run jobs of a spec."""
    return any(
        worker.connected and enforcing.may_run(worker, queue, spec)
        for worker in state.workers.values()
    )


def _of_gpus(state: State, prepared: Iterable[Prepared]) -> Iterator[str]:
    has_gpus = any("gpu" in worker.found for worker in state.workers.values())
    kinds = {kind for one in prepared for kind, _ in least_request(one.spec)}
    if has_gpus and not kinds & {"gpu", "vram"}:
        yield "this job sees no GPU; ask for one with -g 1"
