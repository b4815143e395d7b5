"""The route that reads the result of a task, as bytes that the broker never opens.

The header `Grass-Own` says whether the caller enqueued the job: a client unpickles only
results of its own jobs. `Grass-Owner` names who did, `Grass-State` how the job ended.
"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.access.auth import actor
from grass.api.context import context_of
from grass.api.payloads import number, seconds
from grass.api.routes.output import MEDIA_TYPE, until_error
from grass.api.server.cancellation import while_connected
from grass.broker.shell.service import Broker
from grass.errors import TimedOut
from grass.queries import results
from grass.queries.output import output_sources

LONGEST_WAIT_S = 1e9

__all__ = ["MEDIA_TYPE", "result"]


async def result(request: Request) -> Response:
    """Send what a task returned or raised; with `wait`, once it has ended."""
    broker, job = context_of(request).broker, number(request.path_params["id"], 0)
    wait_s = seconds(request.query_params.get("wait"), 0.0, LONGEST_WAIT_S)
    if wait_s and broker.unfinished(job):
        await while_connected(request, _end(broker, job, wait_s))
    details = await results.ended_job(broker, job)
    source, data = await results.first_piece(broker, details)
    owner = details.job.owner
    headers = {
        "Grass-Owner": owner,
        "Grass-Own": "1" if owner == actor(request) else "0",
        "Grass-State": details.job.state,
    }
    pieces = output_sources.pieces(broker, source, 0, data)
    return StreamingResponse(
        until_error(pieces), media_type=MEDIA_TYPE, headers=headers
    )


async def _end(broker: Broker, job: int, wait_s: float) -> None:
    try:
        await asyncio.wait_for(broker.ended([job]), wait_s)
    except TimeoutError:
        raise TimedOut(f"job {job} has not ended within {wait_s:g} s") from None
