"""Hosts a broker that stands by: it answers who leads, and its worker works there.

Whatever is asked of it over TCP is answered with the leader's address, before anything
is read or anybody is known: nothing in the answer depends on who asks. The Unix socket
does the same for what is the broker's, and answers what concerns this machine.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

import grass
from grass.api.access.auth import bearer
from grass.api.app import Application, build
from grass.api.problem import problem_response
from grass.api.server.unix_server import ApiServer
from grass.broker.shell.candidacy import Candidacy
from grass.client.credentials import Credentials, JoinedBroker
from grass.config import API_PREFIX, OWN_HEADER, Home
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.forwarding.api_forwarding import own_overview
from grass.daemon.hosting import Hosting, RemoteBroker, StandbyAnswers, save_options
from grass.daemon.unix_access import UnixAccess
from grass.daemon.worker_host import host_worker
from grass.errors import LeadLost, UsageError
from grass.event_log import EventLog
from grass.link.remote_end import WORKER_HEADER
from grass.model.addresses import Address, read_address
from grass.queries.broker_documents import BrokersReply, brokers_document
from grass.queries.documents import json_bytes
from grass.settings import Settings

if TYPE_CHECKING:
    from grass.daemon.tcp_access import TcpAccess

log = EventLog("grass.daemon")

JOIN = "grass join --standby HOST:PORT/PIN/CODE, with a line of --role broker"
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class Standby:
    """A daemon whose broker does not lead."""

    def __init__(
        self,
        home: Home,
        hosting: Hosting,
        settings: Settings,
        process: DaemonProcess,
        candidacy: Candidacy,
    ) -> None:
        self._home, self._hosting, self._settings = home, hosting, settings
        self._process = process
        self._candidacy = candidacy

    async def host(self, tcp: "TcpAccess | None") -> None:
        """Stand by until the broker leads, or the daemon is to stop."""
        self._process.handle_signals()
        known = Credentials.load(self._home).own
        remote = ApiServer(refusal(self._candidacy, self._candidacy.lost_error))
        async with asyncio.TaskGroup() as group:
            if tcp is not None:
                group.create_task(tcp.serve(remote))
            if known is None or not self._hosting.has_worker:
                if self._hosting.has_worker:
                    log.warning("lead.no_worker", hint=JOIN)
                await self._answer_alone()
            else:
                await self._work(known)
            remote.stop()

    async def _work(self, known: JoinedBroker) -> None:
        """Work for whoever leads, and answer on the Unix socket."""
        places = RemoteBroker(self._places(known), known)
        await host_worker(
            self._home,
            self._hosting,
            self._settings,
            places,
            self._process,
            StandbyAnswers(self._candidacy.lost_error_here, self._brokers),
        )

    def _brokers(self) -> BrokersReply:
        """Tell who leads as this broker knows it, also where nobody does."""
        return brokers_document(*self._candidacy.seen_now())

    def _places(self, known: JoinedBroker) -> tuple[Address, ...]:
        """Return where the leader and the other brokers are, but not this one."""
        found: list[Address] = []
        own = self._candidacy.address
        for text in self._candidacy.addresses():
            with contextlib.suppress(UsageError):
                found += [read_address(text)] if text != own else []
        rest = [one for one in known.addresses if str(one) != own]
        return tuple(dict.fromkeys((*found, *rest))) or known.addresses

    async def _answer_alone(self) -> None:
        """Answer on the Unix socket: this machine has no worker, or no token yet."""
        unix = UnixAccess(self._home, ApiServer(self._alone()))
        async with asyncio.TaskGroup() as group:
            unix.start(group)
            save_options(self._home, self._hosting.words)
            self._process.report_ready(self._home)
            await self._process.stopping()
            await unix.stop()

    def _alone(self) -> Application:
        """Build the application of the Unix socket where there is no worker."""

        async def overview(request: Request) -> Response:
            if request.headers.get(OWN_HEADER) is None:
                return problem_response(self._candidacy.lost_error_here())
            news = self._candidacy.lost_error_here().message
            told = {"address": self._candidacy.lease.address, "pin": "", "link": news}
            flags = {"settled": True, "connected": True, "refused": False}
            document = own_overview(self._process, 0, {**told, **flags})
            return Response(json_bytes(document), media_type="application/json")

        async def stop(_: Request) -> Response:
            asyncio.get_running_loop().call_soon(self._process.stop)
            done = {"jobs": [], "warnings": [], "changed": True}
            return Response(json_bytes(done), media_type="application/json")

        async def brokers(_: Request) -> Response:
            document = json_bytes(self._brokers())
            return Response(document, media_type="application/json")

        own = [
            Route(API_PREFIX + "/brokers", brokers, methods=["GET"]),
            Route(API_PREFIX + "/overview", overview, methods=["GET"]),
            Route(API_PREFIX + "/daemon/stop", stop, methods=["POST"]),
        ]
        return refusal(self._candidacy, self._candidacy.lost_error_here, *own)


class Version:
    """What an application tells of the daemon."""

    version = grass.__version__


def refusal(
    candidacy: Candidacy, error: Callable[[], LeadLost], *own: Route
) -> Application:
    """Build an application that answers everything with who leads."""

    async def answer(_: Request) -> Response:
        return problem_response(error())

    async def refuse(websocket: WebSocket) -> None:
        token = bearer(websocket)
        if websocket.url.path == API_PREFIX + "/link" and token is not None:
            candidacy.asked_by(websocket.headers.get(WORKER_HEADER, ""), token)
        await websocket.send_denial_response(problem_response(error()))

    path = "/{path:path}"
    rest = Route(path, answer, methods=METHODS), WebSocketRoute(path, refuse)
    return build([*own, *rest], Version())
