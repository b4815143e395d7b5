"""The routes that read what a job, or all on a GPU, used over time."""

from starlette.requests import Request

from grass.api.context import context_of
from grass.api.payloads import number
from grass.api.routes.broker_calls import named_job
from grass.broker.core.workers import registry
from grass.queries.documents import JsonObject
from grass.queries.usage_history import device_history, usage_history


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
