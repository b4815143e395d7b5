"""Units that come and go while jobs run: added, removed, drained.

A unit that is removed or drained takes nothing new; who holds it finishes. `gpu` and
`vram` of one name are one device and are drained and removed together.
"""

from contextlib import suppress

from grass.broker.core.attempts import prefetch
from grass.broker.core.calls import (
    AddUnits,
    Done,
    RemoveUnit,
    SetUnitDrained,
    SetWorkerDrained,
)
from grass.broker.core.state import State
from grass.broker.core.workers import registry, units
from grass.errors import NotFound, Refused
from grass.model.journal import Kind
from grass.model.worker import Worker

_TOGETHER = {"gpu": ("gpu", "vram"), "vram": ("gpu", "vram")}


def add(state: State, call: AddUnits) -> Done:
    """Give a worker more units; what is there already is not changed."""
    worker = _worker(state, call.worker)
    known = units.known_capacity(state, worker)
    for kind, new in call.capacity.items():
        for unit in new:
            if unit in known.get(kind, {}):
                raise Refused(f"{kind} {unit} is there already", "see `grass capacity`")
    for kind, new in call.capacity.items():
        worker.added.setdefault(kind, {}).update(new)
    return _changed(state, worker, call.actor, "units-added", {"units": call.capacity})


def remove(state: State, call: RemoveUnit) -> Done:
    """Take an added unit away; who holds it keeps it to its end."""
    worker, name = _worker(state, call.worker), f"{call.kind}:{call.unit}"
    _check_known(state, worker, call.kind, call.unit)
    if call.unit not in worker.added.get(call.kind, {}):
        found = call.unit in worker.found.get(call.kind, {})
        raise Refused(
            f"{name} was {'found on the machine' if found else 'declared by a queue'}",
            f"`grass drain {name}` starts nothing more on it",
        )
    for kind in _TOGETHER.get(call.kind, (call.kind,)):
        if call.unit in worker.added.get(kind, {}):
            _take_away(state, worker, kind, call.unit)
    done = _changed(state, worker, call.actor, "unit-removed", {"unit": name})
    if call.unit in units.known_capacity(state, worker).get(call.kind, {}):
        done.warnings.append(f"{name} stays: a queue declares it")
    return done


def set_drained(state: State, call: SetUnitDrained) -> Done:
    """Start nothing new on a unit, or again."""
    worker = _worker(state, call.worker)
    known = units.known_capacity(state, worker)
    _check_known(state, worker, call.kind, call.unit)
    before = call.unit in worker.drained.get(call.kind, [])
    for kind in _TOGETHER.get(call.kind, (call.kind,)):
        if call.unit in known.get(kind, {}):
            _set_drained(state, worker, kind, call.unit, drained=call.drained)
    event: Kind = "drained" if call.drained else "undrained"
    unit = f"{call.kind}:{call.unit}"
    done = _changed(state, worker, call.actor, event, {"unit": unit})
    done.changed = before != call.drained
    return done


def set_worker_drained(state: State, call: SetWorkerDrained) -> Done:
    """Start nothing new on a whole worker, or again."""
    worker = registry.find(state, call.worker)
    before, worker.draining = worker.draining, call.drained
    worker.draining_reason = ""
    state.returns.in_a_row.pop(worker.id, None)
    if call.drained:
        held = (one.job for one in state.attempts_on(worker.id))
        prefetch.recall(state, [job for job in held if job in state.prefetched.sent])
    event: Kind = "drained" if call.drained else "undrained"
    done = _changed(state, worker, call.actor, event, {"name": worker.name})
    done.changed = before != call.drained
    return done


def _changed(
    state: State, worker: Worker, actor: str, event: Kind, facts: dict[str, object]
) -> Done:
    state.batch.changes.workers[worker.id] = worker
    units.publish(state, worker)
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
    # The scheduler need not know a worker that is not here.
    with suppress(NotFound):
        state.scheduler.drain(worker.id, kind, unit, drained)
    left = [name for name in worker.drained.get(kind, []) if name != unit]
    if drained:
        left.append(unit)
    worker.drained[kind] = left
    if not left:
        del worker.drained[kind]


def _check_known(state: State, worker: Worker, kind: str, unit: str) -> None:
    if unit not in units.known_capacity(state, worker).get(kind, {}):
        raise NotFound(f"there is no {kind} {unit}", "see `grass capacity show`")


def _worker(state: State, number: str) -> Worker:
    worker = state.workers.get(number)
    if worker is None:
        raise NotFound(
            "this daemon runs no jobs itself, so it has no units",
            "--worker NAME names one of `grass workers`",
        )
    return worker
