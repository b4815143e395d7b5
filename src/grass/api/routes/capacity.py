"""Routes that change which units there are, and which of them take new jobs."""

from starlette.requests import Request

from grass.api.access.auth import actor, require
from grass.api.access.own_jobs import worker_for
from grass.api.routes.doing import do
from grass.api.routes.request_bodies import AddCapacityBody, ResumeBody, UnitBody
from grass.broker.core.calls import AddUnits, RemoveUnit, SetDrained, SetPaused
from grass.errors import UsageError
from grass.model.resources import capacity_from
from grass.model.rights import Right
from grass.queries.documents import DoneReply


async def add(request: Request, body: AddCapacityBody) -> DoneReply:
    """Give a worker units besides those that were found."""
    capacity = capacity_from(body.capacity)
    if not any(capacity.values()):
        raise UsageError("no units were given", "write {gpu:{'4':1}}")
    worker = worker_for(request, body.worker)
    return await do(request, AddUnits(actor(request), worker, capacity))


async def remove(request: Request, body: UnitBody) -> DoneReply:
    """Take a unit away that was added, once nobody holds it."""
    kind, unit = _unit(body.unit)
    worker = worker_for(request, body.worker)
    return await do(request, RemoveUnit(actor(request), worker, kind, unit))


async def drain(request: Request, body: UnitBody) -> DoneReply:
    """Start nothing new on a unit; running jobs finish."""
    return await _set_drained(request, body, drained=True)


async def resume(request: Request, body: ResumeBody) -> DoneReply:
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


async def _set_drained(request: Request, body: UnitBody, *, drained: bool) -> DoneReply:
    kind, unit = _unit(body.unit)
    worker = worker_for(request, body.worker)
    return await do(request, SetDrained(actor(request), worker, kind, unit, drained))


def _unit(text: str) -> tuple[str, str]:
    kind, _, unit = text.partition(":")
    if not kind or not unit:
        raise UsageError(f"`{text}` names no unit", "write gpu:2")
    return kind, unit
