"""The API of a daemon that hosts only a worker: forwards calls to the broker.

Calls about this machine, such as a queue's view of it, go to the broker with this
machine's own token, which tells the broker the worker. Any other call is refused with
the broker's address.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import grass
from grass.api.access.auth import identify
from grass.api.app import ENDPOINTS, Application, build
from grass.api.payloads import json_bytes
from grass.api.server.cancellation import while_connected
from grass.api.server.request_body import LARGEST_BODY, counted_body
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.credentials import Credentials
from grass.config import API_PREFIX, Home
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.hosting import RemoteBroker
from grass.errors import NoBroker, Refused, UsageError
from grass.link.dialer import DialerState, Phase
from grass.model.access import Right
from grass.model.times import rfc3339
from grass.settings import Settings
from grass.worker.shell.agent import WorkerAgent

WELCOME_S = 10.0
"""How long a call waits for the broker to accept this worker."""

Handler = Callable[[Request], Awaitable[object]]


class WorkerDaemon(NamedTuple):
    """What the routes of such a daemon need."""

    home: Home
    worker: str
    works_for: RemoteBroker
    settings: Settings
    process: DaemonProcess
    agent: WorkerAgent
    link_state: Callable[[], DialerState]
    """The state of the link to the broker."""
    version: str = grass.__version__

    @property
    def broker(self) -> str:
        """The broker's address, as in a command."""
        return ",".join(map(str, self.works_for.addresses))


def application(daemon: WorkerDaemon) -> Application:
    """Build the application of a worker's daemon."""
    own = {
        ("GET", "/overview"): _overview,
        ("GET", "/workers"): _workers,
        ("GET", "/devices"): _workers,
        ("GET", "/config"): _config,
        ("POST", "/daemon/stop"): _stop,
        ("POST", "/guests"): _refuse_guest,
    }
    routes = []
    for one in ENDPOINTS:
        # The right to work covers a worker's own views and units.
        usual = _forward if one.own is Right.WORK else _refuse
        handler = own.get((one.method, one.path), usual)
        answer = _authenticated(handler)
        routes.append(Route(API_PREFIX + one.path, answer, methods=[one.method]))
    return build(routes, daemon)


def _authenticated(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        identify(request)
        reply = json_bytes(await handler(request))
        return Response(reply, media_type="application/json")

    return handle


async def _forward(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    path = request.scope["raw_path"].decode("ascii").removeprefix(API_PREFIX)
    if request.url.query:
        path += f"?{request.url.query}"
    document = await _document(request)
    forwarding = _forwarded(daemon, request.method, path, document)
    return await while_connected(request, forwarding)


async def _forwarded(
    daemon: WorkerDaemon, method: str, path: str, document: object
) -> object:
    await _welcomed(daemon)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(
        None, _call_broker, daemon, method, path, document
    )


async def _document(request: Request) -> Any:  # noqa: ANN401 -- what was sent
    async with counted_body(request, LARGEST_BODY) as body:
        try:
            return json.loads(body) if body else None
        except ValueError:
            raise UsageError("the request is not JSON") from None


async def _welcomed(daemon: WorkerDaemon) -> None:
    """Wait until the broker has accepted this worker, or raise why it has not."""
    try:
        async with asyncio.timeout(WELCOME_S):
            await daemon.agent.welcomed.wait()
    except TimeoutError:
        raise NoBroker(daemon.link_state().news, "see `grass workers` there") from None


def _call_broker(
    daemon: WorkerDaemon, method: str, path: str, document: object
) -> object:
    with Client(daemon.home, broker=daemon.broker) as client:
        try:
            return client.once(method, path, document)
        except Broken:
            raise NoBroker(
                f"the broker at {daemon.broker} went away before it answered",
                "see `grass show`, then try again",
            ) from None


async def _workers(request: Request) -> object:
    """List this machine's worker or its devices, as the broker knows them."""
    daemon: WorkerDaemon = request.app.state.context
    reply = await _forward(request)
    assert isinstance(reply, dict)
    return {"workers": [one for one in reply["workers"] if one["id"] == daemon.worker]}


async def _refuse(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    raise Refused(
        f"this daemon works for the broker at {daemon.broker} and has no queue itself",
        _hint(daemon),
    )


async def _refuse_guest(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    raise Refused(
        f"this machine works for the broker at {daemon.broker}, which takes guests of"
        " its own machine alone",
        f"enqueue a command there: --broker {daemon.broker}",
    )


def _hint(daemon: WorkerDaemon) -> str:
    """Return the next step; a broker that this machine has left does not answer."""
    if Credentials.load(daemon.home).by_pin(daemon.works_for.known.pin) is None:
        return "this machine has left it: `grass restart` gives it a queue of its own"
    return f"ask there: --broker {daemon.broker}"


async def _overview(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    link = daemon.link_state()
    return {
        "daemon": {
            "pid": os.getpid(),
            "version": daemon.version,
            "started_at": rfc3339(daemon.process.started_at),
            "paused": False,
            "jobs": {"running": daemon.agent.running},
            "output_bytes": 0,
            "last_event": 0,
            "tcp": None,
            "broker": {
                "address": daemon.broker,
                "pin": daemon.works_for.known.pin,
                "link": link.news,
                "settled": link.has_result,
                "connected": link.phase in (Phase.CONNECTED, Phase.WELCOMED),
                "refused": link.phase is Phase.REFUSED,
            },
        },
        "workers": [],
        "queues": [],
        "jobs": [],
        "arrays": [],
        "totals": {},
        "more": 0,
        "more_by_state": {},
    }


async def _config(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    return {"settings": daemon.settings.listed()}


async def _stop(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    body = await _document(request)
    if isinstance(body, dict) and body.get("jobs") and daemon.agent.running:
        raise Refused(
            "this daemon has no queue: it cannot cancel jobs of the broker",
            "`grass cancel` them there, then `grass stop`",
        )
    asyncio.get_running_loop().call_soon(daemon.process.stop)
    return {"jobs": [], "warnings": [], "changed": True}
