"""What most routes do: make a call to the broker, and say what came of it."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request

from grass.api.context import context_of
from grass.broker.core.calls import Call, Done
from grass.errors import Stopping
from grass.queries.documents import DoneReply
from grass.queries.selection import job_of
from grass.store.interface import JobDetails


async def named_job(request: Request) -> JobDetails:
    """Find the one job that the path names."""
    return await job_of(context_of(request).broker, str(request.path_params["id"]))


async def do(request: Request, call: Call[Done], said: Sequence[str] = ()) -> DoneReply:
    """Make a call; `said` goes before what the broker has to say."""
    try:
        done = await context_of(request).broker.call(call)
    except asyncio.CancelledError:
        if not request.app.state.closing.is_set():
            raise
        # The server gives up what takes longer than a stop may: the caller is told.
        raise Stopping(
            "the daemon stops, and may not have reached all jobs",
            "do it again once it is started: what was done already is passed over",
        ) from None
    return DoneReply(done.jobs, [*said, *done.warnings], done.changed)
