"""Faults of GPUs, from the first report until they are over.

A GPU with a fault takes no job. The fault is over when a check of the worker finds that
the GPU works and somebody has acknowledged the fault: a person with `grass resume`, or
the rule `gpu.acknowledge_after`. A fault that passes, where only an answer was missing,
is over as soon as the GPU works.

Faults are stored with the worker, by the GPU's uuid, so none is forgotten by a restart.
A GPU that the worker does not list any more stays a unit until its fault is over or it
is removed, under another name if another GPU has got its own.
"""

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from grass.broker.core.state import SCHEDULER, State
from grass.broker.core.workers.worker_memory import GPU_KINDS, UnitNotes
from grass.errors import Refused
from grass.link.messages import Withheld
from grass.model.journal import EventKind
from grass.model.times import moment
from grass.model.worker import FoundUnits, GpuFault, GpuNotice, Unit, Worker

NOTED_US = 60 * 1_000_000
"""Faults of a unit are noted at most this often in the journal."""
MISSING = "the worker does not find it any more"
MAX_MISSING = 64
"""How many GPUs are kept that a worker does not list; a bad worker may invent any."""


def with_faulty(worker: Worker, found: FoundUnits) -> FoundUnits:
    """Return what a worker lists, and the GPUs with a fault that it does not."""
    names = {_key(name, unit): name for name, unit in found.get("gpu", {}).items()}
    merged = {kind: dict(units) for kind, units in found.items()}
    missing = [key for key in worker.gpu_faults if key not in names]
    dropped = set(missing[:-MAX_MISSING])
    worker.gpu_faults = {
        key: fault for key, fault in worker.gpu_faults.items() if key not in dropped
    }
    for key, fault in worker.gpu_faults.items():
        fault.listed = key in names
        if fault.listed:
            fault.unit = names[key]
            continue
        if fault.works_since is not None:
            fault.works_since, fault.reason, fault.passes = None, MISSING, False
        _keep(worker, fault, merged)
    return merged


def _keep(worker: Worker, fault: GpuFault, merged: FoundUnits) -> None:
    """Add a GPU that is not listed, under its own name or the next free number."""
    before = {kind: worker.found.get(kind, {}).get(fault.unit) for kind in GPU_KINDS}
    taken = merged.get("gpu", {})
    numbers = chain([fault.unit], map(str, range(len(taken) + 1)))
    fault.unit = next(name for name in numbers if name not in taken)
    for kind, unit in before.items():
        if unit is not None:
            merged.setdefault(kind, {})[fault.unit] = _without_index(unit)


def _without_index(unit: Unit) -> Unit:
    # CUDA counts only what it can use, so its number is another GPU's now.
    details = {name: one for name, one in unit.details.items() if name != "index"}
    return replace(unit, details=details)


def reported(state: State, worker: Worker, message: Withheld) -> None:
    """Note which GPUs have a fault, as a worker that has looked at them reports."""
    gpus = worker.found.get("gpu", {})
    for unit, reason in message.faults.items():
        if unit in gpus:
            _fails(state, worker, unit, reason, passes=unit in message.passing)
    for fault in list(worker.gpu_faults.values()):
        works = fault.works_since is not None or fault.unit in message.faults
        if fault.listed and not works:
            _works(state, worker, fault)


def acknowledge(state: State, worker: Worker, unit: str, actor: str) -> GpuFault | None:
    """Note that somebody knows of a unit's fault, if it has one; return the fault."""
    fault = of_unit(worker, unit)
    if fault is not None and fault.needs_acknowledgement:
        fault.acknowledged_by = actor
        _note(state, worker, fault, "gpu-acknowledged", actor)
        if fault.works_since is not None:
            _end(worker, fault)
    return fault


def acknowledge_due(state: State) -> None:
    """Acknowledge the faults of GPUs that have worked for long enough."""
    for worker, fault, at in list(_due(state)):
        if at <= state.now_us:
            acknowledge(state, worker, fault.unit, SCHEDULER)
            publish(state, worker)


def next_time(state: State) -> int | None:
    """Return when the next fault is to be acknowledged by the rule."""
    return min((at for _, _, at in _due(state)), default=None)


def _due(state: State) -> Iterator[tuple[Worker, GpuFault, int]]:
    after_s = state.daemon.acknowledge_s
    if after_s is None:
        return
    for worker in state.workers.values():
        for fault in worker.gpu_faults.values():
            if fault.works_since is not None:
                yield worker, fault, fault.works_since + int(after_s * 1e6)


def publish(state: State, worker: Worker) -> None:
    """Have the scheduler offer no unit with a fault, and all others again."""
    notes = state.unit_notes.setdefault(worker.id, UnitNotes())
    faulty = frozenset(fault.unit for fault in worker.gpu_faults.values())
    for unit in notes.faulty | faulty:
        for kind in GPU_KINDS:
            closed = unit in faulty or unit in worker.drained.get(kind, ())
            state.scheduler.drain(worker.id, kind, unit, closed)
    notes.faulty = faulty


def remove(state: State, worker: Worker, unit: str) -> bool:
    """Remove a GPU with a fault that is not there any more; False: it is no such."""
    fault = of_unit(worker, unit)
    if fault is None:
        return False
    if fault.listed and worker.connected:
        raise Refused(
            f"gpu:{unit} is still listed by its worker",
            f"take it out, then `grass restart` on {worker.name}; its jobs run on",
        )
    _end(worker, fault)
    for kind in GPU_KINDS:
        worker.found.get(kind, {}).pop(unit, None)
    return True


def of_unit(worker: Worker, unit: str) -> GpuFault | None:
    """Return the fault of a unit, if it has one."""
    faults = worker.gpu_faults.values()
    return next((fault for fault in faults if fault.unit == unit), None)


def sentence(worker: Worker, fault: GpuFault) -> str:
    """Write why a GPU takes no job, and since when."""
    text = f"{fault.reason}, since {moment(fault.since)}"
    if fault.works_since is None:
        return f"{text} (acknowledged)" if fault.acknowledged_by else text
    where = "" if worker.address is None else f" --worker {worker.name}"
    works = f"it works since {moment(fault.works_since)}"
    return f"{text}; {works}, and `grass resume gpu:{fault.unit}{where}` uses it again"


def _fails(
    state: State, worker: Worker, unit: str, reason: str, *, passes: bool
) -> None:
    fault = of_unit(worker, unit)
    if fault is None:
        fault = GpuFault(unit, reason, state.now_us, passes)
        key = _key(unit, worker.found["gpu"][unit])
        worker.gpu_faults = worker.gpu_faults | {key: fault}
    elif fault.works_since is None and fault.reason == reason:
        return
    elif fault.passes or not passes:
        # Of a lost GPU it is no news that it does not answer either.
        fault.reason, fault.passes, fault.acknowledged_by = reason, passes, ""
    if fault.works_since is not None:
        fault.since, fault.works_since = state.now_us, None
    noted = state.unit_notes.setdefault(worker.id, UnitNotes()).noted
    last = noted.get(unit)
    fault.noted = last is None or not 0 <= state.now_us - last < NOTED_US
    if fault.noted:
        noted[unit] = state.now_us
        _note(state, worker, fault, "gpu-failed")
    state.batch.changes.workers[worker.id] = worker


def _works(state: State, worker: Worker, fault: GpuFault) -> None:
    fault.works_since = state.now_us
    if fault.noted:
        _note(state, worker, fault, "gpu-works")
    if not fault.needs_acknowledgement:
        _end(worker, fault)
    state.batch.changes.workers[worker.id] = worker


def _end(worker: Worker, fault: GpuFault) -> None:
    worker.gpu_faults = {
        key: one for key, one in worker.gpu_faults.items() if one is not fault
    }


def _note(
    state: State,
    worker: Worker,
    fault: GpuFault,
    event: EventKind,
    actor: str = SCHEDULER,
) -> None:
    state.batch.changes.workers[worker.id] = worker
    unit = f"gpu:{fault.unit}"
    facts = {"name": worker.name, "unit": unit, "reason": fault.reason}
    state.note_by(actor, event, None, worker=worker.id, **facts)
    if event != "gpu-acknowledged":
        notice = GpuNotice(event, worker.name, unit, fault.reason, state.now_us)
        state.batch.gpu_notices.append(notice)


def _key(name: str, unit: Unit) -> str:
    return str(unit.details.get("uuid", name))
