"""Homes that were copied: several machines that say they are one worker.

While one of them is connected the others are refused (`links`). Where the first is only
cut off, a copy may come in its place. What the first was running lives on there, so
none of it may be lost, given back or run again: it is set apart, unreachable, until the
home that has it is back, or the worker is forgotten.
"""

from grass.broker.state import State
from grass.link.messages import Hello
from grass.model.job import Attempt
from grass.model.worker import Worker


def is_apart(state: State, attempt: Attempt) -> bool:
    """Tell whether another copy has an attempt than the one that called last."""
    worker = state.workers.get(attempt.worker)
    return worker is not None and worker.is_apart(state.attempt_id(attempt))


def is_other(worker: Worker, message: Hello) -> bool:
    """Tell whether another home says hello than before; older ones do not say."""
    return bool(message.instance) and worker.instance not in ("", message.instance)


def sort_out(state: State, worker: Worker, message: Hello) -> None:
    """Set apart what other homes have, and take back what this one has."""
    other = is_other(worker, message)
    before, worker.instance = worker.instance, message.instance or worker.instance
    if not other and not worker.apart:
        return
    held = [one for one in state.attempts.values() if one.worker == worker.id]
    live = {state.attempt_id(one): None for one in held}
    told = {one.attempt for one in message.running}
    told.update(one.attempt for one in message.exited)
    told.update(worker.apart.get(worker.instance, ()))
    apart = {
        instance: [name for name in names if name in live and name not in told]
        for instance, names in worker.apart.items()
        if instance != worker.instance
    }
    if other:
        known = told.union(*apart.values())
        apart.setdefault(before, []).extend(one for one in live if one not in known)
    worker.apart = {instance: names for instance, names in apart.items() if names}
