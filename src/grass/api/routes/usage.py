"""The routes that read what was used over time, and who held which units when."""

import time

from starlette.requests import Request

from grass.api.context import api_state, context_of
from grass.api.payloads import number, switch
from grass.api.routes.broker_calls import named_job
from grass.api.server.cancellation import while_connected
from grass.broker.core.workers import registry
from grass.errors import UsageError
from grass.model.times import microseconds
from grass.queries.documents import JsonObject
from grass.queries.timeline import timeline_documents
from grass.queries.timeline.timeline import Window
from grass.queries.timeline.timeline_documents import MOST_BARS, TimelineReply
from grass.queries.usage_history import device_history, usage_history

BARS = 2_000
DAY_US = 86_400_000_000


async def history(request: Request) -> JsonObject:
    """Return the history of an attempt's usage, the last one's unless one is named."""
    which = request.query_params.get("attempt")
    attempt = number(which, 0) if which else None
    return await usage_history(
        context_of(request).broker, await named_job(request), attempt
    )


async def of_device(request: Request) -> JsonObject:
    """Return the history of one GPU of a worker."""
    broker = context_of(request).broker
    worker = registry.find(broker.state, str(request.path_params["name"]))
    return await device_history(broker, worker, str(request.path_params["unit"]))


async def timeline(request: Request) -> TimelineReply:
    """Return who held which units in a span of time, and what is expected."""
    query, broker = request.query_params, context_of(request).broker
    now = time.time_ns() // 1000
    end = _time(query.get("to"), now)
    begin = _time(query.get("from"), min(now, end) - DAY_US)
    if begin >= end:
        raise UsageError("`from` must be before `to`")
    named = query.get("worker")
    worker = None if named is None else registry.find(broker.state, named).id
    reading = timeline_documents.timeline(
        broker,
        Window(begin, end, worker),
        now,
        api_state(request).forgotten_names,
        most_bars=min(number(query.get("limit"), BARS), MOST_BARS),
        with_totals=switch(query.get("totals")),
    )
    return await while_connected(request, reading)


def _time(text: str | None, default: int) -> int:
    return default if text is None else microseconds(text)
