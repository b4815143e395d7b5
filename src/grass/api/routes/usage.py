"""The route that reads what a job used over time."""

from starlette.requests import Request

from grass.api.context import context_of
from grass.api.payloads import number
from grass.api.routes.broker_calls import named_job
from grass.queries.documents import JsonObject
from grass.queries.usage_history import usage_history


async def history(request: Request) -> JsonObject:
    """Return the history of an attempt's usage, the last one's unless one is named."""
    which = request.query_params.get("attempt")
    attempt = number(which, 0) if which else None
    return await usage_history(
        context_of(request).broker, await named_job(request), attempt
    )
