"""Which units a worker has: found, added, or declared by its queues.

A queue may declare a unit that nothing found (a printer, a pretend GPU); it lives as
long as a queue declares it. For a known unit a queue's smaller amount is that queue's
own limit and a larger one an error, so a device is never sold twice.
"""

from collections.abc import Iterator

from grass.broker.core.state import State
from grass.errors import UsageError
from grass.link.messages import Units
from grass.model.amounts import decimal_text
from grass.model.resources import Capacity
from grass.model.worker import Found, Worker

FOUND, ADDED, DECLARED = "found", "added", "declared"


def known_capacity(state: State, worker: Worker, without: str = "") -> Capacity:
    """Give every unit of a worker, leaving out what only one queue declares."""
    known: Capacity = {kind: dict(units) for kind, units in _owned(worker)}
    left_out = state.queues.get(without)
    view = None if left_out is None else left_out.views.get(worker.id)
    named = state.declared.largest(worker.id, {} if view is None else view.capacity)
    for kind, units in named:
        have = known.setdefault(kind, {})
        for name, amount in units.items():
            if _origin(worker, kind, name) == DECLARED:
                have[name] = amount
    return {kind: units for kind, units in known.items() if units}


def origins(worker: Worker, capacity: Capacity) -> dict[str, dict[str, str]]:
    """Tell of each unit whether it was found, added or declared."""
    return {
        kind: {name: _origin(worker, kind, name) for name in units}
        for kind, units in capacity.items()
    }


def check_view(known: Capacity, capacity: Capacity, queue: str) -> None:
    """Raise if a view wants more of a known unit than there is."""
    for kind, units in capacity.items():
        for name, amount in units.items():
            has = known.get(kind, {}).get(name)
            if has is not None and amount > has:
                raise UsageError(
                    f"queue `{queue}` wants {decimal_text(amount)} of {kind} {name},"
                    f" which has {decimal_text(has)}",
                    f"give at most {decimal_text(has)}, or name another unit",
                )


def declared_warning(known: Capacity, capacity: Capacity, found: Found) -> str:
    """Say in one line which units a view declares that nobody knew; or nothing."""
    new = {
        kind: sorted(set(units) - set(known.get(kind, {})), key=len)
        for kind, units in capacity.items()
    }
    parts = [
        f"{len(names)} {kind} ({len(found.get(kind, {}))} found)"
        for kind, names in new.items()
        if names and kind in ("cpu", "gpu", "ram", "vram")
    ]
    return f"declared, not found: {', '.join(parts)}" if parts else ""


def forget_drained(state: State, worker: Worker) -> None:
    """Drop the marks of units that are not there any more."""
    known = known_capacity(state, worker)
    left = {
        kind: [name for name in names if name in known.get(kind, {})]
        for kind, names in worker.drained.items()
    }
    for kind, names in worker.drained.items():
        for name in set(names) - set(left[kind]):
            state.scheduler.drain(worker.id, kind, name, False)
    worker.drained = {kind: names for kind, names in left.items() if names}
    state.batch.changes.workers[worker.id] = worker


def publish(state: State, worker: Worker) -> None:
    """Tell the scheduler what a worker has, and while it is here the worker too."""
    capacity, labels = known_capacity(state, worker), frozenset(worker.labels)
    state.scheduler.remember_worker(worker.id, capacity, labels)
    if worker.connected and not worker.draining and not worker.unable:
        state.scheduler.add_worker(worker.id, capacity, labels)
    else:
        state.scheduler.remove_worker(worker.id)
    for kind, names in worker.drained.items():
        for name in names:
            state.scheduler.drain(worker.id, kind, name, True)
    if worker.connected:
        state.batch.send(worker.id, Units(capacity))


def _owned(worker: Worker) -> Iterator[tuple[str, dict[str, int]]]:
    capacity = worker.found_capacity()
    for kind, units in worker.added.items():
        capacity.setdefault(kind, {}).update(units)
    return iter(capacity.items())


def _origin(worker: Worker, kind: str, name: str) -> str:
    if name in worker.found.get(kind, {}):
        return FOUND
    return ADDED if name in worker.added.get(kind, {}) else DECLARED
