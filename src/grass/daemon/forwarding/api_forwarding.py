"""The API of a daemon that hosts only a worker: forwards calls to the broker.

Calls about this machine, such as a queue's view of it, go to the broker with this
machine's own token, which tells the broker the worker; so do those of guests. Any other
call is refused with the broker's address.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import grass
from grass.api.access.auth import identify
from grass.api.app import ENDPOINTS, Application, build
from grass.api.server.cancellation import while_connected
from grass.client.credentials import Credentials
from grass.config import API_PREFIX, OWN_HEADER
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.forwarding import guest_forwarding
from grass.daemon.forwarding.remote_calls import WorkerDaemon, ask, path_of, read
from grass.errors import Refused
from grass.link.dialer import Phase
from grass.model.access import Right
from grass.model.times import rfc3339
from grass.queries.documents import json_bytes

Handler = Callable[[Request], Awaitable[object]]


def application(daemon: WorkerDaemon) -> Application:
    """Build the application of a worker's daemon."""
    own: dict[tuple[str, str], Handler] = {
        ("GET", "/overview"): _overview,
        ("GET", "/workers"): _workers,
        ("GET", "/devices"): _workers,
        ("GET", "/config"): _config,
        ("POST", "/daemon/stop"): _stop,
        ("POST", "/guests"): guest_forwarding.enter,
        ("POST", "/guests/{id}/wait"): guest_forwarding.wait,
        ("POST", "/guests/{id}/measured"): guest_forwarding.measured,
        ("POST", "/guests/{id}/end"): guest_forwarding.end,
        ("POST", "/jobs/{id}/inner-type"): _forward,
    }
    if daemon.standby is not None:
        own["GET", "/brokers"] = _brokers
        # Its machine is one of several that the leader tells of.
        del own["GET", "/workers"], own["GET", "/devices"]
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
    method, path, document = request.method, path_of(request), await read(request)
    forwarding = ask(daemon, lambda broker: broker.once(method, path, document))
    return await while_connected(request, forwarding)


async def _workers(request: Request) -> object:
    """List this machine's worker or its devices, as the broker knows them."""
    daemon: WorkerDaemon = request.app.state.context
    reply = await _forward(request)
    assert isinstance(reply, dict)
    return {"workers": [one for one in reply["workers"] if one["id"] == daemon.worker]}


async def _refuse(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    if daemon.standby is not None:
        raise daemon.standby.refusal()
    raise Refused(
        f"this daemon works for the broker at {daemon.broker} and has no queue itself",
        _hint(daemon),
    )


def _hint(daemon: WorkerDaemon) -> str:
    """Return the next step; a broker that this machine has left does not answer."""
    if Credentials.load(daemon.home).by_pin(daemon.works_for.known.pin) is None:
        return "this machine has left it: `grass restart` gives it a queue of its own"
    return f"ask there: --broker {daemon.broker}"


async def _overview(request: Request) -> object:
    """Tell of this daemon; a standby sends those on who want to see jobs."""
    daemon: WorkerDaemon = request.app.state.context
    if daemon.standby is not None and request.headers.get(OWN_HEADER) is None:
        raise daemon.standby.refusal()
    link = daemon.link_state()
    broker = {
        "address": daemon.broker,
        "pin": daemon.works_for.known.pin,
        "link": link.news,
        "settled": link.has_result,
        "connected": link.phase in (Phase.CONNECTED, Phase.WELCOMED),
        "refused": link.phase is Phase.REFUSED,
    }
    return own_overview(daemon.process, daemon.agent.running, broker)


def own_overview(
    process: DaemonProcess, running: int, broker: dict[str, object]
) -> dict[str, object]:
    """Tell of a daemon without a queue."""
    return {
        "daemon": {
            "pid": os.getpid(),
            "version": grass.__version__,
            "started_at": rfc3339(process.started_at),
            "paused": False,
            "jobs": {"running": running},
            "output_bytes": 0,
            "last_event": 0,
            "tcp": None,
            "broker": broker,
        },
        "workers": [],
        "queues": [],
        "jobs": [],
        "arrays": [],
        "totals": {},
        "more": 0,
        "more_by_state": {},
    }


async def _brokers(request: Request) -> object:
    """Tell who leads as this standby knows it, also where nobody does."""
    daemon: WorkerDaemon = request.app.state.context
    assert daemon.standby is not None
    return daemon.standby.brokers()


async def _config(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    return {"settings": daemon.settings.listed()}


async def _stop(request: Request) -> object:
    daemon: WorkerDaemon = request.app.state.context
    body = await read(request)
    if isinstance(body, dict) and body.get("jobs") and daemon.agent.running:
        raise Refused(
            "this daemon has no queue: it cannot cancel jobs of the broker",
            "`grass cancel` them there, then `grass stop`",
        )
    asyncio.get_running_loop().call_soon(daemon.process.stop)
    return {"jobs": [], "warnings": [], "changed": True}
