"""What a job needs before it starts, each with how much of it there is.

Everything that is short comes from the scheduler's own explanation; what is not short
is added, so that a person sees the whole request.
"""

from collections.abc import Iterator, Mapping

from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.model.amounts import decimal_text
from grass.model.dependencies import After, met
from grass.model.job import Job
from grass.model.lifecycle import JobState
from grass.model.spec import Spec
from grass.model.times import rfc3339
from grass.queries.documents import Constraint
from grass.queries.forgotten_workers import Former
from grass.queries.reachability import nobody
from grass.scheduler.explanation import Explanation, Need

States = Mapping[int, JobState]
"""How jobs stand that are waited for; one that is missing was forgotten."""


def waiting_constraints(
    job: Job, spec: Spec, states: States, now_us: int
) -> Iterator[Constraint]:
    """Give what a held or waiting job needs besides units."""
    if job.state is JobState.HELD:
        yield Constraint("hold", "released", "held", note=f"`grass release {job.id}`")
    for after in spec.after:
        if after.job in states:
            yield _dependency(after, states[after.job])
    now = rfc3339(now_us) or ""
    for what, at in (("begin", spec.begin_at), ("back-off", job.not_before)):
        if at is not None:
            yield Constraint(what, rfc3339(at) or "", now, ok=at <= now_us)


def queued_constraints(
    state: State, spec: Spec, told: Explanation, former: Former
) -> Iterator[Constraint]:
    """Give what a queued job needs: open gates, and units on one worker."""
    yield from _gates(state, told)
    if told.worker is None:
        note = nobody(state, spec, told, former)
        yield Constraint("worker", "1", "0", note=note)
        return
    short = {need.kind: need for need in (*told.needs, *told.together)}
    for kind, asked in spec.request:
        if kind in short:
            yield _shortage(short[kind], told)
        else:
            yield _enough(state, told, kind, asked)
    if told.reserved_for is not None:
        note = f"units of `{registry.name_of(state, told.worker)}` are kept for it"
        yield Constraint("turn", "next", f"after job {told.reserved_for}", note=note)


def open_units(state: State, worker: str, queue: str, kind: str) -> tuple[int, int]:
    """Give what is free of a kind to a queue on a worker, and what there is in all."""
    free = state.scheduler.free(worker).get(kind, {})
    has = state.scheduler.capacity(worker).get(kind, {})
    drained = state.workers[worker].drained.get(kind, [])
    known = state.queues.get(queue)
    view = known.views.get(worker) if known else None
    limits = view.capacity.get(kind) if view else None
    open_ones = [
        unit for unit in has if unit not in drained and (not limits or unit in limits)
    ]
    return sum(free.get(unit, 0) for unit in open_ones), sum(
        has[unit] for unit in open_ones
    )


def _dependency(after: After, state: JobState) -> Constraint:
    need = "ended" if after.need == "any" else after.need
    return Constraint(
        f"job {after.job}", need, state, ok=met(after.need, state) is True
    )


def _gates(state: State, told: Explanation) -> Iterator[Constraint]:
    if state.disk_full:
        yield Constraint("the broker's disk", "room", "full", note="`grass prune`")
    elif told.paused:
        yield Constraint("everything", "resumed", "paused", note="`grass resume`")
    if told.queue_paused:
        queue = state.queues.get(told.queue)
        why = queue.paused_reason if queue else None
        note = why or f"`grass resume {told.queue}`"
        yield Constraint(f"queue `{told.queue}`", "resumed", "paused", note=note)
    if told.queue_full is not None:
        what = f"running jobs of queue `{told.queue}`"
        yield _slots(what, *told.queue_full)
    if told.limiter_full is not None:
        yield _slots("running jobs of its array", *told.limiter_full)


def _slots(what: str, running: int, at_most: int) -> Constraint:
    have = str(max(0, at_most - running))
    return Constraint(what, "1", have, str(at_most), note=f"{running} run")


def _shortage(need: Need, told: Explanation) -> Constraint:
    note = ""
    if need in told.together:
        note = "not on the same unit"
    elif need.free >= need.asked:
        note = "in smaller pieces"
    asked, free, total = map(decimal_text, (need.asked, need.free, need.total))
    return Constraint(need.kind, asked, free, total, note=note)


def _enough(state: State, told: Explanation, kind: str, asked: int) -> Constraint:
    assert told.worker is not None
    free, total = open_units(state, told.worker, told.queue, kind)
    needs, has, of = map(decimal_text, (asked, free, total))
    return Constraint(kind, needs, has, of, ok=True)
