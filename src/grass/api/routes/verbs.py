"""Routes for what people do to jobs: each takes selectors and says what it touched."""

from collections.abc import Callable

from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.access.own_jobs import own_jobs
from grass.api.context import context_of
from grass.api.routes.broker_calls import do
from grass.api.routes.job_calls import edit_call, rerun_call
from grass.api.routes.request_bodies import CancelBody, EditBody, RerunBody, SelectBody
from grass.broker.core.calls import (
    Call,
    Cancel,
    ContinueJobs,
    Done,
    HoldJobs,
    ReleaseJobs,
    SuspendJobs,
)
from grass.errors import UsageError
from grass.queries.documents import DoneReply, SelectedReply
from grass.queries.selection import select

_LARGEST_SIGNAL = 64


async def selected(request: Request, body: SelectBody) -> SelectedReply:
    """Tell which jobs selectors mean now; nothing is changed."""
    ids = await select(context_of(request).broker, body.select)
    return SelectedReply(ids, len(ids))


async def cancel(request: Request, body: CancelBody) -> DoneReply:
    """End jobs; answered once the wish is durable."""
    if not 0 < body.signal <= _LARGEST_SIGNAL:
        raise UsageError(f"there is no signal {body.signal}")
    who = actor(request)
    return await _do_to(
        request,
        body.select,
        lambda ids: Cancel(who, ids, body.grace_s, body.signal),
    )


async def hold(request: Request, body: SelectBody) -> DoneReply:
    """Keep jobs from starting until they are released."""
    who = actor(request)
    return await _do_to(request, body.select, lambda ids: HoldJobs(who, ids))


async def release(request: Request, body: SelectBody) -> DoneReply:
    """Let held jobs start when their turn comes."""
    who = actor(request)
    return await _do_to(request, body.select, lambda ids: ReleaseJobs(who, ids))


async def suspend(request: Request, body: SelectBody) -> DoneReply:
    """Stop running jobs where they are; their units stay held."""
    who = actor(request)
    return await _do_to(request, body.select, lambda ids: SuspendJobs(who, ids))


async def go_on(request: Request, body: SelectBody) -> DoneReply:
    """Let suspended jobs go on."""
    who = actor(request)
    return await _do_to(request, body.select, lambda ids: ContinueJobs(who, ids))


async def rerun(request: Request, body: RerunBody) -> DoneReply:
    """Give ended jobs a new attempt; older attempts and their output are kept."""
    who, state = actor(request), context_of(request).broker.state
    return await _do_to(
        request, body.select, lambda ids: rerun_call(body, who, ids, state.last_job)
    )


async def edit(request: Request, body: EditBody) -> DoneReply:
    """Change jobs that have not started."""
    who, state = actor(request), context_of(request).broker.state
    return await _do_to(
        request, body.select, lambda ids: edit_call(body, who, ids, state.last_job)
    )


async def _do_to(
    request: Request, texts: list[str], call_for: Callable[[list[int]], Call[Done]]
) -> DoneReply:
    """Do something to the selected jobs, as far as they are the caller's to touch."""
    ids, left = await own_jobs(request, await select(context_of(request).broker, texts))
    call = call_for(ids)
    if not ids:
        return DoneReply(changed=False)
    return await do(request, call, left)
