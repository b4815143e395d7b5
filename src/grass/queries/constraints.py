"""What keeps a job from starting: what it needs, and workers that cannot take it.

A constraint is one thing that a job needs, with how much of it there is. What is short
comes from the scheduler's own explanation; what is not short is added, so that a person
sees the whole request.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from operator import attrgetter

from grass.broker.core.attempts import avoided
from grass.broker.core.state import State
from grass.broker.core.workers import gpu_faults, registry
from grass.broker.core.workers.worker_memory import UnitNotes
from grass.model.amount_text import amount_texts
from grass.model.jobs.dependencies import After, met
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.model.resources import GPU_KINDS
from grass.model.times import moment, rfc3339
from grass.model.worker import Worker
from grass.queries.cluster_documents import WorkerNames
from grass.queries.documents import Constraint, ProspectReply
from grass.queries.pool_waits import pool_of, pool_words, words_for
from grass.scheduler.reasons.explanation import (
    Explanation,
    Feasibility,
    PlacementObstacle,
)
from grass.scheduler.reasons.memory_users import Told
from grass.scheduler.reasons.shortages import Need

States = Mapping[int, JobState]
"""The states of dependencies; one that is missing was forgotten."""
DISK_FULL = "the broker's disk is full: nothing starts until there is room"
MAX_DEPENDENCIES_SHOWN = 100
MOST_NAMED = 3
"""How many workers are named."""


def waiting_constraints(
    job: Job, spec: Spec, states: States, now_us: int
) -> Iterator[Constraint]:
    """Return what a held or waiting job needs besides units."""
    if job.state is JobState.HELD:
        yield Constraint("hold", "released", "held", note=f"`grass release {job.id}`")
    for after in sorted(spec.after, key=attrgetter("first"))[:MAX_DEPENDENCIES_SHOWN]:
        counts = Counter(states[one] for one in after.jobs if one in states)
        if counts:
            yield _dependency(after, counts)
    now = rfc3339(now_us) or ""
    for what, at in (("begin", spec.begin_at), ("back-off", job.not_before)):
        if at is not None:
            yield Constraint(what, rfc3339(at) or "", now, ok=at <= now_us)


def queued_constraints(
    state: State, spec: Spec, reason: Explanation, forgotten: WorkerNames
) -> Iterator[Constraint]:
    """Return what a queued job needs: resumed queues, free places, and units."""
    yield from _gates(state, reason)
    if reason.worker is None:
        note = no_worker(state, spec, reason, forgotten)
        yield Constraint("worker", "1", "0", note=note)
        return
    short = {need.kind: need for need in (*reason.needs, *reason.together)}
    for kind, asked in spec.request:
        if kind in short:
            yield _shortage(state, short[kind], reason)
        else:
            yield _enough(state, spec, reason, kind, asked)
    brought = short.keys() - dict(spec.request).keys()
    for kind in sorted(brought):
        yield _shortage(state, short[kind], reason)
    if reason.reserved_for is not None:
        note = f"units of `{registry.name_of(state, reason.worker)}` are kept for it"
        yield Constraint("turn", "next", f"after job {reason.reserved_for}", note=note)


def told(state: State) -> Told:
    """Return what is known of workers and units, for the scheduler's reasons."""
    return Told(
        partial(registry.name_of, state),
        lambda worker, unit: _notes(state, worker).strangers.get(unit, ()),
        lambda worker, unit: _fault(state, worker, unit),
    )


def _fault(state: State, worker: str, unit: str) -> str | None:
    known = state.workers.get(worker)
    fault = None if known is None else gpu_faults.of_unit(known, unit)
    if known is None or fault is None:
        return None
    return gpu_faults.sentence(known, fault)


def _notes(state: State, worker: str) -> UnitNotes:
    return state.unit_notes.get(worker, UnitNotes())


def open_units(
    state: State, spec: Spec, reason: Explanation, kind: str
) -> tuple[int, int]:
    """Return the free and the total amount of a kind for a job on its worker."""
    assert reason.worker is not None
    free = state.scheduler.spare(reason.worker, spec.asks_again).get(kind, {})
    has = state.scheduler.capacity(reason.worker).get(kind, {})
    names = names_of_open_units(state, reason, kind)
    return sum(free.get(unit, 0) for unit in names), sum(has[unit] for unit in names)


def names_of_open_units(state: State, reason: Explanation, kind: str) -> list[str]:
    """Return which units of its worker a job's queue sees and may give."""
    worker = reason.worker
    assert worker is not None
    has = state.scheduler.capacity(worker).get(kind, {})
    if reason.gpus is not None and kind in GPU_KINDS:
        has = {unit: has[unit] for unit in has if unit in reason.gpus}
    closed = {*state.workers[worker].drained.get(kind, [])}
    if kind in GPU_KINDS:
        closed |= _notes(state, worker).faulty
    known = state.queues.get(reason.queue)
    view = known.views.get(worker) if known else None
    limits = view.capacity.get(kind) if view else None
    return [
        unit for unit in has if unit not in closed and (not limits or unit in limits)
    ]


def _dependency(after: After, counts: Counter[JobState]) -> Constraint:
    need = "ended" if after.need == "any" else after.need
    ok = all(met(after.need, state) for state in counts)
    if after.first == after.last:
        return Constraint(f"job {after.first}", need, next(iter(counts)), ok=ok)
    have = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return Constraint(f"jobs {after.first}-{after.last}", need, have, ok=ok)


def _gates(state: State, reason: Explanation) -> Iterator[Constraint]:
    if state.daemon.disk_full:
        yield Constraint("the broker's disk", "room", "full", note="`grass prune`")
    elif awaited := state.awaited():
        note = f"`grass workers forget {awaited[0]}`"
        yield Constraint("workers, after a restore", "reported", "not yet", note=note)
    elif reason.paused:
        yield Constraint("everything", "resumed", "paused", note="`grass resume`")
    if reason.queue_paused:
        queue = state.queues.get(reason.queue)
        why = queue.paused_reason if queue else None
        note = why or f"`grass resume {reason.queue}`"
        yield Constraint(f"queue `{reason.queue}`", "resumed", "paused", note=note)
    if reason.queue_full is not None:
        what = f"running jobs of queue `{reason.queue}`"
        yield _slots(what, *reason.queue_full)
    if reason.limiter_full is not None:
        yield _slots("running jobs of its array", *reason.limiter_full)
    if reason.profiler is not None:
        job_type, holder = reason.profiler
        note = f"job {holder} is making it"
        yield Constraint(f"profile of `{job_type}`", "known", "none", note=note)


def _slots(what: str, running: int, at_most: int) -> Constraint:
    have = str(max(0, at_most - running))
    return Constraint(what, "1", have, str(at_most), note=f"{running} run")


def _shortage(state: State, need: Need, reason: Explanation) -> Constraint:
    notes = []
    if need in reason.together:
        with_memory = any(one.brought for one in reason.together)
        notes.append(f"not {'with its memory' if with_memory else 'on the same unit'}")
    elif need.free >= need.asked:
        notes.append("in smaller pieces")
    if need.brought:
        notes.append("what its share of a GPU brings now")
    if need.kind in GPU_KINDS and reason.blame is not None:
        notes.append(reason.blame.text(told(state)))
    needs, has, of = amount_texts(need.kind, need.asked, need.free, need.total)
    note = "; ".join(filter(None, notes))
    return Constraint(need.kind, needs, has, of, note=note)


def _enough(
    state: State, spec: Spec, reason: Explanation, kind: str, asked: int
) -> Constraint:
    free, total = open_units(state, spec, reason, kind)
    needs, has, of = amount_texts(kind, asked, free, total)
    return Constraint(kind, needs, has, of, ok=True)


def is_unreachable(state: State, attempt: Attempt) -> bool:
    """Return whether an attempt's worker is disconnected."""
    worker = state.workers.get(attempt.worker)
    return worker is None or not worker.connected


def absence(state: State, worker: Worker) -> str:
    """Say that a worker is unreachable, and since when."""
    return f"worker `{worker.name}` is {_gone(state, worker)}{_since(worker)}"


def no_worker(
    state: State, spec: Spec, reason: Explanation, forgotten: WorkerNames
) -> str:
    """Explain why no worker can run a job now."""
    if spec.worker is not None and spec.worker not in state.workers:
        name = forgotten.get(spec.worker, spec.worker)
        return (
            f"worker `{name}`, the only one that may run it, is forgotten"
            f" (`grass edit {reason.job} --worker NAME` chooses another)"
        )
    job = state.jobs.get(reason.job)
    words = None if job is None else pool_words(state, job)
    if words is not None:
        return words
    if not state.workers:
        return "no worker has joined yet; `grass token new` gives a line for one"
    if not reason.away:
        return str(reason)
    names = [f"`{registry.name_of(state, one)}`" for one in reason.away]
    hows = [_how(state, one) for one in reason.away]
    if len(names) == 1:
        return f"worker {names[0]}, which could run it, {hows[0]}"
    named = [f"{name} {how}" for name, how in zip(names, hows, strict=True)]
    left = len(named) - MOST_NAMED
    more = [f"and {left} more"] if left > 0 else []
    shown = ", ".join(named[:MOST_NAMED] + more)
    return f"no worker that could run it takes jobs: {shown}"


def avoided_words(state: State, job: Job) -> str:
    """Say on which workers a job is not placed, and why."""
    why = avoided.reasons(state, job)
    known = [one for one in why if one in state.workers]
    texts = [f"not on `{registry.name_of(state, one)}`: {why[one]}" for one in known]
    left = len(texts) - MOST_NAMED
    more = [f"and not on {left} more"] if left > 0 else []
    return "; ".join(texts[:MOST_NAMED] + more)


def prospects(
    state: State, spec: Spec, reason: Explanation, forgotten: WorkerNames
) -> list[ProspectReply]:
    """Explain for each worker of a job's queue why the job does not start there."""
    found = [
        _prospect(state, spec, reason.job, one, forgotten)
        for one in reason.feasibility()
    ]
    return sorted(found, key=lambda one: one.worker)


def _prospect(
    state: State, spec: Spec, job: int, one: Feasibility, forgotten: WorkerNames
) -> ProspectReply:
    name, reason, why = registry.name_of(state, one.worker), str(one.obstacle), one.why
    if one.obstacle is PlacementObstacle.PINNED and spec.worker is not None:
        only = forgotten.get(spec.worker) or registry.name_of(state, spec.worker)
        why = f"it may run on `{only}` alone"
    elif one.obstacle is PlacementObstacle.AWAY and (
        pool := pool_of(state, one.worker)
    ):
        reason, why = "to-come", words_for(state, pool, job)
    elif one.obstacle is PlacementObstacle.AWAY:
        reason, why = _away(state, one.worker)
    elif one.obstacle is PlacementObstacle.AVOIDED:
        why = avoided.reasons(state, state.jobs[job]).get(one.worker, "")
    elif one.obstacle is PlacementObstacle.FREE:
        why = "has room for it"
    elif one.blame is not None:
        why = "; ".join(filter(None, (why, one.blame.text(told(state)))))
    return ProspectReply(name, reason, why)


def _away(state: State, worker: str) -> tuple[str, str]:
    """Return in one word and in a sentence why a worker takes no jobs."""
    known = state.workers.get(worker)
    if known is not None and known.connected and known.unable:
        return "unable", _unable(known)
    if known is None or (known.connected and not known.draining):
        return "not-ready", "is not ready yet"
    if known.connected:
        return "drained", "is drained"
    word = "off" if _is_off(known) else "unreachable"
    drained = "drained and " if known.draining else ""
    return word, f"is {drained}{_gone(state, known)}{_since(known)}"


def _is_off(worker: Worker) -> bool:
    """Return whether a worker was part of this daemon, which now runs without."""
    return worker.address is None and not worker.connected


def _gone(state: State, worker: Worker) -> str:
    if not _is_off(worker):
        return "unreachable"
    now = state.workers.get(state.daemon.home_worker or "")
    if now is None or not now.connected:
        return "off (`--no-worker`)"
    # Its file `worker-id` was lost or replaced.
    return f"off (the broker's own worker is `{now.name}` now)"


def _since(worker: Worker) -> str:
    return "" if worker.heard_at is None else f" since {moment(worker.heard_at)}"


def _how(state: State, worker: str) -> str:
    known = state.workers[worker]
    if known.connected and known.unable:
        return _unable(known)
    how = ["draining"] if known.draining else []
    how += [] if known.connected else [_gone(state, known)]
    return f"is {' and '.join(how) or 'not ready yet'}"


def _unable(worker: Worker) -> str:
    return f"cannot start jobs: {worker.unable}"
