"""Routes about workers as a whole."""

from starlette.requests import Request

from grass.api.auth import actor, identify
from grass.api.context import context_of
from grass.api.presenting import worker_document
from grass.api.replies import DoneReply, WorkersReply
from grass.api.schemas import DrainWorkerBody
from grass.api.tokens import sweep
from grass.broker.calls import Call, Done, ForgetWorker, SetResting
from grass.model.rights import Right


async def page(request: Request) -> WorkersReply:
    """List the workers: where they are, what is free, when they were heard."""
    state, caller = context_of(request).broker.state, identify(request)
    seen = [
        one
        for one in state.workers.values()
        if Right.READ in caller.rights or one.id == caller.worker
    ]
    return WorkersReply([worker_document(one, state) for one in seen])


async def drain(request: Request, body: DrainWorkerBody) -> DoneReply:
    """Start nothing new on a worker, or do so again; running jobs finish."""
    name = str(request.path_params["name"])
    return await _do(request, SetResting(actor(request), name, body.on))


async def forget(request: Request) -> DoneReply:
    """Give up a worker that is gone for good; what ran there is lost."""
    name = str(request.path_params["name"])
    reply = await _do(request, ForgetWorker(actor(request), name))
    sweep(request)
    return reply


async def _do(request: Request, call: Call) -> DoneReply:
    done: Done = await context_of(request).broker.call(call)
    return DoneReply(done.jobs, done.warnings, done.changed)
