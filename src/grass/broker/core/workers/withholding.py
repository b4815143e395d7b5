"""What workers say of their GPUs: memory that no job can have, and busy ones.

It is kept in memory only, and comes again with every hello. Faults come in the same
message and last: `gpu_faults` keeps them.
"""

from grass.broker.core.state import State
from grass.broker.core.workers import gpu_faults
from grass.broker.core.workers.worker_memory import UnitNotes
from grass.link.messages import Withheld
from grass.model.worker import Worker


def heard(state: State, worker: str, message: Withheld) -> None:
    """Offer no more, and no less, than a worker says that there is."""
    known = state.workers.get(worker)
    if known is not None and known.connected:
        set_to(state, known, message)
        publish(state, known)


def set_to(state: State, worker: Worker, message: Withheld | None) -> None:
    """Note what a worker says; `publish` applies it. None: it has not looked yet."""
    before = state.unit_notes.get(worker.id, UnitNotes())
    told = message or Withheld()
    state.unit_notes[worker.id] = UnitNotes(
        told.units,
        told.strangers,
        told.processes,
        noted=before.noted,
        faulty=before.faulty,
        busy=told.busy,
    )
    if message is not None:
        gpu_faults.reported(state, worker, message)


def publish(state: State, worker: Worker) -> None:
    """Tell the scheduler what is withheld, and which units are faulty or busy."""
    gpu_faults.publish(state, worker)
    notes = state.unit_notes[worker.id]
    state.scheduler.withhold(worker.id, notes.withheld, notes.processes)
    state.scheduler.set_busy(worker.id, notes.busy)


def gone(state: State, worker: Worker) -> None:
    """Drop what a worker said that is not connected any more; faults stay."""
    notes = state.unit_notes.get(worker.id, UnitNotes())
    state.unit_notes[worker.id] = UnitNotes(noted=notes.noted, faulty=notes.faulty)


def forget(state: State, worker: str) -> None:
    """Drop what a worker said that is gone for good."""
    state.unit_notes.pop(worker, None)
