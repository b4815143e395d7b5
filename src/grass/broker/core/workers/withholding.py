"""What workers say of their GPUs: memory that no job can have, faults, and busy ones.

It is kept in memory only, and comes again with every hello. A unit with a fault is
drained until the worker says that it works again; what a user drained stays drained.
"""

from contextlib import suppress

from grass.broker.core.state import State
from grass.broker.core.workers.worker_memory import GPU_KINDS, UnitNotes
from grass.errors import NotFound
from grass.link.messages import Withheld
from grass.model.worker import Worker

NOTED_US = 60 * 1_000_000
"""Faults of a unit are noted at most this often in the journal."""


def heard(state: State, worker: str, message: Withheld) -> None:
    """Offer no more, and no less, than a worker says that there is."""
    known = state.workers.get(worker)
    if known is not None and known.connected:
        set_to(state, known, message)
        publish(state, known)


def set_to(state: State, worker: Worker, message: Withheld | None) -> None:
    """Note what a worker says; `publish` applies it."""
    before = state.unit_notes.get(worker.id, UnitNotes())
    told = message or Withheld()
    notes = UnitNotes(
        told.units,
        told.strangers,
        told.faults,
        told.processes,
        noted=before.noted,
        busy=told.busy,
    )
    state.unit_notes[worker.id] = notes
    for unit in before.faults.keys() - notes.faults.keys():
        _works_again(state, worker, unit, notes)
    for unit in notes.faults.keys() - before.faults.keys():
        _fails(state, worker, unit, notes)


def publish(state: State, worker: Worker) -> None:
    """Tell the scheduler what is withheld, and which units are faulty or busy."""
    notes = state.unit_notes.get(worker.id)
    if notes is None:
        return
    for unit in notes.faults:
        _drain(state, worker, unit, on=True)
    state.scheduler.withhold(worker.id, notes.withheld, notes.processes)
    state.scheduler.set_busy(worker.id, notes.busy)


def gone(state: State, worker: Worker) -> None:
    """Drop what a worker said that is not connected any more."""
    notes = state.unit_notes.get(worker.id)
    if notes is not None:
        for unit in notes.faults:
            _drain(state, worker, unit, on=False)
        state.unit_notes[worker.id] = UnitNotes(noted=notes.noted)


def forget(state: State, worker: str) -> None:
    """Drop what a worker said that is gone for good."""
    state.unit_notes.pop(worker, None)


def _fails(state: State, worker: Worker, unit: str, notes: UnitNotes) -> None:
    last = notes.noted.get(unit)
    if last is not None and 0 <= state.now_us - last < NOTED_US:
        return
    notes.noted[unit] = state.now_us
    named, why = f"gpu:{unit}", notes.faults[unit]
    state.note("drained", worker=worker.id, name=worker.name, unit=named, reason=why)


def _works_again(state: State, worker: Worker, unit: str, notes: UnitNotes) -> None:
    _drain(state, worker, unit, on=False)
    if unit in notes.noted:
        named = f"gpu:{unit}"
        state.note("undrained", worker=worker.id, name=worker.name, unit=named)


def _drain(state: State, worker: Worker, unit: str, *, on: bool) -> None:
    for kind in GPU_KINDS:
        if on or unit not in worker.drained.get(kind, ()):
            # The scheduler may not know the worker any more.
            with suppress(NotFound):
                state.scheduler.drain(worker.id, kind, unit, on)
