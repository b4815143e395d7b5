"""Routes about jobs: enqueue, read, cancel, wait, prune."""

import asyncio
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect, Request

from grass.api.context import Context, context_of
from grass.api.intake import enqueue_call
from grass.api.peer import actor
from grass.api.presenting import Document, job_document, outcome_document
from grass.api.schemas import (
    CancelBody,
    DoneReply,
    EnqueueBody,
    EnqueuedReply,
    PruneBody,
    PrunedReply,
    WaitBody,
)
from grass.broker.calls import Cancel, Enqueued, Prune
from grass.errors import NotFound, TimedOut, UsageError
from grass.link.messages import RemoveOutput
from grass.model import selectors
from grass.model.lifecycle import ENDED, UNFINISHED, JobState
from grass.store import JobFilter, Order, Store
from grass.store.interface import JobDetails

LARGEST_PAGE = 1000
PRUNE_BATCH = 5000


async def enqueue(request: Request, body: EnqueueBody) -> EnqueuedReply:
    """Add jobs; answered once they are durable."""
    call = enqueue_call(body, actor(request))
    done: Enqueued = await context_of(request).broker.call(call)
    return EnqueuedReply(done.first, done.last, done.hint)


async def page(request: Request) -> Document:
    """Read a page of jobs, the newest first; `next` continues it."""
    query = request.query_params
    limit = _number(query.get("limit"), 100, LARGEST_PAGE)
    if limit < 1:
        raise UsageError("a page holds at least one job")
    wanted = JobFilter(
        states=_states(query.getlist("state")),
        queue=query.get("queue"),
        before=_number(query.get("before"), 0, 2**62) or None,
        after=_number(query.get("after"), 0, 2**62) or None,
        order=_order(query.get("order", Order.NEWEST)),
    )
    found = await context_of(request).broker.read(lambda db: db.jobs(wanted, limit + 1))
    shown = present(context_of(request), found[:limit])
    more = found[limit - 1].job.id if len(found) > limit else None
    return {"jobs": shown, "next": more}


async def one(request: Request) -> Document:
    """Read one job."""
    return present(context_of(request), [await job_of(request)])[0]


async def cancel(request: Request, body: CancelBody) -> DoneReply:
    """End jobs; answered once the wish is durable."""
    broker = context_of(request).broker
    ids = await select(request, body.select)
    if not 0 < body.signal < 65:
        raise UsageError(f"there is no signal {body.signal}")
    call = Cancel(actor(request), ids, body.grace_s, body.signal)
    done = await broker.call(call)
    return DoneReply(done.jobs)


async def wait(request: Request, body: WaitBody) -> Document:
    """Answer when all selected jobs have ended."""
    context = context_of(request)
    ids = await select(request, body.select)
    waiting = asyncio.wait_for(context.broker.ended(ids), body.timeout_s)
    try:
        await unless_disconnected(request, waiting)
    except TimeoutError:
        left = sum(job in context.broker.state.jobs for job in ids)
        raise TimedOut(f"{left} of {len(ids)} jobs are unfinished") from None
    found = await context.broker.read(lambda db: db.outcomes(ids))
    return {"jobs": [outcome_document(job) for job in found]}


async def prune(request: Request, body: PruneBody) -> PrunedReply:
    """Forget ended jobs with their output."""
    context, who = context_of(request), actor(request)
    before = time.time_ns() // 1000 - int(body.older_s * 1_000_000)
    if body.dry_run:
        return PrunedReply(
            *await context.broker.read(lambda db: db.usage_before(before))
        )
    async with context.broker.pruning:
        return await _prune(context, who, before)


async def _prune(context: Context, who: str, before: int) -> PrunedReply:
    total = PrunedReply(0, 0)
    while True:
        found = await context.broker.read(lambda db: _old(db, before))
        size = sum(a.output_bytes for details in found for a in details.attempts)
        total.jobs += len(found)
        total.output_bytes += size
        if not found:
            return total
        states = {details.job.id: details.job.state for details in found}
        await context.broker.call(Prune(who, states, size))
        _remove_output(context, found)


def _old(store: Store, before: int) -> list[JobDetails]:
    return store.details(store.finished_before(before, PRUNE_BATCH))


def present(context: Context, found: list[JobDetails]) -> list[Document]:
    """Give jobs as documents."""
    state, now_s = context.broker.state, time.monotonic()
    return [job_document(details, state, now_s) for details in found]


async def select(request: Request, texts: list[str]) -> list[int]:
    """Resolve selectors; an id that never existed is an error, an empty set is not."""
    if not texts:
        raise UsageError("no job was named", "give an id, a range, or `all`")
    selections = [selectors.read(text) for text in texts]
    broker = context_of(request).broker
    for text, selection in zip(texts, selections, strict=True):
        if selection.ids is not None or selection.last:
            found = await broker.read(partial(_selected, selections=[selection]))
            if not found:
                hint = "`grass show --all` lists all"
                raise NotFound(f"there is no job {text}", hint)
    return await broker.read(partial(_selected, selections=selections))


def _selected(store: Store, selections: list[selectors.Selection]) -> list[int]:
    return store.select(selections)


async def job_of(request: Request) -> JobDetails:
    """Find the one job that the path names."""
    text = str(request.path_params["id"])
    ids = await select(request, [text])
    if len(ids) != 1:
        raise UsageError(f"`{text}` selects {len(ids)} jobs", "name one")
    found = await context_of(request).broker.read(lambda db: db.details(ids))
    if not found:
        raise NotFound(f"there is no job {text}")
    return found[0]


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, Any]) -> None:
    """Do the work, but drop it when the caller hangs up."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _remove_output(context: Context, found: list[JobDetails]) -> None:
    paths: dict[str, list[str]] = {}
    for details in found:
        for attempt in details.attempts:
            if attempt.output is not None and details.spec.output is None:
                paths.setdefault(attempt.worker, []).append(attempt.output)
    for worker, files in paths.items():
        context.broker.send(worker, RemoveOutput(files))


def _states(texts: list[str]) -> tuple[JobState, ...]:
    states: list[JobState] = []
    for text in texts:
        if text == "unfinished":
            states += sorted(UNFINISHED)
        elif text == "ended":
            states += sorted(ENDED)
        else:
            states += [s for s in [selectors.read(f"state:{text}").state] if s]
    return tuple(states)


def _order(text: str) -> Order:
    if text not in (Order.NEWEST, Order.OLDEST):
        raise UsageError(f"`{text}` is not an order", "use newest or oldest")
    return Order(text)


def _number(text: str | None, default: int, largest: int) -> int:
    if text is None:
        return default
    if not text.isdecimal() or int(text) > largest:
        raise UsageError(f"`{text}` is not a number up to {largest}")
    return int(text)
