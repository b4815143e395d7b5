"""A daemon without a broker: the worker of another machine's queue.

Everything here goes on without the broker: jobs run, exits are kept, and the link is
made anew for as long as it takes. Its own socket answers only what concerns this
machine (`daemon`).
"""

import asyncio
import contextlib
import os

from grass.api.server.unix_server import ApiServer, listen
from grass.client.credentials import Credentials, Known
from grass.config import Home
from grass.daemon.forwarding import WorkerDaemon, application
from grass.daemon.hosting import Employer, Hosting, named, remember
from grass.daemon.life import Life
from grass.daemon.lost_files import put_back_files
from grass.daemon.machine import worker, worker_id
from grass.errors import GrassError
from grass.link.dialer import HEARTBEAT_S, Dialer
from grass.logs import EventLog
from grass.settings import Settings

log = EventLog("grass.daemon")


async def host_worker(
    home: Home, hosting: Hosting, settings: Settings, works_for: Employer, life: Life
) -> None:
    """Work until told to stop; running jobs go on."""
    life.begin()
    identity = worker_id(home)
    known = works_for.known
    dialer = Dialer(
        works_for.addresses,
        known.pin,
        lambda: _token(home, known),
        identity,
        heartbeat_s=_heartbeat_s(hosting.lease_s),
    )
    agent = worker(home, named(hosting, works_for), identity, dialer)
    front = WorkerDaemon(
        home,
        identity,
        works_for,
        settings,
        life,
        agent,
        lambda: dialer.state,
    )
    server = ApiServer(application(front))
    async with asyncio.TaskGroup() as group:
        parts = [group.create_task(dialer.run()), group.create_task(agent.run())]
        serving = group.create_task(server.serve_on(listen(home.socket)))
        watching = group.create_task(put_back_files(home, server))
        remember(home, hosting.words)
        life.is_up(home)
        await life.over()
        watching.cancel()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.socket)
        server.stop()
        await serving
        for part in parts:
            part.cancel()
    log.info("daemon.stopped", pid=os.getpid())


def _token(home: Home, known: Known) -> str:
    """Give the token that the broker knows: who joins again gets another one."""
    with contextlib.suppress(GrassError):
        known = Credentials.load(home).by_pin(known.pin) or known
    return known.token


def _heartbeat_s(lease_s: float | None) -> float:
    """Tell the broker often enough: a lease must outlast a few that are lost."""
    return HEARTBEAT_S if lease_s is None else min(HEARTBEAT_S, lease_s / 4)
