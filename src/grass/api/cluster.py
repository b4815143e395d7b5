"""Routes about everything but jobs and units: overview, queues, the daemon."""

import asyncio
from functools import partial

from starlette.requests import Request

from grass.api.context import Context, context_of
from grass.api.editing import create_queue_call, edit_queue_call
from grass.api.jobs import present
from grass.api.peer import actor
from grass.api.presenting import (
    Document,
    daemon_document,
    queue_document,
    worker_document,
)
from grass.api.replies import ConfigReply, DoneReply, QueueReply, SettingReply
from grass.api.schemas import EditQueueBody, PauseBody, QueueBody, StopBody
from grass.broker import queues
from grass.broker.calls import Cancel, DeleteQueue, Done, SetPaused
from grass.errors import GrassError
from grass.model.lifecycle import ENDED, JobState
from grass.store import JobFilter, Order, Store
from grass.store.interface import JobDetails

RUNNING_SHOWN = 1000
WAITING_SHOWN = 20
RECENT_SHOWN = 10


async def overview(request: Request) -> Document:
    """Give the daemon, its workers and queues, and the jobs worth looking at."""
    context = context_of(request)
    queue = request.query_params.get("queue")
    state = context.broker.state
    if queue is not None:
        queues.find(state, queue)
    shown = [queues.find(state, queue)] if queue else list(state.queues.values())
    last_event = await context.broker.read(lambda db: db.last_event())
    return {
        "daemon": {
            **daemon_document(context.version, context.started_at, state),
            "last_event": last_event,
        },
        "workers": [worker_document(one, state) for one in state.workers.values()],
        "queues": [queue_document(one, state) for one in shown],
        "jobs": await _active_and_recent(context, queue),
    }


async def read_queue(request: Request) -> QueueReply:
    """Tell whether a queue exists, and whether its words are a prefix's arguments."""
    state = context_of(request).broker.state
    queue = queues.find(state, str(request.path_params["name"]))
    return QueueReply(queue.name, list(queue.prefix), queue.paused)


async def create_queue(request: Request, body: QueueBody) -> DoneReply:
    """Create a queue, or add this daemon's view; the same again is fine."""
    context = context_of(request)
    name = str(request.path_params["name"])
    call = create_queue_call(name, body, actor(request), context.worker)
    return _reply(await context.broker.call(call))


async def edit_queue(request: Request, body: EditQueueBody) -> DoneReply:
    """Change a queue, and this daemon's view of it."""
    context = context_of(request)
    name = str(request.path_params["name"])
    call = edit_queue_call(name, body, actor(request), context.worker)
    return _reply(await context.broker.call(call))


async def delete_queue(request: Request) -> DoneReply:
    """Remove a queue that has no unfinished jobs."""
    context = context_of(request)
    name = str(request.path_params["name"])
    call = DeleteQueue(actor(request), name, context.worker)
    return _reply(await context.broker.call(call))


async def pause(request: Request, body: PauseBody) -> DoneReply:
    """Start no more jobs; running ones run on."""
    call = SetPaused(actor(request), True, body.queue)
    return _reply(await context_of(request).broker.call(call))


async def stop(request: Request, body: StopBody) -> DoneReply:
    """Stop the daemon; running jobs go on unless they are to be ended too."""
    context, who = context_of(request), actor(request)
    ended: list[int] = []
    if body.jobs:
        ended = list(context.broker.state.attempts)
        context.broker.start_no_more()
        try:
            await context.broker.call(Cancel(who, ended))
        except GrassError:
            context.broker.start_again()
            raise
        await context.broker.ended(ended)
    asyncio.get_running_loop().call_soon(context.stop)
    return DoneReply(ended)


async def config(request: Request) -> ConfigReply:
    """Give the daemon's own settings, and where each comes from."""
    settings = context_of(request).settings.listed()
    return ConfigReply([SettingReply(**one) for one in settings])


async def _active_and_recent(context: Context, queue: str | None) -> list[Document]:
    """Running jobs, the next ones, and the last ones that ended."""
    pages = [
        (JobFilter((JobState.RUNNING,), queue, order=Order.NEXT), RUNNING_SHOWN),
        (JobFilter((JobState.QUEUED,), queue, order=Order.NEXT), WAITING_SHOWN),
        (JobFilter((JobState.WAITING,), queue, order=Order.NEXT), WAITING_SHOWN),
        (JobFilter((JobState.HELD,), queue, order=Order.NEXT), WAITING_SHOWN),
        (JobFilter(tuple(sorted(ENDED)), queue, order=Order.FINISHED), RECENT_SHOWN),
    ]
    found = []
    for wanted, limit in pages:
        found += await context.broker.read(partial(_page, wanted=wanted, limit=limit))
    return await present(context, found)


def _page(store: Store, wanted: JobFilter, limit: int) -> list[JobDetails]:
    return store.jobs(wanted, limit)


def _reply(done: Done) -> DoneReply:
    return DoneReply(done.jobs, done.warnings, done.changed)
