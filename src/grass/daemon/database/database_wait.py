"""Waits for the database of a broker that is away when its daemon starts.

Meanwhile the daemon answers on the Unix socket: what is the database's with the reason,
and what concerns the daemon itself, so that it can be stopped.
"""

import asyncio
import gc
import signal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import grass
from grass.api.app import Application, build
from grass.api.problem import problem_response
from grass.api.server.unix_server import ApiServer
from grass.config import API_PREFIX, OWN_HEADER, Home
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.database.open_store import cluster_in
from grass.daemon.forwarding.api_forwarding import own_overview
from grass.daemon.unix_access import UnixAccess
from grass.errors import NoDatabase
from grass.event_log import EventLog
from grass.queries.documents import json_bytes

log = EventLog("grass.daemon")

AGAIN_S = 1.0
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
HINT = "the daemon waits for it, and goes on by itself when it answers"


class DatabaseWait:
    """A daemon whose database cannot be opened yet."""

    def __init__(
        self, home: Home, url: str, process: DaemonProcess, error: NoDatabase
    ) -> None:
        self._home, self._url, self._process = home, url, process
        self._error = error
        self._stopping = asyncio.Event()
        """Of this loop: that of the process belongs to the one that comes after."""

    async def run(self) -> None:
        """Return when the database answers, or the daemon is to stop."""
        # This may take long, and the command that runs the daemon has disabled it.
        gc.enable()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        log.warning("store.away", error=self._error.message)
        unix = UnixAccess(self._home, ApiServer(self._application()))
        async with asyncio.TaskGroup() as group:
            unix.start(group)
            self._process.report("ready\n")
            while not self._process.stops and await self._is_away():
                try:
                    async with asyncio.timeout(AGAIN_S):
                        await self._stopping.wait()
                except TimeoutError:
                    """It is looked for again."""
            await unix.stop()

    async def _is_away(self) -> bool:
        try:
            await asyncio.to_thread(cluster_in, self._url)
        except NoDatabase as error:
            if not error.may_return:
                raise
            self._error = error
            return True
        return False

    def _stop(self) -> None:
        self._process.stop()
        self._stopping.set()

    def _application(self) -> Application:
        async def answer(_: Request) -> Response:
            return problem_response(NoDatabase(self._error.message, HINT))

        async def overview(request: Request) -> Response:
            if request.headers.get(OWN_HEADER) is None:
                return await answer(request)
            flags = {"settled": False, "connected": False, "refused": False}
            place = {"address": "", "pin": "", "link": self._error.message}
            document = own_overview(self._process, 0, {**place, **flags})
            return Response(json_bytes(document), media_type="application/json")

        async def stop(request: Request) -> Response:
            if (await request.json()).get("jobs"):
                return await answer(request)
            asyncio.get_running_loop().call_soon(self._stop)
            done = {"jobs": [], "warnings": [], "changed": True}
            return Response(json_bytes(done), media_type="application/json")

        own = [
            Route(API_PREFIX + "/overview", overview, methods=["GET"]),
            Route(API_PREFIX + "/daemon/stop", stop, methods=["POST"]),
            Route("/{path:path}", answer, methods=METHODS),
        ]
        return build(own, _Version())


class _Version:
    version = grass.__version__
