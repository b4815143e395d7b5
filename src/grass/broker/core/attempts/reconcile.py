"""Reconciling attempts after a worker has connected.

The worker's `Hello` lists every attempt it knows. An attempt that both know continues;
an exit is recorded; an attempt that the broker committed but the worker has not seen is
sent once more, which is harmless if the first start is still being delivered; an
attempt that the worker once had and no longer knows, or that another boot of the
machine had, is lost. An attempt that only the worker knows is left alone, and its
units are held: see `foreign`.

A database that came back from a backup knows less than the workers do. Where a worker
has another attempt under the name of ours, ours is recalled, and `placing` gives its
job a number that is free on that worker. A worker is believed only about attempts that
were given to it. The broker's own worker, which reads its keeper's records, is believed
about the ids of jobs as well.
"""

from grass.broker.core.access import worker_identity
from grass.broker.core.attempts import avoided, foreign, placing, prefetch, tracking
from grass.broker.core.calls import FromWorker
from grass.broker.core.jobs import guests, removals, verbs
from grass.broker.core.state import State
from grass.broker.core.workers import gpu_faults, leases, registry, units, withholding
from grass.errors import Forbidden
from grass.link.messages import (
    LINK_VERSION,
    Hello,
    Readiness,
    Report,
    Welcome,
)
from grass.model.access import may_work
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import AttemptState
from grass.model.worker import Worker

MOST_JOBS_BEHIND = 10_000_000
"""How much older than its own worker a database can be."""

READINESS_NOTED_US = 10 * 1_000_000
"""A worker's inability to start jobs is noted at most this often in the journal."""


def hello(state: State, call: FromWorker, message: Hello) -> None:
    """Register a worker that connected, and reconcile its attempts."""
    address = call.address
    if address is not None:
        _check_token(state, message.worker)
    worker = state.workers.get(message.worker)
    if address is not None and worker is not None:
        worker_identity.check_instance(state, worker, message.instance)
    rebooted = worker is not None and worker.boot != message.boot
    was_here = worker is not None and worker.connected
    worker = _registered(state, message, address)
    leases.back(state, worker.id)
    avoided.connected(state, worker.id)
    removals.connected(state, message)
    state.batch.send(worker.id, _welcome(state, message))
    withholding.set_to(state, worker, message.withheld)
    units.publish(state, worker)
    if not was_here:
        state.note("worker-connected", worker=worker.id, name=worker.name)
    if address is None:
        _catch_up(state, message)
    foreign.exits_reported(state, call, message.exited)
    unknown = _reconcile(state, message, rebooted)
    foreign.reported(state, call, unknown)


def _check_token(state: State, worker: str) -> None:
    """Refuse a worker whose token, or its right to work, was revoked meanwhile."""
    bound = [one for one in state.tokens.values() if one.worker == worker]
    if not any(may_work(token.role) for token in bound):
        raise Forbidden(
            "no token belongs to this worker any more",
            "paste a line of `grass token new` on its machine",
        )


def _registered(state: State, message: Hello, address: str | None) -> Worker:
    """Store what a worker reports of itself."""
    name = registry.name_for(state, message.worker, message.name)
    worker = state.workers.setdefault(message.worker, Worker(message.worker, name))
    worker.name, worker.boot = name, message.boot
    worker.found = gpu_faults.with_faulty(worker, message.found)
    worker.labels = tuple(sorted(set(message.labels)))
    worker.lease_s, worker.enforces = message.lease_s, message.enforces
    worker.shrinks, worker.runs_tasks = message.shrinks, message.runs_tasks
    worker.connected, worker.heard_at = True, state.now_us
    left_s = message.time_left_s
    worker.ends_at = None if left_s is None else state.now_us + int(left_s * 1e6)
    worker.address, worker.instance = address, message.instance
    _can_start(state, worker, message.unable)
    registry.note_clock(worker, message.wall_at, state.now_us)
    state.batch.changes.workers[worker.id] = worker
    if worker.id in state.batch.changes.removed_workers:
        state.batch.changes.removed_workers.remove(worker.id)
    state.batch.urgent = True
    return worker


def _welcome(state: State, message: Hello) -> Welcome:
    welcome = Welcome(state.cluster, LINK_VERSION, message.at)
    welcome.heeds_readiness = welcome.heeds_withheld = True
    return welcome


def readiness(state: State, worker: str, message: Readiness) -> None:
    """Place nothing on a worker that cannot start jobs, until it can."""
    known = state.workers.get(worker)
    if known is not None and known.connected and known.unable != message.unable:
        _can_start(state, known, message.unable)
        units.publish(state, known)


def _can_start(state: State, worker: Worker, unable: str) -> None:
    worker.unable = unable
    notes, id = state.readiness, worker.id
    if not unable:
        notes.due.pop(id, None)
        if id in notes.unable:
            notes.unable.discard(id)
            state.note("worker-able", worker=id, name=worker.name)
    elif id not in notes.unable and id not in notes.due:
        last = min(notes.noted_at.get(id, 0), state.now_us)
        notes.due[id] = last + READINESS_NOTED_US
        note_unable(state)


def note_unable(state: State) -> None:
    """Write of each worker into the journal that cannot start jobs, not too often."""
    notes = state.readiness
    for id in [one for one, due in notes.due.items() if due <= state.now_us]:
        del notes.due[id]
        notes.unable.add(id)
        notes.noted_at[id] = state.now_us
        worker = state.workers[id]
        state.note("worker-unable", worker=id, name=worker.name, reason=worker.unable)


def gone(state: State, worker: str) -> None:
    """Note that a worker's link ended; its attempts stay as they are."""
    known = state.workers.get(worker)
    if known is None or not known.connected:
        return
    known.connected, known.unable = False, ""
    state.avoided.gone.add(worker)
    avoided.no_host_now(state, worker)
    state.readiness.due.pop(worker, None)
    state.scheduler.remove_worker(worker)
    withholding.gone(state, known)
    leases.gone(state, known)
    state.batch.changes.workers[worker] = known
    state.note("worker-disconnected", worker=worker, name=known.name)


def _catch_up(state: State, message: Hello) -> None:
    """Use no job id again that the own worker knows and this database does not."""
    names = [one.attempt for one in message.running]
    names += [one.attempt for one in message.exited]
    most = state.last_job + MOST_JOBS_BEHIND
    known = map(attempt_id, names)
    jobs = [one.job for one in known if one.cluster == state.cluster]
    last = max((job for job in jobs if job <= most), default=0)
    if last > state.last_job:
        state.last_job = last
        state.batch.changes.meta["last_job"] = str(last)
        state.batch.log("database.outdated", worker=message.name, job=last)


def _reconcile(state: State, message: Hello, rebooted: bool) -> list[Report]:
    """Apply a report to this database's attempts; return those that it lacks."""
    for begun in message.started:
        tracking.started(state, message.worker, begun)
    for ended in message.exited:
        tracking.exited(state, message.worker, ended)
    reported = {report.attempt: report for report in message.running}
    ended_names = {ended.attempt for ended in message.exited}
    for attempt in state.attempts_on(message.worker):
        name = state.attempt_id(attempt)
        report = reported.get(name)
        job = state.jobs[attempt.job]
        if report is not None and tracking.is_about(attempt, report.placed_at):
            _adopt(state, job, attempt, reported.pop(name))
        elif rebooted or attempt.boot != message.boot:
            tracking.lose(state, job, attempt, "the machine was restarted")
        elif report is not None or name in ended_names:
            # Another attempt has its name there. Its start may be in delivery, and will
            # be refused: a second start could arrive when the name is free again.
            prefetch.request_return(state, [job.id])
        else:
            _unknown_to_worker(state, job, attempt, message)
    return list(reported.values())


def _adopt(state: State, job: Job, attempt: Attempt, report: Report) -> None:
    if report.running:
        tracking.begun(state, job, attempt, report.ran_s)
    attempt.pid = report.pid
    attempt.output, attempt.stderr = report.output, report.stderr
    attempt.output_offset = report.output_offset
    attempt.stderr_offset = report.stderr_offset
    attempt.usage = report.usage
    if report.allocation != attempt.allocation:
        # Its keeper remembers what it had at its start.
        tracking.send_shrink(state, attempt)
    state.save_attempt(attempt)
    state.save_job(job)
    if attempt.after is not None and not report.running:
        prefetch.recall(state, [job.id])
    if job.stopping_since is not None and not report.stopping:
        tracking.send_stop(state, job, attempt)
    verbs.repeat_suspension(state, job, report.suspended)
    guests.repeat_give_back(state, attempt)


def _unknown_to_worker(
    state: State, job: Job, attempt: Attempt, message: Hello
) -> None:
    """Handle an attempt that the worker had not seen when it sent its hello.

    A start may still be in delivery, so nothing is undone here: what is sent now
    arrives after it, and only the answer to a recall tells that it never arrived. A
    process may outlive every record of it, so one that ran is searched for.
    """
    if attempt.state is AttemptState.RUNNING and message.searches:
        tracking.send_search(state, job, attempt)
    elif attempt.state is AttemptState.RUNNING:
        tracking.lose(state, job, attempt, "its worker no longer knows it")
    elif job.stopping_since is not None:
        tracking.send_stop(state, job, attempt)
        prefetch.request_return(state, [job.id])
    elif attempt.after is not None:
        placing.send_start(state, job, attempt)
        prefetch.recall(state, [job.id])
    else:
        placing.send_start(state, job, attempt)
        verbs.repeat_suspension(state, job, False)
        guests.repeat_give_back(state, attempt)
