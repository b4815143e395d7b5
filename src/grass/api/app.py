"""The application: every route in one table, and the OpenAPI document made from it.

The command line and the web page use nothing else. A handler takes the request, and
where the table names a body the body as a struct; it returns a struct, a document or a
ready response. Every route requires an identified caller.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from grass.api import cluster, jobs, output, schemas
from grass.api.context import Context
from grass.api.peer import actor
from grass.api.problem import on_grass_error, problem_response
from grass.api.schemas import json_bytes, read_body
from grass.errors import GrassError, NotFound, UsageError

PREFIX = "/api/v1"
LARGEST_BODY = 64 * 2**20


class Endpoint(NamedTuple):
    """One row of the table."""

    method: str
    path: str
    handler: Callable[..., Awaitable[object]]
    body: type[Any] | None = None
    reply: type[Any] | None = None


ENDPOINTS = [
    Endpoint("GET", "/overview", cluster.overview),
    Endpoint("POST", "/jobs", jobs.enqueue, schemas.EnqueueBody, schemas.EnqueuedReply),
    Endpoint("GET", "/jobs", jobs.page),
    Endpoint(
        "POST", "/jobs/cancel", jobs.cancel, schemas.CancelBody, schemas.DoneReply
    ),
    Endpoint("POST", "/jobs/wait", jobs.wait, schemas.WaitBody),
    Endpoint("POST", "/jobs/prune", jobs.prune, schemas.PruneBody, schemas.PrunedReply),
    Endpoint("GET", "/jobs/{id}", jobs.one),
    Endpoint("GET", "/jobs/{id}/output", output.output),
    Endpoint("GET", "/queues/{name}", cluster.read_queue, None, schemas.QueueReply),
    Endpoint(
        "PUT",
        "/queues/{name}",
        cluster.create_queue,
        schemas.QueueBody,
        schemas.DoneReply,
    ),
    Endpoint("DELETE", "/queues/{name}", cluster.delete_queue, None, schemas.DoneReply),
    Endpoint("POST", "/pause", cluster.pause, schemas.PauseBody, schemas.DoneReply),
    Endpoint("POST", "/resume", cluster.resume, schemas.PauseBody, schemas.DoneReply),
    Endpoint("POST", "/daemon/stop", cluster.stop, schemas.StopBody, schemas.DoneReply),
]


def application(context: Context) -> Starlette:
    """Build the application around a daemon."""
    routes = [
        Route(PREFIX + one.path, _route(one), methods=[one.method]) for one in ENDPOINTS
    ]
    routes.append(Route(PREFIX + "/openapi.json", _openapi, methods=["GET"]))
    app = Starlette(
        routes=routes,
        exception_handlers={
            GrassError: on_grass_error,
            HTTPException: _on_http_error,
            Exception: _on_defect,
        },
    )
    app.state.context = context
    return app


def openapi(version: str) -> dict[str, Any]:
    """Describe every route and body."""
    types = [one.body for one in ENDPOINTS if one.body]
    types += [one.reply for one in ENDPOINTS if one.reply]
    unique = list(dict.fromkeys(types))
    _, components = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        paths.setdefault(PREFIX + one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Grass", "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


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
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > LARGEST_BODY:
            raise UsageError(f"the request is larger than {LARGEST_BODY} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    summary = (endpoint.handler.__doc__ or "").strip().splitlines()[0]
    reply = _schema(endpoint.reply) if endpoint.reply else {"type": "object"}
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {
            "200": {
                "description": "done",
                "content": {"application/json": {"schema": reply}},
            }
        },
    }
    if endpoint.body:
        content = {"application/json": {"schema": _schema(endpoint.body)}}
        operation["requestBody"] = {"content": content}
    return operation


def _schema(of: type[Any]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{of.__name__}"}


async def _openapi(request: Request) -> Response:
    actor(request)
    document = openapi(request.app.state.context.version)
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
