"""Whether what a job wants to be enforced can be, on the workers that may run it."""

from collections.abc import Iterator

from grass.broker.core.state import State
from grass.errors import NeverFits
from grass.model.jobs.spec import Spec, least_request
from grass.model.queue import Queue
from grass.model.usage.enforcement import GPU_MEMORY, MPS, can_enforce, wanted
from grass.model.worker import Worker


def check(state: State, queue: Queue, spec: Spec) -> None:
    """Refuse a job of whose request no known worker can enforce anything."""
    asked, missing = _asked(spec), _missing(state, queue, spec)
    if asked and missing == asked:
        raise NeverFits(
            f"no worker that may run it can enforce its {' and '.join(asked)}",
            "`grass doctor` says why; leave out --enforce to run it all the same",
        )


def hints(state: State, queue: Queue, spec: Spec) -> Iterator[str]:
    """Say what of a job is not enforced anywhere."""
    missing = _missing(state, queue, spec)
    is_own = spec.enforce is not None and queue.enforce is None
    if is_own and spec.guest is None and not _asked(spec):
        yield (
            "there is nothing to enforce: it asks for no GPU, memory or cores (-m 8G,"
            " -c 4)"
        )
    if missing:
        yield (
            f"its {' and '.join(missing)} cannot be enforced by the workers that may"
            " run it: `grass doctor` says why"
        )


def _asked(spec: Spec) -> list[str]:
    is_guest = spec.guest is not None
    if spec.enforce is None or is_guest:
        return []
    return wanted(least_request(spec), spec.threads)


def _missing(state: State, queue: Queue, spec: Spec) -> list[str]:
    asked = _asked(spec)
    workers = [one for one in state.workers.values() if may_run(one, queue, spec)]
    if not workers:
        # None has come yet: nothing is known.
        return []
    return [
        what
        for what in asked
        if not any(can_enforce(what, _features(one)) for one in workers)
    ]


def _features(worker: Worker) -> tuple[str, ...]:
    """Return what a worker enforces; GPUs that were only declared are not watched."""
    if worker.found.get("vram"):
        return worker.enforces
    return tuple(one for one in worker.enforces if one not in (MPS, GPU_MEMORY))


def may_run(worker: Worker, queue: Queue, spec: Spec) -> bool:
    """Tell whether a worker may run jobs of a spec, be it connected or not."""
    return (
        (not queue.views or worker.id in queue.views)
        and spec.worker in (None, worker.id)
        and spec.all_labels <= worker.all_labels
    )
