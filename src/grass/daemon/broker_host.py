"""A daemon with a broker: the queue, usually a worker, maybe a door for others.

The order of starting: broker, worker, API; only then is anybody told that it runs. The
door to other machines opens last, when everything it leads to is there.
"""

import asyncio
import contextlib
import logging
import os
import socket

import grass
from grass.api.app import application
from grass.api.context import Context, DoorInfo
from grass.api.door import Door
from grass.api.listening import bound
from grass.api.server import ApiServer, listen
from grass.api.tokens import new_code
from grass.broker.service import Broker
from grass.config import Home
from grass.daemon.entrance import PASS_VARIABLE, pass_phrase
from grass.daemon.hosting import Hosting, remember
from grass.daemon.life import Life
from grass.daemon.machine import worker, worker_id
from grass.daemon.upkeep import forget_old, notifier
from grass.link.messages import Resync, ToBroker, ToWorker
from grass.link.pair import LinkEnd, pair
from grass.model.addresses import Address, Invitation, read_address
from grass.model.token import START_CODE
from grass.settings import Settings
from grass.tls.server import ServerIdentity, identity

log = logging.getLogger("grass.daemon")

LAST_NOTIFICATIONS_S = 5.0
"""How long a daemon that stops lets notifications finish."""
STARTED = "daemon"
"""The actor of what a daemon does because it was started."""


async def host_broker(
    home: Home, hosting: Hosting, settings: Settings, broker: Broker, life: Life
) -> None:
    """Bring everything up, say so, and take it down again in order."""
    life.begin()
    own = worker_id(home) if hosting.has_worker else ""
    entrance = _Entrance(home, hosting) if hosting.bind is not None else None
    context = Context(
        broker,
        own,
        grass.__version__,
        life.started_at,
        life.stop,
        settings,
        door=None if entrance is None else entrance.info,
    )
    server = ApiServer(application(context))
    async with notifier(settings, broker) as telling, asyncio.TaskGroup() as group:
        parts = [group.create_task(broker.run())]
        if own:
            parts.append(group.create_task(_work(home, hosting, own, broker)))
            await broker.welcomed(own)
        serving = group.create_task(server.serve_on(listen(home.socket)))
        if entrance is not None:
            door = Door(server, entrance.identity.context)
            parts.append(group.create_task(door.serve(entrance.sockets)))
            if life.has_reader:
                life.invite(await _invitation(broker, entrance))
            else:
                log.info("`grass token new` prints the line that others join with")
        remember(home, hosting.words)
        life.is_up(home)
        if settings.keep_s is not None:
            parts.append(group.create_task(forget_old(broker, settings.keep_s)))
        await life.over()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.socket)
        server.stop()
        await serving
        await telling.settle(LAST_NOTIFICATIONS_S)
        for part in parts:
            part.cancel()
    log.info("stopped")


async def _work(home: Home, hosting: Hosting, own: str, broker: Broker) -> None:
    """Be this machine's worker, in the broker's own process."""
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]]
    ends = pair(Resync())
    near, far = ends
    broker.serve(near, worker=own)
    await worker(home, hosting, own, far).run()


class _Entrance:
    """Where other machines come in, and how they know that it is this broker."""

    def __init__(self, home: Home, hosting: Hosting) -> None:
        assert hosting.bind is not None
        self.identity: ServerIdentity = identity(
            home.folder, hosting.cert, lambda: pass_phrase(hosting.cert_pass_file)
        )
        # Whatever a job inherits, it is not this.
        os.environ.pop(PASS_VARIABLE, None)
        self.sockets = bound(hosting.bind)
        self.address = _advertised(hosting, self.sockets[0].getsockname()[1])
        self.info = DoorInfo(str(self.address), self.identity.pin)


def _advertised(hosting: Hosting, port: int) -> Address:
    """Name the broker as others may reach it."""
    if hosting.advertise:
        return read_address(hosting.advertise, port)
    # Not the worker's name: that leads nowhere.
    return Address(socket.gethostname(), port)


async def _invitation(broker: Broker, entrance: _Entrance) -> str:
    """Make a line to paste on other machines; good for an hour."""
    code = await new_code(broker, STARTED, name=START_CODE)
    return f"grass join {Invitation(entrance.address, entrance.identity.pin, code)}"
