"""Attempts that a worker reports and this database does not have as running.

A database that came back from a backup knows less than the workers do. Such an attempt
is foreign: it runs on, its units stay held, the journal has its beginning and its end,
and a person decides whether it is ended before its time. A job whose attempt it is does
not start beside it: the job is held.

Only an attempt that this database has as ended on the same worker is stopped without a
person's word, with its job's grace. A user gave it up with its worker, or a lease did,
and another attempt may follow it. A start that has not begun is recalled.

An attempt of another database is held and listed in the same way. Its exit is left for
its own broker.
"""

from collections.abc import Iterable

from grass.broker.core.attempts import prefetch
from grass.broker.core.attempts.attempt_memory import ForeignAttempt
from grass.broker.core.attempts.foreign_calls import EndForeign, KeepForeign
from grass.broker.core.calls import Done, FromWorker
from grass.broker.core.jobs import eligibility
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.errors import NotFound, Refused
from grass.link.messages import (
    Exited,
    Hello,
    Recall,
    Report,
    Resync,
    Started,
    Stop,
)
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import AttemptState
from grass.model.jobs.spec import DEFAULT_GRACE_S
from grass.model.resources import Allocation
from grass.model.worker import Worker

MAX_READ = 1000
"""The ended jobs that are read for one hello; a worker may report any number."""
MAX_NAMED = 20
"""The attempts that one line of the journal names."""
MAX_ENDS = 100
"""The exits of one hello that get a line in the journal."""
STOP_REASON = "unknown to the broker"
ENDED_HERE = "the database has it as ended"
NO_LONGER_THERE = "its worker no longer has it"
ALL = ["all"]
"""In the place of names: all of this cluster that the worker has."""
_OVER = (AttemptState.EXITED, AttemptState.LOST)


def unaccounted(state: State, message: Hello) -> list[int]:
    """Return the jobs whose reported attempts are not this worker's in memory.

    They are read from the store before the hello is applied.
    """
    names = [attempt_id(one.attempt) for one in message.running]
    names += [attempt_id(one.attempt) for one in message.exited]
    jobs = {
        name.job
        for name in names
        if name.cluster == state.cluster
        and not _is_present(state.attempts.get(name.job), message.worker, name.number)
    }
    return sorted(jobs)[:MAX_READ]


def _is_present(attempt: Attempt | None, worker: str, number: int) -> bool:
    return attempt is not None and (attempt.worker, attempt.number) == (worker, number)


def reported(state: State, call: FromWorker, reports: Iterable[Report]) -> None:
    """Hold the units of a worker's attempts that are not this database's.

    This is done anew with every hello: what another attempt had may be free now.
    """
    worker = state.workers[call.worker]
    before = {name: state.foreign.get(worker.id, name) for name in _names(state, call)}
    found = []
    for report in reports:
        known = before.pop(report.attempt, None)
        foreign = _held(state, call, report, known)
        if known is None and report.running and not foreign.is_over:
            found.append(foreign)
        _act(state, report, foreign)
    _end_unreported(state, worker, before)
    if found:
        _note_found(state, worker, found)
    state.foreign.reported.add(worker.id)
    _read_rest(state, call)


def _end_unreported(state: State, worker: Worker, names: Iterable[str]) -> None:
    """Free what a worker no longer reports, and of which no exit has come."""
    for lines, name in enumerate(names):
        foreign = state.foreign.get(worker.id, name)
        if foreign is not None and foreign.running and lines < MAX_ENDS:
            _note(state, "foreign-ended", foreign, reason=NO_LONGER_THERE)
        _drop(state, worker, name)


def _names(state: State, call: FromWorker) -> list[str]:
    return [one.name for one in state.foreign.of(call.worker)]


def _held(
    state: State, call: FromWorker, report: Report, known: ForeignAttempt | None
) -> ForeignAttempt:
    state.foreign.release(call.worker, report.attempt)
    is_over = _ended(state, call, report.attempt) is not None
    foreign = ForeignAttempt(
        call.worker,
        report.attempt,
        _clipped(report.allocation, state.scheduler.free(call.worker)),
        report.running,
        pid=report.pid,
        started_at=state.now_us - int(report.ran_s * 1e6) if report.running else None,
        title=report.title,
        output=report.output,
        job=None if is_over else _job_of(state, call, report),
        stopping=report.stopping,
        to_end=known is not None and known.to_end,
        is_over=is_over,
        grace_s=_grace_s(state, call, report.attempt),
    )
    state.foreign.hold(foreign)
    return foreign


def _act(state: State, report: Report, foreign: ForeignAttempt) -> None:
    """Recall what has not begun, stop what is over, and hold the job of the rest."""
    own = attempt_id(report.attempt).cluster == state.cluster
    if own and not report.running:
        recall = Recall([report.attempt], [report.placed_at])
        state.batch.send(foreign.worker, recall)
    elif foreign.is_over and not report.stopping:
        _note(state, "foreign-stopped", foreign, reason=ENDED_HERE)
        _stop(state, foreign)
    elif foreign.to_end and not report.stopping:
        # A person's stop may never have arrived.
        _stop(state, foreign)
    if foreign.job is not None:
        _keep_from_starting(state, state.jobs[foreign.job])


def _job_of(state: State, call: FromWorker, report: Report) -> int | None:
    """Return the unfinished job that an attempt may be of; None: there is none.

    A job has no attempt that was placed before it was enqueued, nor one on a worker
    where it may not run: a worker can report anything.
    """
    name = attempt_id(report.attempt)
    job = state.jobs.get(name.job) if name.cluster == state.cluster else None
    if job is None or 0 < report.placed_at < job.created_at:
        return None
    queue, pinned = state.queues.get(job.queue), state.specs[job.spec].worker
    views = {} if queue is None else queue.views
    elsewhere = pinned not in (None, call.worker) or (
        views and call.worker not in views
    )
    return None if elsewhere else job.id


def _keep_from_starting(state: State, job: Job) -> None:
    """Hold a job that waits, and ask for its start back if that has not begun."""
    attempt = state.attempts.get(job.id)
    if attempt is None:
        eligibility.hold_back(state, job)
    elif attempt.state is AttemptState.STARTING:
        prefetch.request_return(state, [job.id])


def _ended(state: State, call: FromWorker, name: str) -> Attempt | None:
    """Return the attempt of this name that the database has as ended on the worker."""
    identity = attempt_id(name)
    if identity.cluster != state.cluster:
        return None
    key = identity.job, identity.number
    stored = None if call.found is None else call.found.jobs.get(identity.job)
    tries = [] if stored is None else stored.attempts
    attempt = state.batch.changes.attempts.get(key) or next(
        (one for one in tries if one.number == identity.number), None
    )
    if attempt is None or attempt.worker != call.worker:
        return None
    return attempt if attempt.state in _OVER else None


def _grace_s(state: State, call: FromWorker, name: str) -> float:
    """Return the grace of an attempt's job; the usual one where it is not known."""
    identity = attempt_id(name)
    if identity.cluster != state.cluster:
        return DEFAULT_GRACE_S
    if identity.job in state.jobs:
        return state.specs[state.jobs[identity.job].spec].grace_s
    stored = None if call.found is None else call.found.jobs.get(identity.job)
    return DEFAULT_GRACE_S if stored is None else stored.spec.grace_s


def _read_rest(state: State, call: FromWorker) -> None:
    """Have the worker report again if a job has ended since its hello arrived."""
    assert isinstance(call.message, Hello)
    unread = set(unaccounted(state, call.message)) - set(call.wanted)
    if unread and len(call.wanted) < MAX_READ:
        state.batch.send(call.worker, Resync())


def exits_reported(state: State, call: FromWorker, exits: list[Exited]) -> None:
    """Write into the journal how attempts ended that the database knows nothing of."""
    lines = 0
    for message in exits:
        name = attempt_id(message.attempt)
        is_own = name.cluster == state.cluster
        present = _is_present(state.attempts.get(name.job), call.worker, name.number)
        known = present or (call.worker, message.attempt) in state.foreign
        if is_own and not known and lines < MAX_ENDS:
            lines += _ended(state, call, message.attempt) is None
            _note_end_unknown(state, call, message)


def _note_end_unknown(state: State, call: FromWorker, message: Exited) -> None:
    if _ended(state, call, message.attempt) is None:
        foreign = ForeignAttempt(call.worker, message.attempt, {}, running=False)
        _note(state, "foreign-ended", foreign, **_end_facts(message))


def started(state: State, worker: str, message: Started) -> None:
    """Note that an attempt began before its recall arrived."""
    foreign = state.foreign.get(worker, message.attempt)
    if foreign is None or foreign.running:
        return
    foreign.running, foreign.pid = True, message.pid
    foreign.output = message.output
    foreign.started_at = state.now_us - int(message.ran_s * 1e6)
    if foreign.is_over:
        _note(state, "foreign-stopped", foreign, reason=ENDED_HERE)
        _stop(state, foreign)
    else:
        _note_found(state, state.workers[worker], [foreign])


def returned(state: State, worker: str, name: str) -> None:
    """Free what a start held that never began, and let its job start."""
    foreign = state.foreign.get(worker, name)
    if foreign is None:
        return
    state.foreign.release(worker, name)
    job = None if foreign.job is None else state.jobs.get(foreign.job)
    if job is not None and not foreign.running:
        eligibility.let_go(state, job)


def exited(state: State, worker: str, message: Exited) -> None:
    """Free what a foreign attempt held, and write down how it ended."""
    foreign = state.foreign.get(worker, message.attempt)
    if foreign is not None:
        _note(state, "foreign-ended", foreign, **_end_facts(message))
        _drop(state, state.workers[worker], message.attempt)


def _end_facts(message: Exited) -> dict[str, object]:
    facts = {
        "exit_code": message.exit_code,
        "signal": message.signal,
        "reason": message.reason,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _drop(state: State, worker: Worker, name: str) -> None:
    state.foreign.release(worker.id, name)
    if name in worker.kept_attempts:
        kept = tuple(one for one in worker.kept_attempts if one != name)
        worker.kept_attempts = kept
        state.batch.changes.workers[worker.id] = worker


def end(state: State, call: EndForeign) -> Done:
    """Stop foreign attempts: SIGTERM, the grace, SIGKILL."""
    worker = registry.find(state, call.worker)
    if not worker.connected:
        raise Refused(
            f"worker `{worker.name}` is not connected",
            "end its attempts when `grass workers` shows it as connected",
        )
    for foreign in _chosen(state, worker, call.attempts):
        foreign.to_end = foreign.stopping = True
        facts = {"worker": worker.id, "name": worker.name, "attempt": foreign.name}
        state.note_by(call.actor, "foreign-stopped", None, **facts)
        _stop(state, foreign)
    return Done()


def keep(state: State, call: KeepForeign) -> Done:
    """Note that foreign attempts may run to their end; nobody is reminded of them."""
    worker = registry.find(state, call.worker)
    chosen = [one.name for one in _chosen(state, worker, call.attempts)]
    new = [name for name in chosen if name not in worker.kept_attempts]
    worker.kept_attempts = (*worker.kept_attempts, *new)
    state.batch.changes.workers[worker.id] = worker
    for name in new:
        facts = {"worker": worker.id, "name": worker.name, "attempt": name}
        state.note_by(call.actor, "foreign-kept", None, **facts)
    return Done(changed=bool(new))


def _chosen(state: State, worker: Worker, names: list[str]) -> list[ForeignAttempt]:
    """Return the foreign attempts that are named; `all` leaves out other clusters'."""
    known = state.foreign.of(worker.id)
    if names == ALL:
        return [one for one in known if attempt_id(one.name).cluster == state.cluster]
    by_name = {one.name: one for one in known}
    by_name |= {short_name(state, one.name): one for one in known}
    for name in names:
        if name not in by_name:
            raise NotFound(
                f"worker `{worker.name}` has no foreign attempt `{name}`",
                "see `grass workers foreign` for those that there are",
            )
    return [by_name[name] for name in names]


def short_name(state: State, name: str) -> str:
    """Return an attempt's name as people read it: without its own cluster."""
    return name.removeprefix(f"{state.cluster}.")


def _stop(state: State, foreign: ForeignAttempt) -> None:
    stop = Stop(foreign.name, foreign.grace_s, reason=STOP_REASON)
    state.batch.send(foreign.worker, stop)


def _note_found(state: State, worker: Worker, found: list[ForeignAttempt]) -> None:
    names = [one.name for one in found[:MAX_NAMED]]
    facts: dict[str, object] = {"worker": worker.id, "name": worker.name}
    facts |= {"count": len(found), "attempts": names}
    if twice := _running_twice(state, found):
        facts["running_twice"] = twice[:MAX_NAMED]
    state.note("foreign-found", None, **facts)
    state.batch.log(
        "attempts.foreign", worker=worker.name, attempts=len(found), attempt=names[0]
    )
    if twice:
        state.batch.log(
            "attempts.running-twice", worker=worker.name, jobs=len(twice), job=twice[0]
        )


def _running_twice(state: State, found: list[ForeignAttempt]) -> list[int]:
    """Return the jobs of these attempts that this database has as running as well."""
    jobs = dict.fromkeys(one.job for one in found if one.job in state.attempts)
    running = AttemptState.RUNNING
    return [job for job in jobs if job and state.attempts[job].state is running]


def _note(state: State, kind: str, foreign: ForeignAttempt, **facts: object) -> None:
    worker = state.workers[foreign.worker]
    who = {"worker": worker.id, "name": worker.name, "attempt": foreign.name}
    state.note(kind, **who, **facts)  # type: ignore[arg-type]


def _clipped(wanted: Allocation, free: Allocation) -> Allocation:
    """Hold no more than is free: a report must not make free amounts negative."""
    held: Allocation = {}
    for kind, amounts in wanted.items():
        for unit, amount in amounts.items():
            left = min(amount, free.get(kind, {}).get(unit, 0))
            if left > 0:
                held.setdefault(kind, {})[unit] = left
    return held
