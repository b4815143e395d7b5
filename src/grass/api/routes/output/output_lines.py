"""The routes that read numbered lines of a job's output, and search it.

A caller's searches wait for each other: each may have a worker read a whole file.
"""

import asyncio

from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.context import api_state, context_of
from grass.api.payloads import number, switch
from grass.api.routes.broker_calls import named_job
from grass.api.routes.output.output_bytes import wanted_source
from grass.api.server.cancellation import while_connected
from grass.errors import UsageError
from grass.model.output_text import TRACEBACK, literal
from grass.queries.output import output_lines, output_search
from grass.queries.output.line_index import LineIndex, grow
from grass.queries.output.output_lines import LinesReply, last_lines, lines_from
from grass.queries.output.output_search import (
    OutputSearch,
    SearchReply,
    checked_pattern,
)
from grass.queries.output.output_sources import OutputSource, end_of_stream

LINES, MATCHES = 1_000, 100
"""How many there are in a reply unless the caller says so."""
END = "end"


async def lines(request: Request) -> LinesReply:
    """Return numbered lines of an attempt's output: the last, or from one on."""
    return await while_connected(request, _lines(request))


async def search(request: Request) -> SearchReply:
    """Return the lines of an attempt's output that match, and count them."""
    pattern = _pattern(request)
    return await while_connected(request, _search(request, pattern))


async def _lines(request: Request) -> LinesReply:
    query, broker = request.query_params, context_of(request).broker
    first = query.get("from", END)
    count = min(number(query.get("count"), LINES), output_lines.MOST_LINES)
    source, index, end = await _indexed(request)
    if first != END:
        line = max(1, number(first, 1))
        return await lines_from(broker, source, index, end, line, count)
    if switch(query.get("numbered")):
        await grow(broker, source, index, end)
    return await last_lines(broker, source, index, end, count)


async def _search(request: Request, pattern: str) -> SearchReply:
    query, state = request.query_params, api_state(request)
    line = max(1, number(query.get("from"), 1))
    limit = min(number(query.get("limit"), MATCHES), output_search.MOST_MATCHES)
    first = query.get("traceback") is not None
    async with state.searching(actor(request)):
        source, index, end = await _indexed(request)
        until_s = asyncio.get_running_loop().time() + output_search.MOST_SEARCH_S
        broker = context_of(request).broker
        within = OutputSearch(broker, source, index, end, pattern, until_s)
        if switch(query.get("back")):
            return await within.backwards(line, limit)
        if first:
            return await within.forwards(line, 1, count_all=False)
        count_all = query.get("count") != "0"
        return await within.forwards(line, limit, count_all=count_all)


async def _indexed(request: Request) -> tuple[OutputSource, LineIndex, int]:
    """Return the wanted stream, its index, and where it ends now."""
    broker = context_of(request).broker
    source = wanted_source(request, await named_job(request))
    end = await end_of_stream(broker, source)
    return source, api_state(request).line_indexes.of(source, end), end


def _pattern(request: Request) -> str:
    query = request.query_params
    if query.get("traceback") is not None:
        if query["traceback"] != "first":
            raise UsageError(f"`{query['traceback']}` is no traceback", "use first")
        return TRACEBACK
    if text := query.get("text"):
        return checked_pattern(literal(text))
    if pattern := query.get("pattern"):
        return checked_pattern(pattern)
    raise UsageError("nothing to search for was given", "give text or pattern")
