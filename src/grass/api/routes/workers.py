"""Routes about workers as a whole."""

from starlette.requests import Request

from grass.api.access.auth import actor, identify
from grass.api.context import context_of
from grass.api.routes.doing import do
from grass.api.routes.request_bodies import DrainWorkerBody
from grass.api.routes.tokens import sweep
from grass.broker.core.calls import ForgetWorker, SetResting
from grass.broker.core.workers import registry
from grass.model.job import Job
from grass.model.lifecycle import JobState
from grass.model.rights import Right
from grass.queries.cluster_documents import worker_document
from grass.queries.documents import DoneReply, ForgottenReply, WorkersReply


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
    return await do(request, SetResting(actor(request), name, body.on))


async def forget(request: Request) -> ForgottenReply:
    """Give up a worker that is gone for good; what ran there is lost."""
    state = context_of(request).broker.state
    worker = registry.find(state, str(request.path_params["name"]))
    queues = [one.name for one in state.queues.values() if worker.id in one.views]
    reply = await do(request, ForgetWorker(actor(request), worker.id))
    sweep(request)
    held = [id for id in reply.jobs if (job := state.jobs.get(id)) and _is_held(job)]
    return ForgottenReply(reply.jobs, reply.warnings, reply.changed, queues, held)


def _is_held(job: Job) -> bool:
    return job.state is JobState.HELD
