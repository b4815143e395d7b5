"""The route that tells who held which units when."""

import time

from starlette.requests import Request

from grass.api.context import api_state, context_of
from grass.api.payloads import number, switch
from grass.api.server.cancellation import while_connected
from grass.broker.core.workers import registry
from grass.errors import UsageError
from grass.model.times import microseconds
from grass.queries.timeline import Window
from grass.queries.timeline_documents import MOST_BARS, TimelineReply, timeline

BARS = 2_000
DAY_US = 86_400_000_000


async def read(request: Request) -> TimelineReply:
    """Return who held which units in a span of time, and what is expected."""
    query, broker = request.query_params, context_of(request).broker
    now = time.time_ns() // 1000
    end = _time(query.get("to"), now)
    begin = _time(query.get("from"), min(now, end) - DAY_US)
    if begin >= end:
        raise UsageError("`from` must be before `to`")
    named = query.get("worker")
    worker = None if named is None else registry.find(broker.state, named).id
    reading = timeline(
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
