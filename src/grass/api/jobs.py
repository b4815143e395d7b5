"""Routes that add jobs, read them, and wait for them."""

import asyncio
import time

from starlette.requests import Request

from grass.api.context import Context, context_of
from grass.api.intake import enqueue_call
from grass.api.interrupting import unless_interrupted
from grass.api.peer import actor
from grass.api.presenting import Document, job_document, outcome_document
from grass.api.queries import job_filter, number
from grass.api.replies import EnqueuedReply
from grass.api.schemas import EnqueueBody, WaitBody
from grass.api.selecting import check_known, job_of, select
from grass.broker.calls import Enqueued
from grass.errors import TimedOut, UsageError
from grass.store.interface import JobDetails

LARGEST_PAGE = 1000
SLICE = 100


async def enqueue(request: Request, body: EnqueueBody) -> EnqueuedReply:
    """Add jobs; answered once they are durable."""
    broker = context_of(request).broker
    settings = context_of(request).settings
    call = enqueue_call(body, actor(request), broker.state, settings)
    done: Enqueued = await broker.call(call)
    return EnqueuedReply(done.first, done.last, done.hint)


async def page(request: Request) -> Document:
    """Read a page of jobs, the newest first; `next` continues it."""
    query = request.query_params
    limit = number(query.get("limit"), 100, LARGEST_PAGE)
    if limit < 1:
        raise UsageError("a page holds at least one job")
    wanted = job_filter(query)
    if wanted.before is None and wanted.after is None:
        await check_known(request, query.getlist("select"))
    found = await context_of(request).broker.read(lambda db: db.jobs(wanted, limit + 1))
    shown = await present(context_of(request), found[:limit])
    more = found[limit - 1].job.id if len(found) > limit else None
    return {"jobs": shown, "next": more}


async def one(request: Request) -> Document:
    """Read one job."""
    (shown,) = await present(context_of(request), [await job_of(request)])
    return shown


async def wait(request: Request, body: WaitBody) -> Document:
    """Answer when all selected jobs have ended."""
    broker = context_of(request).broker
    ids = await select(request, body.select)
    if any(broker.unfinished(job) for job in ids):
        waiting = asyncio.wait_for(broker.ended(ids), body.timeout_s)
        try:
            await unless_interrupted(request, waiting)
        except TimeoutError:
            left = sum(job in broker.state.jobs for job in ids)
            raise TimedOut(f"{left} of {len(ids)} jobs are unfinished") from None
    found = await broker.read(lambda db: db.outcomes(ids))
    return {"jobs": [outcome_document(job) for job in found]}


async def present(context: Context, found: list[JobDetails]) -> list[Document]:
    """Give jobs as documents, in slices: a long page must not hold up starts."""
    shown: list[Document] = []
    for begin in range(0, len(found), SLICE):
        state, now_s = context.broker.state, time.monotonic()
        part = found[begin : begin + SLICE]
        shown += [job_document(details, state, now_s) for details in part]
        await asyncio.sleep(0)
    return shown
