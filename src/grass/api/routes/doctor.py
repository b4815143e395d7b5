"""The route that tells what is wrong with the daemon's machine."""

from starlette.requests import Request

from grass.api.context import context_of
from grass.api.server.cancellation import while_connected
from grass.errors import NotFound
from grass.queries.documents import JsonObject


async def doctor(request: Request) -> JsonObject:
    """Check what grass needs on the daemon's machine."""
    findings = context_of(request).findings
    if findings is None:
        raise NotFound("nothing checks this daemon's machine")
    return await while_connected(request, findings())
