"""Calls to the broker that most routes make."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace
from starlette.requests import HTTPConnection, Request

from grass.api.context import api_state, context_of
from grass.broker.core.calls import Call, Done
from grass.broker.shell.service import Broker
from grass.errors import Stopping, Unreachable
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState
from grass.queries.constraints import absence, is_unreachable
from grass.queries.selection import job_of
from grass.store.interface import JobDetails


async def named_job(request: HTTPConnection) -> JobDetails:
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


async def running_attempt(broker: Broker, job: int) -> Attempt | None:
    """Wait until a job runs, and return its attempt; None when it has ended."""
    while job in broker.state.jobs:
        live = broker.state.attempts.get(job)
        if live is None:
            await broker.moved(job)
        elif is_unreachable(broker.state, live):
            state = broker.state
            worker = state.workers.get(live.worker)
            gone = "its worker was forgotten"
            away = gone if worker is None else absence(state, worker)
            raise Unreachable(away, f"job {job} runs there")
        elif live.state is AttemptState.RUNNING and live.after is None:
            return live
        else:
            await broker.next_commit()
    return None
