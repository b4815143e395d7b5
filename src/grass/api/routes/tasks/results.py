"""The route that reads the result of a task, as bytes that the broker never opens.

The header `Grass-Own` says whether the caller enqueued the job: a client unpickles only
results of its own jobs. `Grass-Owner` names who did, `Grass-State` how the job ended.
"""

import asyncio
from struct import Struct

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.access.auth import actor
from grass.api.context import context_of
from grass.api.payloads import number, seconds
from grass.api.routes.output.output_bytes import MEDIA_TYPE, until_error
from grass.api.routes.request_bodies import ResultsBody
from grass.api.server.cancellation import while_connected
from grass.broker.shell.service import Broker
from grass.errors import TimedOut, UsageError
from grass.queries import results

LONGEST_WAIT_S = 1e9
MOST_JOBS = 1000
HEAD = Struct("<QBQ")
"""Before each of several results: the job, 1 if it is the caller's, and the size."""

__all__ = ["MEDIA_TYPE", "result", "small"]


async def result(request: Request) -> Response:
    """Send what a task returned or raised; with `wait`, once it has ended."""
    broker, job = context_of(request).broker, number(request.path_params["id"], 0)
    wait_s = seconds(request.query_params.get("wait"), 0.0, LONGEST_WAIT_S)
    results.check_task(broker, job)
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
    if len(data) < results.CHUNK:
        return Response(data, media_type=MEDIA_TYPE, headers=headers)
    pieces = until_error(results.pieces(broker, source, data))
    return StreamingResponse(pieces, media_type=MEDIA_TYPE, headers=headers)


async def small(request: Request, body: ResultsBody) -> Response:
    """Send the small results of many tasks: number, whose it is, size and bytes.

    Those that have not ended, have none or a large one are left out.
    """
    if len(body.jobs) > MOST_JOBS:
        raise UsageError(f"{len(body.jobs):,} jobs", f"name at most {MOST_JOBS:,}")
    broker, who, content = context_of(request).broker, actor(request), bytearray()
    async for details, result in results.small_results(broker, body.jobs):
        is_own = details.job.owner == who
        content += HEAD.pack(details.job.id, is_own, len(result))
        content += result
    return Response(bytes(content), media_type=MEDIA_TYPE)


async def _end(broker: Broker, job: int, wait_s: float) -> None:
    try:
        await asyncio.wait_for(broker.ended([job]), wait_s)
    except TimeoutError:
        raise TimedOut(
            f"job {job} has not ended within {round(wait_s, 2):g} s"
        ) from None
