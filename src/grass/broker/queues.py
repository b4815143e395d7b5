"""Creating, deleting and pausing queues."""

from msgspec import structs

from grass.broker import arrays, fleet, relay, units
from grass.broker.calls import CreateQueue, DeleteQueue, Done, EditQueue, SetPaused
from grass.broker.state import State
from grass.errors import NeverFits, NotFound, Refused, UsageError
from grass.model import sizes
from grass.model.amounts import decimal_text
from grass.model.job import DEFAULT_QUEUE
from grass.model.queue import Queue, View
from grass.model.resources import Capacity, Request, check_name
from grass.model.worker import Worker

OF_THE_QUEUE = ("default_request", "max_running", "max_fails")


def find(state: State, name: str) -> Queue:
    """Return a queue that exists."""
    queue = state.queues.get(name)
    if queue is None:
        known = ", ".join(sorted(state.queues))
        raise NotFound(f"there is no queue `{name}`", f"queues: {known}")
    return queue


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


def create(state: State, call: CreateQueue) -> Done:
    """Add a worker's view of a queue; the same again is fine."""
    check_name(call.name, "queue")
    if call.name == DEFAULT_QUEUE:
        raise Refused("the queue `default` always exists and sees every unit")
    if call.name in ("all", "last"):
        raise UsageError(f"`{call.name}` selects jobs and cannot name a queue")
    worker = _worker(state, call.worker)
    view = View(call.capacity, call.prefix, call.cwd if call.prefix else None, call.env)
    sizes.check(view.prefix, view.env)
    queue = state.queues.get(call.name)
    if queue is not None and worker.id in queue.views:
        _check_same(queue, queue.views[worker.id], view, call)
        return Done(changed=False)
    if queue is not None and queue.views:
        _check_agrees(state, queue, call)
    known = units.known_capacity(state, worker)
    units.check_view(known, call.capacity, call.name)
    _check_default(known, call.capacity, call.default_request)
    warning = units.declared_warning(known, call.capacity, worker.found)
    _add(state, queue, worker, view, call)
    return Done(warnings=[warning] if warning else [])


def edit(state: State, call: EditQueue) -> Done:
    """Change a queue, and a worker's view of it; what is not named stays."""
    queue, changes = find(state, call.name), dict(call.changes)
    ours = {name: changes.pop(name) for name in OF_THE_QUEUE if name in changes}
    worker = _worker(state, call.worker)
    if changes and call.name == DEFAULT_QUEUE:
        raise Refused("the queue `default` sees every unit and has no command")
    old = queue.views.get(worker.id, View({}))
    view = structs.replace(old, **changes)
    sizes.check(view.prefix, view.env)
    if view == old and all(getattr(queue, name) == ours[name] for name in ours):
        return Done(changed=False)
    known = units.known_capacity(state, worker, without=queue.name)
    units.check_view(known, view.capacity, queue.name)
    _check_default(known, view.capacity, ours.get("default_request"))
    if view != old:
        queue.views[worker.id] = view
        state.changes.views[queue.name, worker.id] = view
        units.publish(state, worker)
    for name, value in ours.items():
        setattr(queue, name, value)
    state.changes.queues[queue.name] = queue
    publish(state, queue)
    state.note_by(call.actor, "queue-edited", queue=call.name)
    return Done()


def delete(state: State, call: DeleteQueue) -> Done:
    """Remove a worker's view, and the queue with its last one."""
    queue = find(state, call.name)
    if call.name == DEFAULT_QUEUE:
        raise Refused("the queue `default` cannot be deleted")
    if queue.views and call.worker not in queue.views:
        others = ", ".join(fleet.name_of(state, worker) for worker in queue.views)
        raise NotFound(
            f"this machine has no part in queue `{call.name}`", f"it is on: {others}"
        )
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
    held = (one.job for one in state.attempts.values() if one.worker == worker)
    return sum(state.jobs[job].queue == queue.name for job in held)


def drop_views(state: State, worker: Worker) -> None:
    """Remove all views of a worker, and the queues that nothing is left of."""
    for queue in [one for one in state.queues.values() if worker.id in one.views]:
        _drop_view(state, queue, worker.id)
        if not queue.views and not _unfinished(state, queue):
            _drop(state, queue)


def _drop_view(state: State, queue: Queue, worker: str) -> None:
    queue.views.pop(worker, None)
    state.changes.views.pop((queue.name, worker), None)
    state.changes.removed_views.append((queue.name, worker))
    state.scheduler.set_view(queue.name, worker, None)


def _drop(state: State, queue: Queue) -> None:
    del state.queues[queue.name]
    state.changes.queues.pop(queue.name, None)
    state.changes.removed_queues.append(queue.name)
    state.scheduler.remove_queue(queue.name)


def _unfinished(state: State, queue: Queue) -> int:
    """Count the jobs of a queue that have not ended, those on their way in included."""
    arriving = (job for arrival in state.arriving for job in arrival.call.jobs)
    return sum(job.queue == queue.name for job in state.jobs.values()) + sum(
        job.settings.queue == queue.name for job in arriving
    )


def set_paused(state: State, call: SetPaused) -> Done:
    """Stop or resume starting jobs; running ones are not touched."""
    if call.queue is None:
        changed = state.paused != call.paused
        state.paused = call.paused
        state.changes.meta["paused"] = "1" if call.paused else "0"
        state.scheduler.set_paused(call.paused)
    else:
        queue = find(state, call.queue)
        changed = queue.paused != call.paused
        queue.paused = call.paused
        arrays.start_counting_anew(state, queue)
        state.changes.queues[queue.name] = queue
        state.scheduler.set_queue_paused(queue.name, paused=call.paused)
    if call.paused:
        relay.recall_all(state, call.queue)
    kind = "paused" if call.paused else "resumed"
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


def _add(
    state: State, queue: Queue | None, worker: Worker, view: View, call: CreateQueue
) -> None:
    if queue is None:
        queue = Queue(call.name, state.now_us)
        state.queues[call.name] = queue
    for name in OF_THE_QUEUE:
        # What another worker's view came with stays unless this one says otherwise.
        if getattr(call, name) is not None:
            setattr(queue, name, getattr(call, name))
    queue.views[worker.id] = view
    state.changes.queues[queue.name] = queue
    state.changes.views[queue.name, worker.id] = view
    units.publish(state, worker)
    publish(state, queue)
    state.note_by(call.actor, "queue-created", queue=call.name, worker=worker.id)


def _check_same(queue: Queue, old: View, new: View, call: CreateQueue) -> None:
    pairs = [
        ("capacity", old.capacity, new.capacity),
        ("command", old.prefix, new.prefix),
        ("directory", old.cwd, new.cwd),
        ("environment", old.env, new.env),
        ("default request", queue.default_request, call.default_request),
        ("limit on running jobs", queue.max_running, call.max_running),
        ("limit on failures", queue.max_fails, call.max_fails),
    ]
    differing = [name for name, before, after in pairs if before != after]
    if differing:
        raise Refused(
            f"queue `{queue.name}` exists with another {' and '.join(differing)}",
            f"`grass delete-queue {queue.name}` first",
        )


def _check_agrees(state: State, queue: Queue, call: CreateQueue) -> None:
    """Refuse a view that would make another queue of it for other workers' jobs."""
    others = ", ".join(fleet.name_of(state, worker) for worker in queue.views)
    if bool(queue.prefix) != bool(call.prefix):
        has = "a" if queue.prefix else "no"
        raise Refused(
            f"queue `{queue.name}` has {has} command on {others}",
            "a queue has one everywhere or nowhere; choose another name",
        )
    for name in OF_THE_QUEUE:
        asked = getattr(call, name)
        if asked is not None and asked != getattr(queue, name):
            raise Refused(
                f"queue `{queue.name}` exists on {others} with another"
                f" {name.replace('_', ' ')}",
                f"leave it out, or `grass edit-queue {queue.name}` first",
            )


def _check_default(
    known: Capacity, capacity: Capacity, request: Request | None
) -> None:
    """Refuse a default request that no job of the queue could ever have met."""
    for kind, asked in request or ():
        units_of = capacity.get(kind, known.get(kind, {}))
        has = sum(units_of.values())
        if asked > has:
            raise NeverFits(
                f"--default-require asks {decimal_text(asked)} {kind},"
                f" the queue has {decimal_text(has)}"
            )


def _worker(state: State, worker: str) -> Worker:
    known = state.workers.get(worker)
    if known is None:
        raise Refused(
            "this daemon runs no jobs itself, so it has no view to give a queue",
            "create the queue on a worker's machine",
        )
    return known
