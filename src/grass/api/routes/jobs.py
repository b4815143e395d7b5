"""Routes that add jobs, read them, and wait for them."""

import asyncio
import time
from itertools import takewhile

from starlette.requests import Request

from grass.api.access.auth import actor, may
from grass.api.access.own_jobs import check_may_pause
from grass.api.bodies import job_filter, number
from grass.api.context import context_of, forgotten_names
from grass.api.routes.broker_calls import named_job
from grass.api.routes.job_calls import enqueue_call
from grass.api.routes.request_bodies import EnqueueBody, WaitAllBody, WaitBody
from grass.api.server.cancellation import while_connected
from grass.broker.core.calls import Enqueue, Enqueued
from grass.broker.core.jobs.enqueue import answered
from grass.broker.shell.service import Broker
from grass.errors import TimedOut, UsageError
from grass.model.access import Right
from grass.model.ids import is_fresh
from grass.queries.documents import Document, EndsReply, EnqueuedReply, ExplainReply
from grass.queries.explanations import explanation
from grass.queries.job_documents import job_document, outcome_document, without_values
from grass.queries.selection import check_known, select
from grass.store.interface import JobDetails

LARGEST_PAGE = 1000
SLICE = 100


async def enqueue(request: Request, body: EnqueueBody) -> EnqueuedReply:
    """Add jobs; answered once they are durable."""
    check_may_pause(request, body)
    broker = context_of(request).broker
    settings = context_of(request).settings
    call = enqueue_call(body, actor(request), broker.state, settings)
    done = await _answered_before(broker, call)
    if done is None:
        done = await broker.call(call)
    return EnqueuedReply(done.first, done.last, done.hint)


async def _answered_before(broker: Broker, call: Enqueue) -> Enqueued | None:
    """Find the answer to a call that was made, by its key, some time ago."""
    key = call.key
    if key is None or is_fresh(key, time.time()):
        return None
    known = await broker.read(lambda db: db.call(key))
    return None if known is None else answered(known, call.actor)


async def page(request: Request) -> Document:
    """Read a page of jobs, the newest first; `next` continues it."""
    query = request.query_params
    limit = number(query.get("limit"), 100, LARGEST_PAGE)
    if limit < 1:
        raise UsageError("a page holds at least one job")
    wanted = job_filter(query)
    if wanted.before is None and wanted.after is None:
        await check_known(context_of(request).broker, query.getlist("select"))
    found = await context_of(request).broker.read(lambda db: db.jobs(wanted, limit + 1))
    shown = await present(request, found[:limit])
    more = found[limit - 1].job.id if len(found) > limit else None
    return {"jobs": shown, "next": more}


async def one(request: Request) -> Document:
    """Read one job."""
    (shown,) = await present(request, [await named_job(request)])
    return shown


async def explain(request: Request) -> ExplainReply:
    """Say why a job waits, with numbers, or how it ended."""
    broker, details = context_of(request).broker, await named_job(request)
    forgotten = await forgotten_names(request).of_jobs(broker, [details])
    return await explanation(broker, details, forgotten)


async def wait(request: Request, body: WaitBody) -> Document:
    """Answer when all selected jobs have ended."""
    broker = context_of(request).broker
    ids = await select(context_of(request).broker, body.select)
    if any(broker.unfinished(job) for job in ids):
        waiting = asyncio.wait_for(broker.ended(ids), body.timeout_s)
        try:
            await while_connected(request, waiting)
        except TimeoutError:
            left = sum(job in broker.state.jobs for job in ids)
            raise TimedOut(f"{left} of {len(ids)} jobs are unfinished") from None
    found = await broker.read(lambda db: db.outcomes(ids))
    return {"jobs": [outcome_document(job) for job in found]}


async def wait_all(request: Request, body: WaitAllBody) -> EndsReply:
    """Answer when no job up to an id is unfinished, with how many ended how.

    However many those are, nobody lists them.
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
    """Count the unfinished jobs up to an id; those that came later stand at the end."""
    jobs = broker.state.jobs
    later = sum(1 for _ in takewhile(lambda job: job > up_to, reversed(jobs)))
    return len(jobs) - later


async def present(request: Request, found: list[JobDetails]) -> list[Document]:
    """Give jobs as documents, in slices: a long page must not hold up starts."""
    broker = context_of(request).broker
    who, sees_all = actor(request), may(request, Right.OPERATE)
    forgotten = await forgotten_names(request).of_jobs(broker, found)
    shown: list[Document] = []
    for begin in range(0, len(found), SLICE):
        state, now_s = broker.state, time.monotonic()
        for details in found[begin : begin + SLICE]:
            document = job_document(details, state, now_s, forgotten)
            if not sees_all and details.job.owner != who:
                document["command"] = without_values(details.job, document["command"])
            shown.append(document)
        await asyncio.sleep(0)
    return shown
