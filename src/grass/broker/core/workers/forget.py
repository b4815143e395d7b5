"""Taking a worker out that will not come back.

It is the user who knows that a machine is gone for good: nothing is given up by time
alone, unless the worker itself promised to end what it runs. That it is out of reach
is no proof: a job that is to run again is held until a user releases it.
"""

from grass.broker.core.access import tokens
from grass.broker.core.attempts import avoided, tracking
from grass.broker.core.attempts.outcomes import FORGOTTEN
from grass.broker.core.calls import Done, ForgetWorker
from grass.broker.core.jobs import queues, removals
from grass.broker.core.state import State
from grass.broker.core.workers import leases, registry, withholding
from grass.errors import Refused
from grass.model.worker import Worker


def forget(state: State, call: ForgetWorker) -> Done:
    """Lose what the worker ran, and drop it with its views and its token."""
    worker = registry.find(state, call.name)
    if worker.connected:
        raise _in_use(worker)
    lost = _lose_attempts(state, worker)
    queues.drop_views(state, worker)
    tokens.forget_worker(state, worker.id)
    leases.back(state, worker.id)
    removals.drop(state, worker.id)
    withholding.forget(state, worker.id)
    avoided.try_again(state, worker.id)
    _drop(state, worker)
    known = {"worker": worker.id, "name": worker.name}
    state.note_by(call.actor, "worker-forgotten", None, lost=len(lost), **known)
    return Done(jobs=lost)


def _in_use(worker: Worker) -> Refused:
    if worker.address is None:
        return Refused(
            f"worker `{worker.name}` is part of the broker's own daemon",
            "`grass restart --no-worker` there runs the broker without it, and then it"
            " can be forgotten",
        )
    return Refused(
        f"worker `{worker.name}` is connected",
        f"stop its daemon first, or `grass drain {worker.name}`",
    )


def _lose_attempts(state: State, worker: Worker) -> list[int]:
    held = state.attempts_on(worker.id)
    for attempt in held:
        job = state.jobs[attempt.job]
        tracking.lose(state, job, attempt, FORGOTTEN)
    for foreign in state.foreign.of(worker.id):
        state.foreign.release(worker.id, foreign.name)
    state.foreign.reported.discard(worker.id)
    return [attempt.job for attempt in held]


def _drop(state: State, worker: Worker) -> None:
    del state.workers[worker.id]
    state.batch.changes.workers.pop(worker.id, None)
    state.batch.changes.removed_workers.append(worker.id)
    state.scheduler.forget_worker(worker.id)
