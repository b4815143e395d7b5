"""The application: every route in one table.

The command line and the web page use nothing else. A handler takes the request and,
where the table names one, the body as a struct; it returns a struct, a document or a
response. Every route names the right that its caller needs, which is checked before the
body is read. Every reply to an authenticated caller has the daemon's version in a
header, so that a client of another version can warn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from grass.api.access.auth import (
    authorize,
    close_after,
    identify,
    is_identified,
    refused,
    refused_unread,
)
from grass.api.context import ApiState, Context, api_state
from grass.api.openapi import Endpoint, openapi
from grass.api.payloads import read_body
from grass.api.problem import problem_response
from grass.api.routes import (
    cluster,
    events,
    export,
    guests,
    jobs,
    pools,
    profiles,
    prune,
    request_bodies,
    stream,
    tokens,
    usage,
    web,
    worker_link,
    workers,
)
from grass.api.routes.output import job_input, output_bytes, output_lines
from grass.api.routes.tasks import blobs, results, task_channel
from grass.api.server.request_body import (
    LARGEST_BODY,
    counted_body,
    small_body,
)
from grass.broker.core import calls
from grass.config import API_PREFIX
from grass.errors import GrassError, NotFound, Stopping, TooLarge, UsageError
from grass.model.access import Right
from grass.queries import documents
from grass.queries.broker_documents import BrokersReply
from grass.queries.documents import json_bytes
from grass.queries.output.output_lines import LinesReply
from grass.queries.output.output_search import SearchReply
from grass.queries.timeline.timeline_documents import TimelineReply

BROKERS_HEADER = "grass-brokers"
"""Where the brokers of the cluster are, the leader first; only if there are several."""
VERSION_HEADER = "Grass-Version"
LISTS = 16 * 2**20
"""In bytes: room for a million ids, or an environment."""

DONE = calls.Done
SELECT = request_bodies.SelectBody
READ, SUBMIT, WORK = Right.READ, Right.SUBMIT, Right.WORK
OPERATE, ADMIN = Right.OPERATE, Right.ADMIN

# fmt: off
ENDPOINTS = [
    Endpoint("GET", "/overview", READ, cluster.overview),
    Endpoint("POST", "/jobs", SUBMIT, jobs.enqueue, request_bodies.EnqueueBody, calls.Enqueued, largest=LARGEST_BODY),  # noqa: E501
    Endpoint("POST", "/jobs/plan", SUBMIT, jobs.plan, request_bodies.EnqueueBody, calls.Planned, largest=LARGEST_BODY),  # noqa: E501
    Endpoint("GET", "/jobs", READ, jobs.page),
    Endpoint("GET", "/jobs/export", READ, export.export, media_type="text/csv"),
    Endpoint("POST", "/jobs/select", READ, jobs.selected, request_bodies.SelectedBody, documents.SelectedReply, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/estimate", READ, jobs.estimate, SELECT, documents.EstimateReply, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/cancel", OPERATE, jobs.cancel, request_bodies.CancelBody, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/hold", OPERATE, jobs.hold, SELECT, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/release", OPERATE, jobs.release, SELECT, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/rerun", OPERATE, jobs.rerun, request_bodies.RerunBody, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/edit", OPERATE, jobs.edit, request_bodies.EditBody, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/suspend", OPERATE, jobs.suspend, SELECT, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/continue", OPERATE, jobs.go_on, SELECT, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/signal", OPERATE, jobs.signal, request_bodies.SignalBody, DONE, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/remove", OPERATE, prune.remove, SELECT, documents.PrunedReply, own=SUBMIT, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/prune", OPERATE, prune.prune, request_bodies.PruneBody, documents.PrunedReply),  # noqa: E501
    Endpoint("POST", "/jobs/wait", READ, jobs.wait, request_bodies.WaitBody, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/jobs/wait-all", READ, jobs.wait_all, request_bodies.WaitAllBody, documents.EndsReply),  # noqa: E501
    Endpoint("POST", "/jobs/results", READ, results.small, request_bodies.ResultsBody, media_type=results.MEDIA_TYPE),  # noqa: E501
    Endpoint("GET", "/jobs/{id}", READ, jobs.one),
    Endpoint("GET", "/jobs/{id}/explain", READ, jobs.explain, None, documents.ExplainReply),  # noqa: E501
    Endpoint("GET", "/jobs/{id}/output", READ, output_bytes.output, media_type=output_bytes.MEDIA_TYPE),  # noqa: E501
    Endpoint("GET", "/jobs/{id}/result", READ, results.result, media_type=results.MEDIA_TYPE),  # noqa: E501
    Endpoint("GET", "/jobs/{id}/lines", READ, output_lines.lines, None, LinesReply),
    Endpoint("GET", "/jobs/{id}/search", READ, output_lines.search, None, SearchReply),
    Endpoint("POST", "/jobs/{id}/input", OPERATE, job_input.write, request_bodies.InputBody, documents.InputReply, own=SUBMIT),  # noqa: E501
    Endpoint("POST", "/guests", SUBMIT, guests.enter, request_bodies.GuestBody, calls.Enqueued),  # noqa: E501
    Endpoint("POST", "/guests/{id}/wait", SUBMIT, guests.wait, request_bodies.WaitGuestBody, documents.GuestReply),  # noqa: E501
    Endpoint("POST", "/guests/{id}/measured", SUBMIT, guests.measured, request_bodies.MeasureGuestBody, DONE),  # noqa: E501
    Endpoint("POST", "/guests/{id}/end", SUBMIT, guests.give_back, request_bodies.GiveBackBody, DONE),  # noqa: E501
    Endpoint("POST", "/jobs/{id}/inner-type", SUBMIT, guests.inner_type, request_bodies.InnerTypeBody, documents.InnerTypeReply),  # noqa: E501
    Endpoint("GET", "/jobs/{id}/usage", READ, usage.history),
    Endpoint("POST", "/blobs/missing", SUBMIT, blobs.missing, request_bodies.BlobsBody, documents.MissingBlobsReply, largest=LISTS),  # noqa: E501
    Endpoint("PUT", "/blobs/{name}", SUBMIT, blobs.add, None, documents.BlobReply),
    Endpoint("GET", "/queues/{name}", READ, cluster.read_queue, None, documents.QueueReply, own=WORK),  # noqa: E501
    Endpoint("PUT", "/queues/{name}", OPERATE, cluster.create_queue, request_bodies.QueueBody, DONE, own=WORK, largest=LISTS),  # noqa: E501
    Endpoint("PATCH", "/queues/{name}", OPERATE, cluster.edit_queue, request_bodies.EditQueueBody, DONE, own=WORK, largest=LISTS),  # noqa: E501
    Endpoint("DELETE", "/queues/{name}", OPERATE, cluster.delete_queue, None, DONE, own=WORK),  # noqa: E501
    Endpoint("POST", "/capacity/add", OPERATE, workers.add_units, request_bodies.AddCapacityBody, DONE, own=WORK),  # noqa: E501
    Endpoint("POST", "/capacity/remove", OPERATE, workers.remove_unit, request_bodies.UnitBody, DONE, own=WORK),  # noqa: E501
    Endpoint("POST", "/drain", OPERATE, workers.drain_unit, request_bodies.UnitBody, DONE, own=WORK),  # noqa: E501
    Endpoint("POST", "/pause", OPERATE, cluster.pause, request_bodies.PauseBody, DONE),
    Endpoint("POST", "/resume", OPERATE, workers.resume, request_bodies.ResumeBody, DONE, own=WORK),  # noqa: E501
    Endpoint("GET", "/workers", READ, workers.page, None, documents.WorkersReply, own=WORK),  # noqa: E501
    Endpoint("GET", "/devices", READ, workers.devices, None, documents.DevicesReply, own=WORK),  # noqa: E501
    Endpoint("GET", "/workers/{name}/gpus/{unit}/usage", READ, usage.of_device),
    Endpoint("POST", "/workers/{name}/drain", OPERATE, workers.drain, request_bodies.DrainWorkerBody, DONE),  # noqa: E501
    Endpoint("POST", "/workers/{name}/foreign/end", ADMIN, workers.end_foreign, request_bodies.ForeignBody, DONE),  # noqa: E501
    Endpoint("POST", "/workers/{name}/foreign/keep", ADMIN, workers.keep_foreign, request_bodies.ForeignBody, DONE),  # noqa: E501
    Endpoint("DELETE", "/workers/{name}", ADMIN, workers.forget, None, documents.ForgottenReply),  # noqa: E501
    Endpoint("GET", "/profiles", READ, profiles.page, None, documents.ProfilesReply),
    Endpoint("GET", "/profiles/export", READ, profiles.export, None, documents.ExportedReply),  # noqa: E501
    Endpoint("POST", "/profiles/import", OPERATE, profiles.import_, request_bodies.ImportProfilesBody, DONE, largest=LISTS),  # noqa: E501
    Endpoint("POST", "/profiles/forget", OPERATE, profiles.forget, request_bodies.ForgetProfilesBody, DONE),  # noqa: E501
    Endpoint("GET", "/events", READ, events.page, None, documents.EventsReply),
    Endpoint("GET", "/events/stream", READ, events.stream, media_type=events.MEDIA_TYPE),  # noqa: E501
    Endpoint("GET", "/stream", READ, stream.stream, media_type=events.MEDIA_TYPE),
    Endpoint("GET", "/timeline", READ, usage.timeline, None, TimelineReply),
    Endpoint("GET", "/doctor", READ, cluster.doctor),
    Endpoint("GET", "/config", READ, cluster.config, None, documents.ConfigReply),
    Endpoint("GET", "/session", READ, web.session, None, documents.SessionReply),
    Endpoint("POST", "/web", ADMIN, web.open_, request_bodies.WebBody, documents.WebReply),  # noqa: E501
    Endpoint("DELETE", "/web", ADMIN, web.close, None, DONE),
    Endpoint("POST", "/daemon/stop", ADMIN, cluster.stop, request_bodies.StopBody, DONE),  # noqa: E501
    Endpoint("GET", "/brokers", READ, cluster.brokers, None, BrokersReply),
    Endpoint("GET", "/pools", READ, pools.page, None, documents.PoolsReply),
    Endpoint("POST", "/pools", ADMIN, pools.add, request_bodies.PoolBody, DONE),
    Endpoint("POST", "/pools/script", ADMIN, pools.preview, request_bodies.PoolBody, documents.ScriptReply),  # noqa: E501
    Endpoint("POST", "/pools/{name}/pause", OPERATE, pools.pause, None, DONE),
    Endpoint("POST", "/pools/{name}/resume", OPERATE, pools.resume, None, DONE),
    Endpoint("POST", "/pools/{name}/pilots", OPERATE, pools.ask, request_bodies.PilotsBody, DONE),  # noqa: E501
    Endpoint("GET", "/pools/{name}/script", READ, pools.script, None, documents.ScriptReply),  # noqa: E501
    Endpoint("GET", "/pools/{name}/logs", OPERATE, pools.logs, None, documents.PoolLogsReply),  # noqa: E501
    Endpoint("DELETE", "/pilots/{name}", OPERATE, pools.leave, None, DONE),
    Endpoint("DELETE", "/pools/{name}", ADMIN, pools.remove, None, DONE),
    Endpoint("GET", "/tokens", ADMIN, tokens.page, None, documents.TokensReply),
    Endpoint("POST", "/tokens", ADMIN, tokens.new, request_bodies.NewTokenBody, documents.IssuedReply),  # noqa: E501
    Endpoint("DELETE", "/tokens/{name}", ADMIN, tokens.revoke, None, DONE),
    Endpoint("POST", "/join", None, tokens.join, request_bodies.JoinBody, documents.JoinedReply),  # noqa: E501
]
# fmt: on


class Application(Starlette):
    """Routes around a daemon; `state.api` is what its requests share."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the daemon's version for an authenticated caller."""
        version = self.state.context.version

        async def send_with_version(message: Message) -> None:
            if message["type"] == "http.response.start" and is_identified(scope):
                headers = MutableHeaders(scope=message)
                headers[VERSION_HEADER] = version
                if brokers := self._brokers():
                    headers[BROKERS_HEADER] = ",".join(brokers)
            await send(message)

        await super().__call__(scope, receive, send_with_version)

    def _brokers(self) -> tuple[str, ...]:
        """Return where the cluster's brokers are, if it has several."""
        context = self.state.context
        lead = context.broker.lead if isinstance(context, Context) else None
        return () if lead is None else lead.addresses()


def application(context: Context) -> Application:
    """Build the application around a daemon."""
    routes: list[BaseRoute] = [
        Route(API_PREFIX + one.path, _route(one), methods=[one.method])
        for one in ENDPOINTS
    ]
    routes.append(Route(API_PREFIX + "/openapi.json", _openapi, methods=["GET"]))
    routes.append(WebSocketRoute(API_PREFIX + "/link", worker_link.link))
    channel = WebSocketRoute(API_PREFIX + "/jobs/{id}/channel", task_channel.channel)
    routes.append(channel)
    return build(routes, context)


def build(routes: Sequence[BaseRoute], context: Any) -> Application:  # noqa: ANN401
    """Build an application of routes, with error handlers and state."""
    app = Application(
        routes=routes,
        exception_handlers={
            GrassError: _on_grass_error,
            HTTPException: _on_http_error,
            Exception: _on_exception,
        },
    )
    # A path with a slash too many is not found, and not redirected.
    app.router.redirect_slashes = False
    app.state.context = context
    app.state.api = ApiState()
    return app


def _route(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            await authorize(request, endpoint.right, endpoint.own)
        except GrassError as refusal:
            return refused_unread(request, refusal)
        try:
            result = await _result(endpoint, request)
        except asyncio.CancelledError:
            if not api_state(request).closing.is_set():
                raise
            # The server cancels requests that take longer than a stop may.
            raise Stopping("the daemon stops before it has answered") from None
        if isinstance(result, Response):
            return result
        return Response(json_bytes(result), media_type="application/json")

    return handle


async def _result(endpoint: Endpoint, request: Request) -> object:
    """Read the body of a request, where it has one, and have it handled."""
    if endpoint.body is None:
        return await endpoint.handler(request)
    if endpoint.right is None:
        body = read_body(await small_body(request), endpoint.body)
        return await endpoint.handler(request, body)
    async with counted_body(request, endpoint.largest) as data:
        body = read_body(data, endpoint.body)
        data.clear()
        return await endpoint.handler(request, body)


async def _openapi(request: Request) -> Response:
    try:
        await authorize(request, READ, None)
    except GrassError as refusal:
        return refused_unread(request, refusal)
    document = openapi(ENDPOINTS, API_PREFIX, request.app.state.context.version)
    return Response(json_bytes(document), media_type="application/json")


async def _on_grass_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GrassError)
    response = refused(request, error)
    if isinstance(error, TooLarge):
        close_after(response)
    return response


async def _on_http_error(request: Request, error: Exception) -> Response:
    try:
        identify(request)
    except GrassError as refusal:
        # A caller without a token does not learn which paths exist.
        return refused_unread(request, refusal)
    status = getattr(error, "status_code", 500)
    if status == 404:
        return problem_response(NotFound(f"there is no {request.url.path} here"))
    return problem_response(UsageError(f"{request.method} does not work here"))


async def _on_exception(_request: Request, _error: Exception) -> Response:
    """Answer an unexpected exception, which Starlette logs with its traceback."""
    hint = "see the daemon's log, and please report it"
    return problem_response(GrassError("something went wrong inside grass", hint))
