"""Routes for pools: workers that somebody else's scheduler starts."""

import secrets

from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.context import Context, context_of
from grass.api.routes.broker_calls import do
from grass.api.routes.request_bodies import PilotsBody, PoolBody
from grass.broker.core.calls import Done
from grass.broker.core.pools.pool_calls import find
from grass.broker.core.pools.requests import (
    AddPool,
    AskForPilots,
    LeavePilot,
    RemovePool,
    SetPoolPaused,
)
from grass.broker.shell.pools import PoolRunner
from grass.errors import Refused, UsageError
from grass.model import command_templates
from grass.model.pools import Pool, check_numbers, check_options
from grass.queries.documents import PilotLog, PoolLogsReply, PoolsReply, ScriptReply
from grass.queries.pool_documents import pilot_document, pool_documents


async def page(request: Request) -> PoolsReply:
    """List pools with their pilots, in the words of their engines."""
    state = context_of(request).broker.state
    return PoolsReply(pool_documents(state))


async def add(request: Request, body: PoolBody) -> Done:
    """Add a pool, once its engine has said that it would take its pilots."""
    pool = _pool(request, body)
    said = await _runner(context_of(request)).check(pool)
    done = await do(request, AddPool(pool.created_by, pool))
    return Done(changed=done.changed, warnings=[said] if said else [])


async def preview(request: Request, body: PoolBody) -> ScriptReply:
    """Show what the engine of a pool that is not added would be given."""
    return ScriptReply(_runner(context_of(request)).script(_pool(request, body)))


def _pool(request: Request, body: PoolBody) -> Pool:
    check_numbers(body)
    check_options(body)
    if body.template is not None:
        command_templates.check(body.template)
        if body.template.status is None and body.submit_prefix:
            raise UsageError(
                "a template without `status` needs a folder that the broker sees too",
                "give it `status`, `states` and `cancel`, or no submit_prefix",
            )
    given = {name: getattr(body, name) for name in body.__struct_fields__}
    return Pool(
        **given | {"environment": body.environment or body.usual_environment},
        created_at=context_of(request).broker.now_us(),
        created_by=actor(request),
        seed=secrets.token_hex(),
    )


async def pause(request: Request) -> Done:
    """Ask for no more pilots of a pool."""
    return await do(request, SetPoolPaused(actor(request), _name(request), True))


async def resume(request: Request) -> Done:
    """Ask for pilots of a pool again, with its refusals forgotten."""
    return await do(request, SetPoolPaused(actor(request), _name(request), False))


async def remove(request: Request) -> Done:
    """Have the pilots of a pool leave, and forget it with the last of them."""
    return await do(request, RemovePool(actor(request), _name(request)))


async def ask(request: Request, body: PilotsBody) -> Done:
    """Ask the engine of a pool for workers now, whether or not a job waits."""
    return await do(request, AskForPilots(actor(request), _name(request), body.count))


async def leave(request: Request) -> Done:
    """Have a pilot leave once its jobs have ended."""
    return await do(request, LeavePilot(actor(request), _name(request)))


async def script(request: Request) -> ScriptReply:
    """Show what the engine of a pool is given for one worker; nobody is asked."""
    context = context_of(request)
    pool = find(context.broker.state, _name(request))
    return ScriptReply(_runner(context).script(pool))


async def logs(request: Request) -> PoolLogsReply:
    """Show what the pilots of a pool printed, and what its engine says of them."""
    context = context_of(request)
    state = context.broker.state
    pool = find(state, _name(request))
    printed = await _runner(context).logs(pool)
    known = {one.mark: one for one in state.pools.pilots_of(pool.name)}
    gone = [PilotLog(mark, None, printed[mark]) for mark in printed.keys() - known]
    there = [
        PilotLog(mark, pilot_document(state, one), printed.get(mark, ""))
        for mark, one in known.items()
    ]
    order = list(printed)
    gone.sort(key=lambda one: order.index(one.mark))
    return PoolLogsReply(pool.name, pool.words, gone + there)


def _runner(context: Context) -> PoolRunner:
    if context.pools is None:
        raise Refused("this daemon has no queue, so it has no pools")
    return context.pools


def _name(request: Request) -> str:
    return str(request.path_params["name"])
