"""Creating, changing, deleting and pausing queues; see `queue_views` for views."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from grass.broker.core.attempts import prefetch
from grass.broker.core.calls import CreateQueue, DeleteQueue, Done, EditQueue, SetPaused
from grass.broker.core.jobs import array_limits
from grass.broker.core.state import State
from grass.broker.core.workers import queue_views, registry, units
from grass.errors import NotFound, Refused, UsageError
from grass.model.jobs.job import DEFAULT_QUEUE
from grass.model.jobs.spec import given
from grass.model.journal import EventKind
from grass.model.queue import Queue, View
from grass.model.resources import Request, check_name
from grass.model.worker import Worker

QueueLimits = dict[str, Request | int | None]
"""Values of the fields of a queue that no view has, by name."""
OF_THE_QUEUE = {
    "default_request": "default request",
    "max_running": "limit on running jobs",
    "max_fails": "limit on failures",
    "enforce": "enforcement",
}


def find(state: State, name: str) -> Queue:
    """Return a queue that exists."""
    queue = state.queues.get(name)
    if queue is None:
        known = ", ".join(sorted(state.queues))
        raise NotFound(f"there is no queue `{name}`", f"queues: {known}")
    return queue


def create(state: State, call: CreateQueue) -> Done:
    """Add a worker's view of a queue; the same again is fine."""
    check_name(call.name, "queue")
    if call.name == DEFAULT_QUEUE:
        raise Refused("the queue `default` always exists and sees every unit")
    if call.name in ("all", "last"):
        raise UsageError(f"`{call.name}` selects jobs and cannot name a queue")
    worker = _worker(state, call.worker)
    of_view = {"capacity": {}, **given(call.patch)}
    limits: QueueLimits = {name: of_view.pop(name, None) for name in OF_THE_QUEUE}
    view, left_out = queue_views.normalized(call.name, View(**of_view))
    queue = state.queues.get(call.name, Queue(call.name, state.now_us))
    if worker.id in queue.views:
        _check_same(queue, queue.views[worker.id], view, limits)
        return Done(changed=False, warnings=left_out)
    # What another worker's view came with stays unless this one says otherwise.
    limits = {name: value for name, value in limits.items() if value is not None}
    _check_limits(state, queue, limits)
    wanted = replace(queue, views=queue.views | {worker.id: view}, **limits)
    warnings = left_out + _put(state, wanted)
    state.note_by(call.actor, "queue-created", queue=call.name, worker=worker.id)
    return Done(warnings=warnings)


def edit(state: State, call: EditQueue) -> Done:
    """Change a queue, and a worker's view of it; what is not named stays."""
    queue, of_view = find(state, call.name), given(call.patch)
    named = [name for name in OF_THE_QUEUE if name in of_view]
    limits: QueueLimits = {name: of_view.pop(name) for name in named}
    wanted, left_out = replace(queue, **limits), list[str]()
    if of_view:
        view, left_out = _edited_view(state, queue, call.worker, of_view)
        wanted.views = queue.views | {call.worker: view}
    if wanted == queue:
        return Done(changed=False, warnings=left_out)
    warnings = left_out + _put(state, wanted)
    state.note_by(call.actor, "queue-edited", queue=call.name)
    return Done(warnings=warnings)


def _edited_view(
    state: State, queue: Queue, worker: str, changes: dict[str, Any]
) -> tuple[View, list[str]]:
    if queue.name == DEFAULT_QUEUE:
        raise Refused("the queue `default` sees every unit and has no command")
    old = queue_views.here(state, queue, worker)
    if changes.get("prefix") == ():
        # The directory belongs to the command that is removed.
        old = replace(old, cwd=None)
    return queue_views.normalized(queue.name, replace(old, **changes))


def _put(state: State, queue: Queue) -> list[str]:
    """Store a queue, or refuse it; return warnings.

    It is checked as it will be before anything is changed.
    """
    old = state.queues.get(queue.name, Queue(queue.name, queue.created_at))
    workers = [state.workers[one] for one in _changed(old, queue)]
    warnings = [
        said for worker in workers for said in queue_views.check(state, queue, worker)
    ]
    if workers or queue.default_request != old.default_request:
        queue_views.check_default(state, queue)
    state.queues[queue.name] = state.batch.changes.queues[queue.name] = queue
    for worker in workers:
        view = state.batch.changes.views[queue.name, worker.id] = queue.views[worker.id]
        if worker.id in old.views:
            state.declared.remove(worker.id, old.views[worker.id].capacity)
        state.declared.add(worker.id, view.capacity)
        # What the view declared before and does not now is not there any more.
        units.forget_drained(state, worker)
        units.publish(state, worker)
    queue_views.publish(state, queue)
    return warnings


def _changed(old: Queue, new: Queue) -> Iterator[str]:
    return (one for one, view in new.views.items() if view != old.views.get(one))


def delete(state: State, call: DeleteQueue) -> Done:
    """Remove a worker's view, and the queue with its last one."""
    queue = find(state, call.name)
    if call.name == DEFAULT_QUEUE:
        raise Refused("the queue `default` cannot be deleted")
    if queue.views:
        queue_views.here(state, queue, call.worker)
    unfinished = _kept_by(state, queue, call.worker)
    if unfinished:
        raise Refused(
            f"queue `{call.name}` has {unfinished} unfinished"
            f" job{'s' if unfinished > 1 else ''}",
            f"`grass cancel queue:{call.name}` first, or wait for them",
        )
    _drop_view(state, queue, call.worker)
    if not queue.views:
        _drop(state, queue)
    worker = state.workers.get(call.worker)
    if worker is not None:
        units.forget_drained(state, worker)
        units.publish(state, worker)
    state.note_by(call.actor, "queue-deleted", queue=call.name)
    return Done()


def _kept_by(state: State, queue: Queue, worker: str) -> int:
    """Count the jobs that need a view: all with the last one, else those that run."""
    if not queue.views.keys() - {worker}:
        return _unfinished(state, queue)
    held = state.attempts_on(worker)
    return sum(state.jobs[one.job].queue == queue.name for one in held)


def drop_views(state: State, worker: Worker) -> None:
    """Remove all views of a worker, and the queues that nothing is left of."""
    for queue in [one for one in state.queues.values() if worker.id in one.views]:
        _drop_view(state, queue, worker.id)
        if not queue.views and not _unfinished(state, queue):
            _drop(state, queue)


def _drop_view(state: State, queue: Queue, worker: str) -> None:
    view = queue.views.pop(worker, None)
    if view is not None:
        state.declared.remove(worker, view.capacity)
    state.batch.changes.views.pop((queue.name, worker), None)
    state.batch.changes.removed_views.append((queue.name, worker))
    state.scheduler.set_view(queue.name, worker, None)


def _drop(state: State, queue: Queue) -> None:
    del state.queues[queue.name]
    del state.totals.unfinished[queue.name]
    state.batch.changes.queues.pop(queue.name, None)
    state.batch.changes.removed_queues.append(queue.name)
    state.scheduler.remove_queue(queue.name)


def _unfinished(state: State, queue: Queue) -> int:
    """Count the unfinished jobs of a queue, those being made included."""
    arriving = (job for arrival in state.bulk.enqueues for job in arrival.call.jobs)
    return state.totals.unfinished[queue.name] + sum(
        job.patch.queue == queue.name for job in arriving
    )


def set_paused(state: State, call: SetPaused) -> Done:
    """Stop or resume starting jobs; running ones are not touched."""
    if call.queue is None:
        changed = state.paused != call.paused
        state.paused = call.paused
        state.batch.changes.meta["paused"] = "1" if call.paused else "0"
        state.daemon.apply_pause(state)
    else:
        queue = find(state, call.queue)
        changed = queue.paused != call.paused
        queue.paused = call.paused
        array_limits.start_counting_anew(state, queue)
        state.batch.changes.queues[queue.name] = queue
        state.scheduler.set_queue_paused(queue.name, paused=call.paused)
    if call.paused:
        prefetch.recall_all(state, call.queue)
    kind: EventKind = "paused" if call.paused else "resumed"
    state.note_by(call.actor, kind, queue=call.queue)
    return Done(changed=changed, warnings=_still_paused(state, call))


def _still_paused(state: State, call: SetPaused) -> list[str]:
    """Tell what a resume does not resume."""
    if call.paused:
        return []
    if call.queue is not None:
        everything = "everything is paused (`grass resume` goes on)"
        return [everything] if state.paused else []
    return [
        f"queue `{queue.name}` stays paused (`grass resume {queue.name}` goes on)"
        for queue in state.queues.values()
        if queue.paused
    ]


def _check_same(queue: Queue, old: View, new: View, limits: QueueLimits) -> None:
    pairs = [
        ("capacity", old.capacity, new.capacity),
        ("command", old.prefix, new.prefix),
        ("directory", old.cwd, new.cwd),
        ("environment", old.env, new.env),
        *(
            (said, getattr(queue, name), limits[name])
            for name, said in OF_THE_QUEUE.items()
        ),
    ]
    differing = [name for name, before, after in pairs if before != after]
    if differing:
        raise Refused(
            f"queue `{queue.name}` exists with another {' and '.join(differing)}",
            f"`grass edit-queue {queue.name}` changes it",
        )


def _check_limits(state: State, queue: Queue, limits: QueueLimits) -> None:
    """Refuse to change for other workers' jobs what their view came with."""
    for name, asked in limits.items():
        if queue.views and asked != getattr(queue, name):
            on = ", ".join(registry.name_of(state, worker) for worker in queue.views)
            another = f"another {OF_THE_QUEUE[name]}"
            raise Refused(
                f"queue `{queue.name}` exists on {on} with {another}",
                f"leave it out, or `grass edit-queue {queue.name}` first",
            )


def _worker(state: State, worker: str) -> Worker:
    known = state.workers.get(worker)
    if known is None:
        raise Refused(
            "this daemon runs no jobs itself, so it has no view to give a queue",
            "create the queue on a worker's machine",
        )
    return known
