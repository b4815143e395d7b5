"""Calls to the broker that most routes make."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace
from starlette.requests import Request

from grass.api.context import api_state, context_of
from grass.broker.core.calls import Call, Done
from grass.errors import Stopping
from grass.queries.selection import job_of
from grass.store.interface import JobDetails


async def named_job(request: Request) -> JobDetails:
    """Return the job that the path names."""
    return await job_of(context_of(request).broker, str(request.path_params["id"]))


async def do(request: Request, call: Call[Done], warnings: Sequence[str] = ()) -> Done:
    """Make a call; `warnings` go before those of the broker."""
    try:
        done = await context_of(request).broker.call(call)
    except asyncio.CancelledError:
        if not api_state(request).closing.is_set():
            raise
        # The server cancels requests that take longer than a stop may.
        raise Stopping(
            "the daemon stops, and may not have reached all jobs",
            "do it again once it is started: what was done already is passed over",
        ) from None
    return replace(done, warnings=[*warnings, *done.warnings])
