"""The application: every route in one table.

The command line and the web page use nothing else. A handler takes the request, and
where the table names a body the body as a struct; it returns a struct, a document or a
ready response. Every route requires an identified caller, and every reply carries the
daemon's version, so that a client of another one can say so.
"""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from grass.api import (
    capacity,
    cluster,
    events,
    explaining,
    jobs,
    output,
    pruning,
    replies,
    schemas,
    verbs,
)
from grass.api.bodies import json_bytes, read_body
from grass.api.context import Context
from grass.api.interrupting import Gone
from grass.api.openapi import Endpoint, openapi
from grass.api.peer import actor
from grass.api.problem import on_grass_error, problem_response
from grass.errors import GrassError, NotFound, UsageError

PREFIX = "/api/v1"
VERSION_HEADER = "Grass-Version"
LARGEST_BODY = 64 * 2**20
MOST_READ = 16 * LARGEST_BODY
"""A body that is too large is read up to here, to tell its sender."""

DONE = replies.DoneReply
SELECT = schemas.SelectBody

# fmt: off
ENDPOINTS = [
    Endpoint("GET", "/overview", cluster.overview),
    Endpoint("POST", "/jobs", jobs.enqueue, schemas.EnqueueBody, replies.EnqueuedReply),
    Endpoint("GET", "/jobs", jobs.page),
    Endpoint("POST", "/jobs/select", verbs.selected, SELECT, replies.SelectedReply),
    Endpoint("POST", "/jobs/cancel", verbs.cancel, schemas.CancelBody, DONE),
    Endpoint("POST", "/jobs/hold", verbs.hold, SELECT, DONE),
    Endpoint("POST", "/jobs/release", verbs.release, SELECT, DONE),
    Endpoint("POST", "/jobs/rerun", verbs.rerun, schemas.RerunBody, DONE),
    Endpoint("POST", "/jobs/edit", verbs.edit, schemas.EditBody, DONE),
    Endpoint("POST", "/jobs/suspend", verbs.suspend, SELECT, DONE),
    Endpoint("POST", "/jobs/continue", verbs.go_on, SELECT, DONE),
    Endpoint("POST", "/jobs/remove", pruning.remove, SELECT, replies.PrunedReply),
    Endpoint("POST", "/jobs/prune", pruning.prune, schemas.PruneBody, replies.PrunedReply),  # noqa: E501
    Endpoint("POST", "/jobs/wait", jobs.wait, schemas.WaitBody),
    Endpoint("GET", "/jobs/{id}", jobs.one),
    Endpoint("GET", "/jobs/{id}/explain", explaining.explain, None, replies.ExplainReply),  # noqa: E501
    Endpoint("GET", "/jobs/{id}/output", output.output, media_type=output.MEDIA_TYPE),
    Endpoint("GET", "/queues/{name}", cluster.read_queue, None, replies.QueueReply),
    Endpoint("PUT", "/queues/{name}", cluster.create_queue, schemas.QueueBody, DONE),
    Endpoint("PATCH", "/queues/{name}", cluster.edit_queue, schemas.EditQueueBody, DONE),  # noqa: E501
    Endpoint("DELETE", "/queues/{name}", cluster.delete_queue, None, DONE),
    Endpoint("POST", "/capacity/add", capacity.add, schemas.AddCapacityBody, DONE),
    Endpoint("POST", "/capacity/remove", capacity.remove, schemas.UnitBody, DONE),
    Endpoint("POST", "/drain", capacity.drain, schemas.UnitBody, DONE),
    Endpoint("POST", "/pause", cluster.pause, schemas.PauseBody, DONE),
    Endpoint("POST", "/resume", capacity.resume, schemas.ResumeBody, DONE),
    Endpoint("GET", "/events", events.page, None, replies.EventsReply),
    Endpoint("GET", "/events/stream", events.stream, media_type=events.MEDIA_TYPE),
    Endpoint("GET", "/config", cluster.config, None, replies.ConfigReply),
    Endpoint("POST", "/daemon/stop", cluster.stop, schemas.StopBody, DONE),
]
# fmt: on


class Application(Starlette):
    """Routes around a daemon; `state.closing` is set when it is about to stop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and say with every answer which version did."""
        version = self.state.context.version

        async def send_with_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[VERSION_HEADER] = version
            await send(message)

        await super().__call__(scope, receive, send_with_version)


def application(context: Context) -> Application:
    """Build the application around a daemon."""
    routes = [
        Route(PREFIX + one.path, _route(one), methods=[one.method]) for one in ENDPOINTS
    ]
    routes.append(Route(PREFIX + "/openapi.json", _openapi, methods=["GET"]))
    app = Application(
        routes=routes,
        exception_handlers={
            GrassError: on_grass_error,
            HTTPException: _on_http_error,
            Exception: _on_defect,
        },
    )
    # A path that is nearly right is not found; it is not sent elsewhere.
    app.router.redirect_slashes = False
    app.state.context = context
    app.state.closing = asyncio.Event()
    return app


def _route(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        actor(request)
        if endpoint.body is None:
            result = await endpoint.handler(request)
        else:
            body = read_body(await _limited_body(request), endpoint.body)
            result = await endpoint.handler(request, body)
        if isinstance(result, Response):
            return result
        return Response(json_bytes(result), media_type="application/json")

    return handle


async def _limited_body(request: Request) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > MOST_READ:
                break
            # Who is cut off while sending never hears why: read on, and keep nothing.
            if size <= LARGEST_BODY:
                pieces.append(piece)
            else:
                pieces.clear()
    except ClientDisconnect:
        raise Gone("hung up") from None
    if size > LARGEST_BODY:
        raise UsageError(f"the request is larger than {LARGEST_BODY} bytes")
    return b"".join(pieces)


async def _openapi(request: Request) -> Response:
    actor(request)
    document = openapi(ENDPOINTS, PREFIX, request.app.state.context.version)
    return Response(json_bytes(document), media_type="application/json")


async def _on_http_error(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    if status == 404:
        return problem_response(NotFound(f"there is no {request.url.path} here"))
    return problem_response(UsageError(f"{request.method} does not work here"))


async def _on_defect(_request: Request, _error: Exception) -> Response:
    """Answer a defect of ours; Starlette logs it with its traceback."""
    hint = "see the daemon's log, and please report it"
    return problem_response(GrassError("something went wrong inside grass", hint))
