"""A worker's view of a queue: the rules for creating and changing it.

A queue has a command on all of its workers or on none, and a view has a directory only
with a command. A default request must fit on one of the workers.
"""

from collections.abc import Iterator

from msgspec import structs

from grass.broker.core.state import State
from grass.broker.core.workers import registry, units
from grass.errors import NeverFits, NotFound, Refused
from grass.model.amount_text import amount_texts
from grass.model.jobs.commands import check_size
from grass.model.jobs.job import DEFAULT_QUEUE
from grass.model.queue import Queue, View
from grass.model.resources import Capacity, Request
from grass.model.worker import Worker


def publish(state: State, queue: Queue) -> None:
    """Tell the scheduler all it needs to know of a queue."""
    state.scheduler.set_queue(
        queue.name,
        paused=queue.paused,
        max_running=queue.max_running,
        open_to_all=queue.name == DEFAULT_QUEUE,
    )
    for worker, view in queue.views.items():
        state.scheduler.set_view(queue.name, worker, view.capacity)


def here(state: State, queue: Queue, worker: str) -> View:
    """Return the view that a worker has of a queue."""
    if worker not in queue.views:
        on = ", ".join(registry.name_of(state, other) for other in queue.views)
        raise NotFound(
            f"this machine has no part in queue `{queue.name}`",
            f"it is on: {on}" if on else f"`grass create-queue {queue.name}` first",
        )
    return queue.views[worker]


def normalized(queue: str, asked: View) -> tuple[View, list[str]]:
    """Return a view as it will be stored, with a warning for what is left out."""
    if asked.prefix or asked.cwd is None:
        return asked, []
    said = f"queue `{queue}` has no command, so the directory {asked.cwd} is left out"
    return structs.replace(asked, cwd=None), [said]


def check(state: State, queue: Queue, worker: Worker) -> Iterator[str]:
    """Refuse what a worker's view cannot be, and say what it does not look like."""
    view = queue.views[worker.id]
    check_size(view.prefix, view.env)
    _check_agrees(state, queue, worker)
    others = units.known_capacity(state, worker, without=queue.name)
    units.check_view(others, view.capacity, queue.name)
    known = units.known_capacity(state, worker)
    warning = units.declared_warning(known, view.capacity, worker.found)
    if warning:
        yield warning


def _check_agrees(state: State, queue: Queue, worker: Worker) -> None:
    """Refuse a view that would make another queue of it for other workers' jobs."""
    wanted = bool(queue.views[worker.id].prefix)
    differing = [
        one for one, view in queue.views.items() if bool(view.prefix) != wanted
    ]
    if differing:
        has = "no" if wanted else "a"
        on = ", ".join(registry.name_of(state, one) for one in differing)
        raise Refused(
            f"queue `{queue.name}` has {has} command on {on}",
            "a queue has one everywhere or nowhere; choose another name",
        )


def check_default(state: State, queue: Queue) -> None:
    """Refuse a default request that no job of the queue could ever have met."""
    if queue.default_request is None:
        return
    short = [
        _shortage(capacity, queue.default_request)
        for capacity in _capacities(state, queue)
    ]
    missing = [one for one in short if one is not None]
    if missing and len(missing) == len(short):
        has, kind, asked = max(missing)
        wanted, most = amount_texts(kind, asked, has)
        raise NeverFits(f"--default-require asks {kind} {wanted}, the queue has {most}")


def _capacities(state: State, queue: Queue) -> Iterator[Capacity]:
    """Return what a job of a queue may use, on each worker that it may run on."""
    for worker in state.workers.values():
        if queue.name == DEFAULT_QUEUE or worker.id in queue.views:
            view = queue.views.get(worker.id, View({}))
            known = units.known_capacity(state, worker, without=queue.name)
            yield known | view.capacity


def _shortage(capacity: Capacity, request: Request) -> tuple[int, str, int] | None:
    """Return the first kind that does not suffice: its amount, name and request."""
    for kind, asked in request:
        has = sum(capacity.get(kind, {}).values())
        if asked > has:
            return has, kind, asked
    return None
