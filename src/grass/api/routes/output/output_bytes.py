"""The route that reads a job's output: all of it, its last lines, or as it is written.

The header `Grass-Begin` has the attempt and the byte at which a reply begins. A client
sends it back as `begin` to continue there, for example after a restart of the daemon.

An unreachable worker is an error before the reply begins, and aborts the stream after
that: the client asks again and gets the error.
"""

from collections.abc import AsyncIterator

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.context import api_state, context_of
from grass.api.payloads import number, switch
from grass.api.routes.broker_calls import named_job
from grass.api.server.cancellation import StreamAborted, until_stop, while_connected
from grass.errors import GrassError, NotFound
from grass.model.jobs.job import Attempt
from grass.queries.output import output_following, output_sources
from grass.queries.output.output_sources import OutputSource
from grass.store.interface import JobDetails

BEGIN_HEADER = "Grass-Begin"
MEDIA_TYPE = "application/octet-stream"


async def output(request: Request) -> Response:
    """Send what an attempt wrote; with `follow`, until the job has ended."""
    query = request.query_params
    broker = context_of(request).broker
    follow = switch(query.get("follow"))
    details = await named_job(request)
    begun, offset = _begin(query.get("begin"))
    only = _attempt(query)
    wanted = begun if only is None else only
    if follow:
        starting = output_following.started(broker, details.job.id, wanted)
        details, first = await while_connected(request, starting)
    else:
        first = output_sources.chosen(broker, details, wanted)
    stream = _stream(query)
    source = _source(details, first, stream)
    if offset is None:
        offset = await output_sources.beginning(
            broker, source, _lines(query.get("tail"))
        )
    offset = max(offset, source.begin)
    if not follow:
        data = await output_sources.read(broker, source, offset)
        pieces = output_sources.pieces(broker, source, offset, data)
    elif only is not None:
        data = await output_sources.read(broker, source, offset)
        pieces = output_following.followed(broker, source, offset, data)
    else:
        data = await output_following.first_piece(broker, source, offset)
        pieces = output_following.all_followed(broker, source, offset, stream, data)
    pieces = until_error(pieces)
    if follow:
        pieces = until_stop(api_state(request).closing, pieces)
    headers = {BEGIN_HEADER: f"{first.number}:{offset}"}
    return StreamingResponse(pieces, media_type=MEDIA_TYPE, headers=headers)


def wanted_source(request: Request, details: JobDetails) -> OutputSource:
    """Return the stream that a request asks for, of the last attempt if of none."""
    query, broker = request.query_params, context_of(request).broker
    attempt = output_sources.chosen(broker, details, _attempt(query))
    return _source(details, attempt, _stream(query))


def _source(details: JobDetails, attempt: Attempt, stream: str) -> OutputSource:
    source = output_sources.source_of(attempt, stream)
    if source is None:
        raise _no_output(details, stream)
    return source


def _begin(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    attempt, _, offset = text.partition(":")
    return number(attempt, 0), number(offset, 0)


def _attempt(query: QueryParams) -> int | None:
    text = query.get("attempt")
    return number(text, 0) if text else None


def _stream(query: QueryParams) -> str:
    return "stderr" if query.get("stream") == "stderr" else "output"


def _lines(text: str | None) -> int | None:
    return None if text is None else number(text, 0)


def _no_output(details: JobDetails, stream: str) -> NotFound:
    job = details.job
    if details.spec.guest is not None:
        return NotFound(f"job {job.id} is a guest: it writes where its process does")
    if stream == "stderr" and details.spec.stderr is None:
        return NotFound(f"job {job.id} has no stderr of its own", "see its output")
    if job.finished_at is None:
        return NotFound(f"job {job.id} has no output yet")
    because = f": {job.reason}" if job.reason else ""
    return NotFound(f"job {job.id} has no output{because}")


async def until_error(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass a stream on; abort it on an error, as the reply has begun."""
    try:
        async for piece in pieces:
            yield piece
    except GrassError:
        raise StreamAborted from None
