"""Which units a worker has, and the calls that add, remove and drain them.

Units are found, added, or declared by a queue. A queue may declare a unit that nothing
found (a printer, a pretend GPU); it exists as long as a queue declares it. For a known
unit a smaller amount is the queue's own limit and a larger one an error, so a device is
never allocated twice. On a unit that is removed or drained nothing new starts, and the
jobs that hold it finish. `gpu` and `vram` of one name are one device and are drained
and removed together.
"""

from collections.abc import Iterator
from contextlib import suppress

from grass.broker.core.attempts import avoided, prefetch
from grass.broker.core.calls import (
    AddUnits,
    Done,
    RemoveUnit,
    SetUnitDrained,
    SetWorkerDrained,
)
from grass.broker.core.state import State
from grass.broker.core.workers import gpu_faults, registry, withholding
from grass.broker.core.workers.worker_memory import GPU_KINDS
from grass.errors import NotFound, Refused, UsageError
from grass.link.messages import KnownUnits
from grass.model.amount_text import amount_texts
from grass.model.gpu_details import found_gpus
from grass.model.journal import EventKind
from grass.model.resources import Capacity
from grass.model.worker import FoundUnits, GpuFault, Worker

_TOGETHER = dict.fromkeys(GPU_KINDS, GPU_KINDS)
FOUND, ADDED, DECLARED = "found", "added", "declared"


def known_capacity(state: State, worker: Worker, without: str = "") -> Capacity:
    """Return every unit of a worker, except those that only one queue declares."""
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
                wanted, most = amount_texts(kind, amount, has)
                raise UsageError(
                    f"queue `{queue}` wants {wanted} of {kind} {name},"
                    f" which has {most}",
                    f"give at most {most}, or name another unit",
                )


def declared_warning(known: Capacity, capacity: Capacity, found: FoundUnits) -> str:
    """Describe in one line which units a view declares that were not known, if any."""
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
    capacity, labels = known_capacity(state, worker), worker.all_labels
    gpus = found_gpus(worker.found)
    state.scheduler.remember_worker(worker.id, capacity, labels, gpus)
    if worker.connected and not worker.draining and not worker.unable:
        state.scheduler.add_worker(worker.id, capacity, labels, gpus)
    else:
        state.scheduler.remove_worker(worker.id)
    for kind, names in worker.drained.items():
        for name in names:
            state.scheduler.drain(worker.id, kind, name, True)
    withholding.publish(state, worker)
    if worker.connected:
        state.batch.send(worker.id, KnownUnits(capacity))


def add(state: State, call: AddUnits) -> Done:
    """Add units to a worker; a unit that it has already is refused."""
    worker = _worker(state, call.worker)
    known = known_capacity(state, worker)
    for kind, new in call.capacity.items():
        for unit in new:
            if unit in known.get(kind, {}):
                raise Refused(f"{kind} {unit} is there already", "see `grass capacity`")
    for kind, new in call.capacity.items():
        worker.added.setdefault(kind, {}).update(new)
    return _changed(state, worker, call.actor, "units-added", {"units": call.capacity})


def remove(state: State, call: RemoveUnit) -> Done:
    """Remove a unit that was added, or a GPU that has a fault and is gone.

    A job that holds it keeps it to its end.
    """
    worker, name = _worker(state, call.worker), f"{call.kind}:{call.unit}"
    _check_known(state, worker, call.kind, call.unit)
    faulty = call.kind in GPU_KINDS and gpu_faults.remove(state, worker, call.unit)
    if not faulty and call.unit not in worker.added.get(call.kind, {}):
        found = call.unit in worker.found.get(call.kind, {})
        raise Refused(
            f"{name} was {'found on the machine' if found else 'declared by a queue'}",
            f"`grass drain {name}` starts nothing more on it",
        )
    for kind in _TOGETHER.get(call.kind, (call.kind,)):
        if call.unit in worker.added.get(kind, {}):
            _take_away(state, worker, kind, call.unit)
    done = _changed(state, worker, call.actor, "unit-removed", {"unit": name})
    if call.unit in known_capacity(state, worker).get(call.kind, {}):
        done.warnings.append(f"{name} stays: a queue declares it")
    return done


def set_drained(state: State, call: SetUnitDrained) -> Done:
    """Start nothing new on a unit, or again."""
    worker = _worker(state, call.worker)
    known = known_capacity(state, worker)
    _check_known(state, worker, call.kind, call.unit)
    before = call.unit in worker.drained.get(call.kind, [])
    for kind in _TOGETHER.get(call.kind, (call.kind,)):
        if call.unit in known.get(kind, {}):
            _set_drained(state, worker, kind, call.unit, drained=call.drained)
    unit = f"{call.kind}:{call.unit}"
    if not call.drained and call.kind in GPU_KINDS:
        fault = gpu_faults.of_unit(worker, call.unit)
        if fault is not None:
            return _acknowledged(state, worker, call, fault, before)
    event: EventKind = "drained" if call.drained else "undrained"
    done = _changed(state, worker, call.actor, event, {"unit": unit})
    done.changed = before != call.drained
    return done


def _acknowledged(
    state: State, worker: Worker, call: SetUnitDrained, fault: GpuFault, before: bool
) -> Done:
    """Resume a unit with a fault, which stays out of use until it works."""
    changed = before or fault.needs_acknowledgement
    gpu_faults.acknowledge(state, worker, call.unit, call.actor)
    done = Done(changed=changed)
    if before:
        facts: dict[str, object] = {"unit": f"{call.kind}:{call.unit}"}
        done = _changed(state, worker, call.actor, "undrained", facts)
    publish(state, worker)
    state.batch.changes.workers[worker.id] = worker
    if fault.works_since is None:
        done.warnings.append(
            f"gpu:{call.unit} still has a fault: {fault.reason}; it is used again when"
            " a check finds that it works"
        )
    return done


def set_worker_drained(state: State, call: SetWorkerDrained) -> Done:
    """Start nothing new on a whole worker, or again."""
    worker = registry.find(state, call.worker)
    before, worker.draining = worker.draining, call.drained
    worker.draining_reason = ""
    state.returns.in_a_row.pop(worker.id, None)
    if call.drained:
        avoided.no_host_now(state, worker.id)
        held = (one.job for one in state.attempts_on(worker.id))
        prefetch.recall(state, [job for job in held if job in state.prefetched.sent])
    event: EventKind = "drained" if call.drained else "undrained"
    retried = not call.drained and avoided.try_again(state, worker.id)
    done = _changed(state, worker, call.actor, event, {"name": worker.name})
    done.changed = before != call.drained or retried
    return done


def _owned(worker: Worker) -> Iterator[tuple[str, dict[str, int]]]:
    capacity = worker.found_capacity()
    for kind, units in worker.added.items():
        capacity.setdefault(kind, {}).update(units)
    return iter(capacity.items())


def _origin(worker: Worker, kind: str, name: str) -> str:
    if name in worker.found.get(kind, {}):
        return FOUND
    return ADDED if name in worker.added.get(kind, {}) else DECLARED


def _changed(
    state: State, worker: Worker, actor: str, event: EventKind, facts: dict[str, object]
) -> Done:
    state.batch.changes.workers[worker.id] = worker
    publish(state, worker)
    state.note_by(actor, event, None, worker=worker.id, **facts)
    return Done()


def _take_away(state: State, worker: Worker, kind: str, unit: str) -> None:
    del worker.added[kind][unit]
    if not worker.added[kind]:
        del worker.added[kind]
    _set_drained(state, worker, kind, unit, drained=False)


def _set_drained(
    state: State, worker: Worker, kind: str, unit: str, *, drained: bool
) -> None:
    # The scheduler may not know a worker that is not connected.
    with suppress(NotFound):
        state.scheduler.drain(worker.id, kind, unit, drained)
    left = [name for name in worker.drained.get(kind, []) if name != unit]
    if drained:
        left.append(unit)
    worker.drained[kind] = left
    if not left:
        del worker.drained[kind]


def _check_known(state: State, worker: Worker, kind: str, unit: str) -> None:
    if unit not in known_capacity(state, worker).get(kind, {}):
        raise NotFound(f"there is no {kind} {unit}", "see `grass capacity show`")


def _worker(state: State, number: str) -> Worker:
    worker = state.workers.get(number)
    if worker is None:
        raise NotFound(
            "this daemon runs no jobs itself, so it has no units",
            "--worker NAME names one of `grass workers`",
        )
    return worker
