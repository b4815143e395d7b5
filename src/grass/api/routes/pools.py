"""Routes for pools: workers that somebody else's scheduler starts."""

import secrets

from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.context import Context, context_of
from grass.api.routes.broker_calls import do
from grass.api.routes.request_bodies import PilotsBody, PoolBody
from grass.broker.core.calls import Done
from grass.broker.core.pools.pool_calls import find
from grass.broker.core.pools.pool_memory import PoolMemory
from grass.broker.core.pools.requests import (
    AddPool,
    AskForPilots,
    LeavePilot,
    RemovePool,
    SetPoolPaused,
)
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.broker.shell.pools import PoolRunner
from grass.errors import Refused
from grass.model import command_templates
from grass.model.pools import Pilot, Pool, PoolEnvironment
from grass.model.times import rfc3339
from grass.queries.documents import PilotReply, PoolReply, PoolsReply, ScriptReply


async def page(request: Request) -> PoolsReply:
    """List pools with their pilots, in the words of their engines."""
    state = context_of(request).broker.state
    return PoolsReply([_document(state, one) for one in state.pools.pools.values()])


async def add(request: Request, body: PoolBody) -> Done:
    """Add a pool, once its engine has said that it would take its pilots."""
    context = context_of(request)
    runner = _runner(context)
    if body.template is not None:
        command_templates.check(body.template)
    who, now = actor(request), context.broker.now_us()
    given = {name: getattr(body, name) for name in body.__struct_fields__}
    pool = Pool(
        **given | {"environment": body.environment or _usual_environment(body)},
        created_at=now,
        created_by=who,
        seed=secrets.token_hex(),
    )
    said = await runner.check(pool)
    done = await do(request, AddPool(who, pool))
    return Done(changed=done.changed, warnings=[said] if said else [])


def _usual_environment(body: PoolBody) -> PoolEnvironment:
    """Return the caller's where workers have the same home directory.

    They read their tokens there, in files that only their owner can read: so they also
    are of the same user.
    """
    is_shared = not body.folder and not body.submit_prefix
    return PoolEnvironment.CALLER if is_shared else PoolEnvironment.SITE


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


def _runner(context: Context) -> PoolRunner:
    if context.pools is None:
        raise Refused("this daemon has no queue, so it has no pools")
    return context.pools


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _document(state: State, pool: Pool) -> PoolReply:
    memory: PoolMemory = state.pools
    pilots = [_pilot(state, one) for one in memory.pilots_of(pool.name)]
    return PoolReply(
        name=pool.name,
        engine=pool.engine,
        max_workers=pool.max_workers,
        idle_s=pool.idle_s,
        time_limit_s=pool.time_limit_s,
        mode=pool.mode.value,
        environment=pool.environment.value,
        cpus=pool.cpus,
        gpus=pool.gpus,
        memory_mib=pool.memory_mib,
        options=list(pool.options),
        paused=pool.paused,
        removing=pool.removing,
        refusals=pool.refusals,
        words=pool.words,
        retry_at=rfc3339(pool.retry_at),
        pilots=pilots,
    )


def _pilot(state: State, pilot: Pilot) -> PilotReply:
    report, worker = pilot.report, pilot.worker
    return PilotReply(
        mark=pilot.mark,
        stage=pilot.stage.value,
        asked_at=rfc3339(pilot.asked_at),
        engine_id=pilot.engine_id,
        word="" if report is None else report.word,
        reason="" if report is None else report.reason,
        place="" if report is None else report.place,
        expected_start="" if report is None else report.expected_start,
        worker=None if worker is None else registry.name_of(state, worker),
        connected=pilot.connected,
        by_hand=pilot.by_hand,
        job=pilot.job,
        ends_at=rfc3339(pilot.ends_at),
    )
