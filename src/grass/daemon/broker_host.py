"""A daemon with a broker: the queue, usually a worker, maybe a door for others.

The order of starting: broker, worker, API; only then is anybody told that it runs. The
door to other machines opens last, when everything it leads to is there.
"""

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

import grass
from grass.api.app import application
from grass.api.context import Context
from grass.api.server.unix_server import ApiServer, listen
from grass.broker.shell.service import Broker
from grass.config import Home
from grass.daemon.hosting import Hosting, remember
from grass.daemon.life import Life
from grass.daemon.lost_files import put_back_files
from grass.daemon.machine import worker, worker_id
from grass.daemon.upkeep import forget_old, notifier
from grass.link.channel import LinkEnd, pair
from grass.link.messages import Resync, ToBroker, ToWorker
from grass.logs import EventLog
from grass.settings import Settings

if TYPE_CHECKING:
    from grass.daemon.tcp_access import TcpAccess

log = EventLog("grass.daemon")

REPORT_S, MOST_REPORT_WAITS = 1.0, 15
"""How long to wait for the worker's first report, and how often."""
JOIN_HINT = "`grass token new` prints the line that others join with"
LAST_NOTIFICATIONS_S = 5.0
"""How long a daemon that stops lets notifications finish."""


async def host_broker(
    home: Home, hosting: Hosting, settings: Settings, broker: Broker, life: Life
) -> None:
    """Bring everything up, say so, and take it down again in order."""
    life.begin()
    own = worker_id(home) if hosting.has_worker else ""
    doorway = _doorway(home, hosting)
    context = Context(
        broker,
        own,
        grass.__version__,
        life.started_at,
        life.stop,
        settings,
        tcp=None if doorway is None else doorway.endpoint,
    )
    server = ApiServer(application(context))
    async with notifier(settings, broker) as telling, asyncio.TaskGroup() as group:
        parts = [group.create_task(broker.run())]
        if own:
            parts.append(group.create_task(_work(home, hosting, own, broker)))
            await _first_report(broker, own)
        serving = group.create_task(server.serve_on(listen(home.socket)))
        watching = group.create_task(put_back_files(home, server, *_database(home)))
        if doorway is not None:
            parts.append(group.create_task(doorway.serve(server)))
            if life.has_reader:
                life.invite(await doorway.invitation(broker))
            else:
                log.info(
                    "tcp.listening", address=doorway.endpoint.address, hint=JOIN_HINT
                )
        remember(home, hosting.words)
        life.is_up(home)
        if settings.keep_s is not None:
            parts.append(group.create_task(forget_old(broker, settings.keep_s)))
        await life.over()
        watching.cancel()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.socket)
        server.stop()
        await serving
        await telling.settle(LAST_NOTIFICATIONS_S)
        for part in parts:
            part.cancel()
    log.info("daemon.stopped", pid=os.getpid())


def _database(home: Home) -> list[str]:
    """Name the files that hold what was committed, and who reads and writes them."""
    return [home.database + end for end in ("", "-wal", "-shm")]


async def _first_report(broker: Broker, own: str) -> None:
    """Wait until this machine's worker has reported: its units are known from then on.

    Not for ever: a daemon without it can still be looked at, and stopped.
    """
    for _ in range(MOST_REPORT_WAITS):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(broker.welcomed(own), REPORT_S)
            return
        if broker.state.disk_full:
            break
    log.warning("worker.not_reported", worker=own)


async def _work(home: Home, hosting: Hosting, own: str, broker: Broker) -> None:
    """Be this machine's worker, in the broker's own process."""
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]]
    ends = pair(Resync())
    near, far = ends
    broker.serve(near, worker=own)
    await worker(home, hosting, own, far).run()


def _doorway(home: Home, hosting: Hosting) -> "TcpAccess | None":
    if hosting.bind is None:
        return None
    from grass.daemon.tcp_access import TcpAccess

    return TcpAccess(home, hosting)
