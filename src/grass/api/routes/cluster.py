"""Routes for the overview, queues, the daemon and its machine."""

import asyncio
import socket
import time
from functools import partial

from starlette.requests import Request

from grass.api.access.auth import actor, may
from grass.api.access.own_jobs import check_queue_is_own, worker_for
from grass.api.access.viewers import daemon_facts, presenter, viewer
from grass.api.context import context_of
from grass.api.payloads import switch
from grass.api.routes.broker_calls import do
from grass.api.routes.request_bodies import (
    EditQueueBody,
    PauseBody,
    QueueBody,
    StopBody,
)
from grass.api.server.cancellation import while_connected
from grass.broker.core.calls import (
    Cancel,
    CreateQueue,
    DeleteQueue,
    Done,
    EditQueue,
    SetPaused,
)
from grass.broker.core.jobs import queues
from grass.broker.shell.service import Broker
from grass.errors import GrassError, NotFound, UsageError
from grass.model.access import Right
from grass.model.brokers import BrokerPresence, Lease, SeenBroker
from grass.model.field_readers import read_fields
from grass.model.jobs.spec import given
from grass.model.queue import QUEUE_READERS, QueuePatch
from grass.model.resources import check_name
from grass.queries.broker_documents import BrokersReply, brokers_document
from grass.queries.constraints import is_unreachable
from grass.queries.documents import (
    ConfigReply,
    JsonObject,
    QueueReply,
    SettingReply,
)
from grass.queries.listing import picture

HIDDEN = "hidden"


async def overview(request: Request) -> JsonObject:
    """Return the daemon, workers, queues, and running, next and last jobs."""
    context = context_of(request)
    queue = request.query_params.get("queue")
    state = context.broker.state
    every = list(state.queues.values())
    shown = every if queue is None else [queues.find(state, queue)]
    members = switch(request.query_params.get("members"))
    usage = switch(request.query_params.get("usage"))
    found = await context.broker.read(partial(picture, queue=queue, members=members))
    return await presenter(request).overview(
        viewer(request), daemon_facts(context), found, shown, usage=usage
    )


async def read_queue(request: Request) -> QueueReply:
    """Return a queue's command prefix and whether it is paused."""
    state = context_of(request).broker.state
    queue = queues.find(state, str(request.path_params["name"]))
    return QueueReply(queue.name, list(queue.prefix), queue.paused)


async def create_queue(request: Request, body: QueueBody) -> Done:
    """Create a queue, or add this daemon's view; the same again is fine."""
    context = context_of(request)
    name = str(request.path_params["name"])
    check_name(name, "queue")
    fields = read_fields(given(body), QUEUE_READERS)
    limits = {one: fields.get(one) for one in queues.OF_THE_QUEUE}
    asked = {one: value for one, value in limits.items() if value is not None}
    check_queue_is_own(request, context.broker.state.queues.get(name), asked)
    worker = worker_for(request)
    return await do(
        request, CreateQueue(actor(request), name, worker, QueuePatch(**fields))
    )


async def edit_queue(request: Request, body: EditQueueBody) -> Done:
    """Change a queue, and this daemon's view of it."""
    context = context_of(request)
    name = str(request.path_params["name"])
    fields = read_fields(given(body), QUEUE_READERS)
    if not fields:
        raise UsageError("nothing to change was given", "for example --max-running 4")
    changed = {k: v for k, v in fields.items() if k in queues.OF_THE_QUEUE}
    check_queue_is_own(request, context.broker.state.queues.get(name), changed)
    worker = worker_for(request)
    return await do(
        request, EditQueue(actor(request), name, worker, QueuePatch(**fields))
    )


async def delete_queue(request: Request) -> Done:
    """Remove a queue that has no unfinished jobs."""
    name = str(request.path_params["name"])
    return await do(request, DeleteQueue(actor(request), name, worker_for(request)))


async def pause(request: Request, body: PauseBody) -> Done:
    """Start no more jobs; running ones run on."""
    return await do(request, SetPaused(actor(request), True, body.queue))


async def stop(request: Request, body: StopBody) -> Done:
    """Stop the daemon; running jobs go on unless they are to be ended too."""
    context, who = context_of(request), actor(request)
    ended = await _end_jobs(context.broker, who) if body.jobs else []
    asyncio.get_running_loop().call_soon(context.stop)
    return Done(ended)


async def _end_jobs(broker: Broker, who: str) -> list[int]:
    """Cancel running jobs, and return those that have ended.

    Jobs on unreachable workers are cancelled when those connect again.
    """
    running = list(broker.state.attempts.values())
    broker.stop_starting()
    try:
        await broker.call(Cancel(who, [one.job for one in running]))
    except GrassError:
        broker.resume_starting()
        raise
    for one in running:
        while broker.unfinished(one.job) and not is_unreachable(broker.state, one):
            await broker.next_commit()
    return [one.job for one in running if not broker.unfinished(one.job)]


async def config(request: Request) -> ConfigReply:
    """Return the daemon's settings, and where each comes from."""
    shown = [SettingReply(**one) for one in context_of(request).settings.listed()]
    if not may(request, Right.ADMIN):
        # A command may contain secrets.
        for one in shown:
            if one.name.startswith("notify.") and one.value is not None:
                one.value = HIDDEN
    return ConfigReply(shown)


async def brokers(request: Request) -> BrokersReply:
    """List the brokers of the cluster: which one leads, and which stand by."""
    context = context_of(request)
    if context.broker.lead is not None:
        seen, lease = await context.broker.read(lambda db: (db.brokers(), db.lease()))
        return brokers_document(seen, lease)
    alone = BrokerPresence(
        id=context.worker or "broker",
        name=socket.gethostname(),
        address="" if context.tcp is None else context.tcp.address,
        version=context.version,
        started_at=context.started_at,
    )
    lease = Lease(holder=alone.id, remaining_s=1.0, led_s=_age_s(context.started_at))
    return brokers_document([SeenBroker(broker=alone)], lease)


def _age_s(at_us: int) -> float:
    return max(0.0, time.time() - at_us / 1e6)


async def doctor(request: Request) -> JsonObject:
    """Check what grass needs on the daemon's machine."""
    findings = context_of(request).findings
    if findings is None:
        raise NotFound("nothing checks this daemon's machine")
    return await while_connected(request, findings())
