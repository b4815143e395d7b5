"""Routes about jobs: adding, reading, waiting, and the verbs that change them.

A verb takes selectors, and answers with the jobs that it changed.
"""

import asyncio
import time
from collections.abc import Callable
from itertools import takewhile

from msgspec.structs import replace
from starlette.requests import Request

from grass.api.access.auth import actor, connection_of, require
from grass.api.access.own_jobs import check_may_pause, own_jobs
from grass.api.access.viewers import presenter, viewer
from grass.api.context import api_state, context_of
from grass.api.payloads import (
    DISPLAY,
    cursor_of,
    job_filter,
    number,
    selector_words,
    sorting,
    switch,
)
from grass.api.routes.after_selectors import AfterSelectors
from grass.api.routes.broker_calls import do, named_job
from grass.api.routes.job_calls import (
    blobs_of,
    drop_callers_files,
    edit_call,
    enqueue_call,
    rerun_call,
)
from grass.api.routes.request_bodies import (
    CancelBody,
    EditBody,
    EnqueueBody,
    RerunBody,
    SelectBody,
    SelectedBody,
    SignalBody,
    WaitAllBody,
    WaitBody,
)
from grass.api.server.cancellation import while_connected
from grass.broker.core.calls import (
    Call,
    Cancel,
    ContinueJobs,
    Done,
    Enqueue,
    Enqueued,
    HoldJobs,
    PlanEnqueue,
    Planned,
    ReleaseJobs,
    SignalJobs,
    SuspendJobs,
)
from grass.broker.core.jobs.enqueue import answered
from grass.broker.shell.service import Broker
from grass.errors import TimedOut, UsageError
from grass.model.access import Right
from grass.model.ids import is_fresh
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.signals import check_sendable, signal_number
from grass.queries.documents import (
    EndsReply,
    EstimateReply,
    ExplainReply,
    JsonObject,
    SelectedReply,
)
from grass.queries.explanations import end_estimate, explanation
from grass.queries.job_documents import outcome_document
from grass.queries.listing import RECENT_SHOWN, RowLimits, is_ahead, listing
from grass.queries.selection import (
    check_known,
    in_states,
    job_of,
    reading,
    select,
    with_dependents,
)
from grass.queries.usage_documents import usage_fields
from grass.store.interface import JobFilter, Sorting

LARGEST_PAGE = 1000


async def enqueue(request: Request, body: EnqueueBody) -> Enqueued:
    """Add jobs; answered once they are durable."""
    broker = context_of(request).broker
    after = AfterSelectors(broker)
    await after.resolve_all(body)
    call = _enqueue_call(request, body)
    done = await _answered_before(broker, call)
    notes = after.notes
    if done is None:
        notes = [*notes, *await _check_engines(request, call)]
        done = await _added(broker, call)
    if not notes:
        return done
    return replace(done, hint="\n".join(filter(None, (*notes, done.hint))))


async def _check_engines(request: Request, call: Enqueue) -> list[str]:
    """Ask engines about jobs that are for one pool alone, before anything is added.

    Returns a line for each that could not be asked.
    """
    pools = context_of(request).pools
    if pools is not None and any(job.patch.pool for job in call.jobs):
        return await pools.check_jobs(call)
    return []


async def _added(broker: Broker, call: Enqueue) -> Enqueued:
    """Make the call, while the blobs that it names are held for it."""
    blobs = blobs_of(call)
    if not blobs:
        return await broker.call(call)
    async with broker.blobs.held(blobs):
        # That may have waited for a disk, and the same call may have come meanwhile.
        done = await _answered_before(broker, call)
        return await broker.call(call) if done is None else done


async def plan(request: Request, body: EnqueueBody) -> Planned:
    """Say what an enqueue would add, or why it would be refused; add nothing."""
    await AfterSelectors(context_of(request).broker).resolve_all(body)
    call = _enqueue_call(request, body)
    return await context_of(request).broker.call(PlanEnqueue(call, named=call.named))


def _enqueue_call(request: Request, body: EnqueueBody) -> Enqueue:
    jobs = (body.defaults, *body.jobs)
    has_max_fails = any(job.max_fails is not None for job in jobs)
    check_may_pause(request, has_max_fails=has_max_fails)
    if connection_of(request) is not None:
        drop_callers_files(body)
    context = context_of(request)
    return enqueue_call(body, actor(request), context.broker.state, context.settings)


async def _answered_before(broker: Broker, call: Enqueue) -> Enqueued | None:
    """Return the stored answer to a call with the same key, if it is an old one.

    Where other brokers may have led, their clocks tell nothing of what memory has.
    """
    key = call.key
    if key is None or (broker.lead is None and is_fresh(key, time.time())):
        return None
    known = await broker.read(lambda db: db.call(key))
    return None if known is None else answered(broker.state, known, call.actor)


async def page(request: Request) -> JsonObject:
    """Read a page of jobs, the newest first; `next` continues it.

    In the order `display` it is one view: running jobs, the next ones, the last ones.
    """
    query = request.query_params
    limit = number(query.get("limit"), 100, LARGEST_PAGE)
    if limit < 1:
        raise UsageError("a page holds at least one job")
    if query.get("order") == DISPLAY:
        return await while_connected(request, _view(request, limit))
    wanted, order = job_filter(query), sorting(query)
    if order is not None:
        return await while_connected(request, _sorted(request, wanted, order, limit))
    return await while_connected(request, _newest(request, wanted, limit))


async def _newest(request: Request, wanted: JobFilter, limit: int) -> JsonObject:
    query = request.query_params
    if wanted.before is None and wanted.after is None:
        await check_known(context_of(request).broker, selector_words(query))
    read = reading(context_of(request).broker, wanted.selection)
    found = await read(lambda db: db.jobs(wanted, limit + 1))
    usage = switch(query.get("usage"))
    shown = await presenter(request).jobs(viewer(request), found[:limit], usage=usage)
    more = found[limit - 1].job.id if len(found) > limit else None
    return {"jobs": shown, "next": more}


async def _sorted(
    request: Request, wanted: JobFilter, order: Sorting, limit: int
) -> JsonObject:
    """Read a page in the order of a column, and how many jobs match in all."""
    query, broker = request.query_params, context_of(request).broker
    if order.place is None:
        await check_known(broker, selector_words(query))
    read = reading(broker, wanted.selection)
    found = await read(lambda db: db.sorted_jobs(wanted, order, limit))
    usage = switch(query.get("usage"))
    shown = await presenter(request).jobs(viewer(request), found.jobs, usage=usage)
    return {"jobs": shown, "next": cursor_of(found.next), "total": found.totals}


async def _view(request: Request, limit: int) -> JsonObject:
    query, broker = request.query_params, context_of(request).broker
    await check_known(broker, selector_words(query))
    wanted = job_filter(query)
    members = wanted.selection.by_id or switch(query.get("members"))
    rows = RowLimits(limit, limit, min(RECENT_SHOWN, limit // 2), members, in_all=limit)
    read = reading(broker, wanted.selection)
    found = await read(lambda db: listing(db, wanted, rows))
    usage = switch(query.get("usage"))
    shown = await presenter(request).listing(viewer(request), found, usage=usage)
    return {**shown, "next": None}


async def one(request: Request) -> JsonObject:
    """Read one job."""
    found = [await named_job(request)]
    usage = switch(request.query_params.get("usage"))
    (shown,) = await presenter(request).jobs(viewer(request), found, usage=usage)
    return shown


async def explain(request: Request) -> ExplainReply:
    """Say why a job waits, with numbers, or how it ended."""
    broker, details = context_of(request).broker, await named_job(request)
    forgotten = await api_state(request).forgotten_names.of_jobs(broker, [details])
    return await explanation(broker, details, forgotten)


async def wait(request: Request, body: WaitBody) -> JsonObject:
    """Answer when all selected jobs have ended."""
    broker = context_of(request).broker
    ids = await select(broker, body.select, union=body.any)
    if any(broker.unfinished(job) for job in ids):
        waiting = asyncio.wait_for(broker.ended(ids), body.timeout_s)
        try:
            await while_connected(request, waiting)
        except TimeoutError:
            left = sum(job in broker.state.jobs for job in ids)
            what = f"{left} of {len(ids)} jobs are unfinished"
            what = f"job {ids[0]} is unfinished" if len(ids) == 1 else what
            raise TimedOut(what) from None
    found = await broker.read(lambda db: db.outcomes(ids))
    outcomes = [outcome_document(job) for job in found]
    if len(found) == 1:
        outcomes[0] |= usage_fields(await job_of(broker, str(found[0].id)), None)
    return {"jobs": outcomes}


async def wait_all(request: Request, body: WaitAllBody) -> EndsReply:
    """Answer when no job up to an id is unfinished, with how many ended how.

    The jobs are not listed, however many they are.
    """
    broker = context_of(request).broker
    waiting = asyncio.wait_for(broker.all_ended(body.up_to), body.timeout_s)
    try:
        await while_connected(request, waiting)
    except TimeoutError:
        ends = await broker.read(lambda db: db.ends_after(body.after, body.up_to))
        left = _unfinished(broker, body.up_to)
        total = left + sum(ends.values())
        raise TimedOut(f"{left} of {total} jobs are unfinished") from None
    return EndsReply(
        await broker.read(lambda db: db.ends_after(body.after, body.up_to))
    )


def _unfinished(broker: Broker, up_to: int) -> int:
    """Count the unfinished jobs up to an id; later ones are last in memory."""
    jobs = broker.state.jobs
    later = sum(1 for _ in takewhile(lambda job: job > up_to, reversed(jobs)))
    return len(jobs) - later


async def selected(request: Request, body: SelectedBody) -> SelectedReply:
    """Return the jobs that selectors mean now; nothing is changed."""
    broker = context_of(request).broker
    ids = await select(broker, body.select, union=body.any)
    if body.dependents:
        ids = await with_dependents(broker, ids)
    if body.states:
        ids = await in_states(broker, ids, body.states)
    return SelectedReply(ids, len(ids), _count_running(broker, ids))


def _count_running(broker: Broker, ids: list[int]) -> int:
    """Count the jobs that run; those that were only sent ahead do not."""
    jobs, attempts = broker.state.jobs, broker.state.attempts
    running = (
        jobs[one] for one in ids if one in jobs and jobs[one].state is JobState.RUNNING
    )
    return sum(not is_ahead(job, attempts.get(job.id)) for job in running)


async def estimate(request: Request, body: SelectBody) -> EstimateReply:
    """Tell when selected jobs may have ended, as far as earlier runs tell."""
    broker = context_of(request).broker
    ids = await select(broker, body.select, union=body.any)
    return await end_estimate(broker, ids)


async def cancel(request: Request, body: CancelBody) -> Done:
    """End jobs; answered once that is durable."""
    who, number = actor(request), signal_number(str(body.signal))
    return await _do_to(
        request,
        body,
        lambda ids: Cancel(who, ids, body.grace_s, number),
    )


async def hold(request: Request, body: SelectBody) -> Done:
    """Keep jobs from starting until they are released."""
    who = actor(request)
    return await _do_to(request, body, lambda ids: HoldJobs(who, ids))


async def release(request: Request, body: SelectBody) -> Done:
    """Let held jobs start when their turn comes."""
    who = actor(request)
    return await _do_to(request, body, lambda ids: ReleaseJobs(who, ids))


async def suspend(request: Request, body: SelectBody) -> Done:
    """Stop running jobs where they are; their units stay held."""
    who = actor(request)
    return await _do_to(request, body, lambda ids: SuspendJobs(who, ids))


async def go_on(request: Request, body: SelectBody) -> Done:
    """Let suspended jobs go on."""
    who = actor(request)
    return await _do_to(request, body, lambda ids: ContinueJobs(who, ids))


async def signal(request: Request, body: SignalBody) -> Done:
    """Send one signal to every process of running jobs."""
    who, number = actor(request), check_sendable(body.signal)
    return await _do_to(request, body, lambda ids: SignalJobs(who, ids, number))


async def rerun(request: Request, body: RerunBody) -> Done:
    """Give ended jobs a new attempt; older attempts and their output are kept."""
    who, state = actor(request), context_of(request).broker.state
    return await _do_to(
        request, body, lambda ids: rerun_call(body, who, ids, state.last_job)
    )


async def edit(request: Request, body: EditBody) -> Done:
    """Change jobs that have not started."""
    who, broker = actor(request), context_of(request).broker
    if body.before is not None:
        # Priorities of jobs ahead of it may change, too, also of other owners.
        require(request, Right.OPERATE)
    after = None
    if body.after:
        ids = await select(broker, body.select, union=body.any)
        after = AfterSelectors(broker, set(ids))
        body.after = await after.resolved(body.after)
    done = await _do_to(
        request,
        body,
        lambda ids: edit_call(body, who, ids, broker.state.last_job),
    )
    notes = [] if after is None else after.notes
    return replace(done, warnings=[*notes, *done.warnings]) if notes else done


async def _do_to(
    request: Request,
    body: SelectBody | EditBody | RerunBody,
    call_for: Callable[[list[int]], Call[Done]],
) -> Done:
    """Make a call about the selected jobs that the caller may change."""
    broker = context_of(request).broker
    ids = await select(broker, body.select, union=body.any)
    ids, left = await own_jobs(request, ids)
    call = call_for(ids)
    if not ids:
        return Done(changed=False)
    return await do(request, call, left)
