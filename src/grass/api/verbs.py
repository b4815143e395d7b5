"""Routes for what people do to jobs: each takes selectors and says what it touched."""

from starlette.requests import Request

from grass.api.context import context_of
from grass.api.editing import edit_call, rerun_call
from grass.api.peer import actor
from grass.api.replies import DoneReply, SelectedReply
from grass.api.schemas import CancelBody, EditBody, RerunBody, SelectBody
from grass.api.selecting import select
from grass.broker.calls import Call, Cancel, Continue, Done, Hold, Release, Suspend
from grass.errors import UsageError

_LARGEST_SIGNAL = 64


async def selected(request: Request, body: SelectBody) -> SelectedReply:
    """Tell which jobs selectors mean now; nothing is changed."""
    ids = await select(request, body.select)
    return SelectedReply(ids, len(ids))


async def cancel(request: Request, body: CancelBody) -> DoneReply:
    """End jobs; answered once the wish is durable."""
    if not 0 < body.signal <= _LARGEST_SIGNAL:
        raise UsageError(f"there is no signal {body.signal}")
    ids = await select(request, body.select)
    return await _do(
        request, Cancel(actor(request), ids, body.grace_s, body.signal), ids
    )


async def hold(request: Request, body: SelectBody) -> DoneReply:
    """Keep jobs from starting until they are released."""
    ids = await select(request, body.select)
    return await _do(request, Hold(actor(request), ids), ids)


async def release(request: Request, body: SelectBody) -> DoneReply:
    """Let held jobs start when their turn comes."""
    ids = await select(request, body.select)
    return await _do(request, Release(actor(request), ids), ids)


async def suspend(request: Request, body: SelectBody) -> DoneReply:
    """Stop running jobs where they are; their units stay held."""
    ids = await select(request, body.select)
    return await _do(request, Suspend(actor(request), ids), ids)


async def go_on(request: Request, body: SelectBody) -> DoneReply:
    """Let suspended jobs go on."""
    ids = await select(request, body.select)
    return await _do(request, Continue(actor(request), ids), ids)


async def rerun(request: Request, body: RerunBody) -> DoneReply:
    """Give ended jobs a new attempt; older attempts and their output are kept."""
    ids = await select(request, body.select)
    return await _do(request, rerun_call(body, actor(request), ids), ids)


async def edit(request: Request, body: EditBody) -> DoneReply:
    """Change jobs that have not started."""
    ids = await select(request, body.select)
    last_job = context_of(request).broker.state.last_job
    return await _do(request, edit_call(body, actor(request), ids, last_job), ids)


async def _do(request: Request, call: Call, ids: list[int]) -> DoneReply:
    if not ids:
        return DoneReply(changed=False)
    done: Done = await context_of(request).broker.call(call)
    return DoneReply(done.jobs, done.warnings, done.changed)
