"""Routes for workers and their units: which there are, and which take new jobs."""

from starlette.requests import Request

from grass.api.access.auth import actor, identify, require
from grass.api.access.own_jobs import worker_for
from grass.api.access.viewers import feed_of
from grass.api.context import context_of
from grass.api.routes.broker_calls import do
from grass.api.routes.request_bodies import (
    AddCapacityBody,
    DrainWorkerBody,
    ForeignBody,
    ResumeBody,
    UnitBody,
)
from grass.api.routes.tokens import drop_revoked
from grass.api.server.cancellation import while_connected
from grass.broker.core.attempts.foreign_calls import EndForeign, KeepForeign
from grass.broker.core.calls import (
    AddUnits,
    Done,
    ForgetWorker,
    RemoveUnit,
    SetPaused,
    SetUnitDrained,
    SetWorkerDrained,
)
from grass.broker.core.workers import registry
from grass.errors import UsageError
from grass.model.access import Right
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.model.resources import capacity_from
from grass.model.worker import Worker
from grass.queries.cluster_documents import worker_document
from grass.queries.documents import DevicesReply, ForgottenReply, WorkersReply


async def page(request: Request) -> WorkersReply:
    """List workers: addresses, free units, last contact."""
    state = context_of(request).broker.state
    return WorkersReply([worker_document(one, state) for one in _seen(request)])


async def devices(request: Request) -> DevicesReply:
    """Ask workers for their GPUs: memory, utilisation, and who is on them."""
    asking = feed_of(request).readings.documents(_seen(request))
    return DevicesReply(await while_connected(request, asking))


def _seen(request: Request) -> list[Worker]:
    """Return the workers that the caller may see; a worker sees itself."""
    state, caller = context_of(request).broker.state, identify(request)
    return [
        one
        for one in state.workers.values()
        if Right.READ in caller.rights or one.id == caller.worker
    ]


async def drain(request: Request, body: DrainWorkerBody) -> Done:
    """Drain or resume a worker; running jobs finish."""
    name = str(request.path_params["name"])
    return await do(request, SetWorkerDrained(actor(request), name, body.on))


async def forget(request: Request) -> ForgottenReply:
    """Forget a worker; its running jobs are lost."""
    state = context_of(request).broker.state
    worker = registry.find(state, str(request.path_params["name"]))
    queues = [one.name for one in state.queues.values() if worker.id in one.views]
    reply = await do(request, ForgetWorker(actor(request), worker.id))
    drop_revoked(request)
    held = [id for id in reply.jobs if (job := state.jobs.get(id)) and _is_held(job)]
    return ForgottenReply(
        reply.jobs, reply.warnings, reply.changed, queues=queues, held=held
    )


async def end_foreign(request: Request, body: ForeignBody) -> Done:
    """Stop attempts that the worker runs and the database knows nothing of."""
    name = str(request.path_params["name"])
    return await do(request, EndForeign(actor(request), name, body.attempts))


async def keep_foreign(request: Request, body: ForeignBody) -> Done:
    """Let such attempts run to their end, without further reminders."""
    name = str(request.path_params["name"])
    return await do(request, KeepForeign(actor(request), name, body.attempts))


async def add_units(request: Request, body: AddCapacityBody) -> Done:
    """Add units to a worker besides those that were found."""
    capacity = capacity_from(body.capacity)
    if not any(capacity.values()):
        raise UsageError("no units were given", "write {gpu:{'4':1}}")
    worker = worker_for(request, body.worker)
    return await do(request, AddUnits(actor(request), worker, capacity))


async def remove_unit(request: Request, body: UnitBody) -> Done:
    """Remove an added unit that no job holds."""
    kind, unit = _unit(body.unit)
    worker = worker_for(request, body.worker)
    return await do(request, RemoveUnit(actor(request), worker, kind, unit))


async def drain_unit(request: Request, body: UnitBody) -> Done:
    """Drain a unit; running jobs finish."""
    return await _set_drained(request, body, drained=True)


async def resume(request: Request, body: ResumeBody) -> Done:
    """Start jobs again: of a queue, on a unit, or everywhere."""
    if body.unit is not None:
        if body.queue is not None:
            raise UsageError("a queue and a unit were given", "resume one of them")
        unit = UnitBody(body.unit, body.worker)
        return await _set_drained(request, unit, drained=False)
    require(request, Right.OPERATE)
    if body.worker is not None:
        raise UsageError("a worker without a unit was given", "name one, as in gpu:2")
    return await do(request, SetPaused(actor(request), False, body.queue))


async def _set_drained(request: Request, body: UnitBody, *, drained: bool) -> Done:
    kind, unit = _unit(body.unit)
    worker = worker_for(request, body.worker)
    call = SetUnitDrained(actor(request), worker, kind, unit, drained)
    return await do(request, call)


def _unit(text: str) -> tuple[str, str]:
    kind, _, unit = text.partition(":")
    if not kind or not unit:
        raise UsageError(f"`{text}` names no unit", "write gpu:2")
    return kind, unit


def _is_held(job: Job) -> bool:
    return job.state is JobState.HELD
