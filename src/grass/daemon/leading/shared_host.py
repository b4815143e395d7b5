"""Hosts a broker that shares its database with others: a standby until it leads.

The daemon is always one of two things, one after the other: the whole broker while it
leads, otherwise a standby (`standby_host`), which answers with who leads and whose own
worker works for that one. Its socket, its TCP port and its jobs stay where they are;
jobs belong to the keeper. It leads only with what it has read after it took the lead.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from secrets import token_hex
from typing import TYPE_CHECKING

import grass
from grass.broker.core.rounds import loaded
from grass.broker.core.workers.registry import note_machines
from grass.broker.shell.candidacy import Candidacy
from grass.broker.shell.service import Broker
from grass.config import Home
from grass.daemon.broker_host import BrokerHost, tcp_access
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.home_lock import lock_name
from grass.daemon.hosting import Hosting
from grass.daemon.leading.own_cluster import note_own_cluster
from grass.daemon.leading.standby_host import Standby
from grass.daemon.worker_setup import worker_id
from grass.errors import BrokerInUse, GrassError, Refused
from grass.event_log import EventLog
from grass.model.brokers import CLAIM_S, BrokerPresence
from grass.settings import Settings
from grass.store.interface import Store

if TYPE_CHECKING:
    from grass.daemon.tcp_access import TcpAccess

log = EventLog("grass.daemon")

CLAIM_LOOK_S = 0.5
"""How often a daemon that starts looks for another process of its broker."""
FIRST_LOOK_S = 3.0
"""How long a daemon that starts waits for the lead before it stands by."""


class SharedHost:
    """A daemon whose broker leads now and then."""

    def __init__(
        self,
        home: Home,
        hosting: Hosting,
        settings: Settings,
        store: Store,
        process: DaemonProcess,
    ) -> None:
        self._home, self._hosting, self._settings = home, hosting, settings
        self._store = store
        self._process = process

    async def run(self) -> None:
        """Stand by and lead in turn, until the daemon is to stop."""
        tcp = tcp_access(self._home, self._hosting)
        async with self._candidate(tcp) as candidacy:
            await self._first_look(candidacy)
            while not self._process.stops:
                if candidacy.leads:
                    await self._lead(candidacy, tcp)
                else:
                    await self._stand_by(candidacy, tcp)

    @contextlib.asynccontextmanager
    async def _candidate(self, tcp: "TcpAccess | None") -> AsyncIterator[Candidacy]:
        presence = BrokerPresence(
            id=worker_id(self._home),
            name=self._hosting.machine,
            address="" if tcp is None else tcp.endpoint.address,
            pin="" if tcp is None else tcp.endpoint.pin,
            version=grass.__version__,
            started_at=self._process.started_at,
            process=token_hex(8),
            lock=lock_name(self._home),
            host=socket.gethostname(),
            home=self._home.folder,
        )
        await asyncio.to_thread(_refuse_stranger, self._store, presence)
        await _claim(self._store, presence)
        candidacy = Candidacy(self._store, presence)
        asking = asyncio.ensure_future(candidacy.run())
        # It ends early only by an error: nobody would renew the lead any more.
        asking.add_done_callback(lambda _: self._process.stop())
        try:
            yield candidacy
            await candidacy.leave()
            if asking.done():
                asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _first_look(self, candidacy: Candidacy) -> None:
        """Wait until the database has told who leads."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_S):
                while not candidacy.lease.holder:
                    await candidacy.heard()

    async def _stand_by(self, candidacy: Candidacy, tcp: "TcpAccess | None") -> None:
        self._process.begin_role()
        log.info("lead.standby", leader=candidacy.lease.address or None)
        taken = asyncio.ensure_future(candidacy.taken())
        taken.add_done_callback(lambda _: self._process.end_role())
        try:
            standby = Standby(
                self._home, self._hosting, self._settings, self._process, candidacy
            )
            await standby.host(tcp)
        finally:
            taken.cancel()

    async def _lead(self, candidacy: Candidacy, tcp: "TcpAccess | None") -> None:
        """Load the state, and be the broker until the lead is lost."""
        self._process.begin_role()
        broker = await self._loaded_broker(candidacy)
        if broker is None:
            return
        lost = asyncio.ensure_future(candidacy.lost())
        lost.add_done_callback(lambda _: self._process.end_role())
        noting = asyncio.ensure_future(
            note_own_cluster(self._home, self._hosting, broker, tcp)
        )
        try:
            host = BrokerHost(
                self._home, self._hosting, self._settings, broker, self._process, tcp
            )
            await host.run()
        finally:
            lost.cancel()
            noting.cancel()

    async def _loaded_broker(self, candidacy: Candidacy) -> Broker | None:
        """Return a broker with what the store has; None: it does not lead any more."""
        epoch, began_s = candidacy.epoch, time.monotonic()
        try:
            load = loaded(time.time_ns() // 1000)
            core = await asyncio.to_thread(load, self._store)
        except GrassError as error:
            log.warning("lead.unreadable", error=error)
            candidacy.give_up(str(error))
            return None
        if not candidacy.trusts() or candidacy.epoch != epoch:
            return None
        places = {one.broker.id: one.broker.address for one in candidacy.brokers}
        note_machines(core.state, candidacy.id, places)
        broker = Broker(self._store, lambda _: False, candidacy, core)
        if not self._hosting.starts_jobs:
            broker.stop_starting()
        candidacy.loaded(epoch)
        took_s = round(time.monotonic() - began_s, 3)
        log.info("lead.taken", epoch=epoch, loaded_s=took_s)
        return broker


def _refuse_stranger(store: Store, me: BrokerPresence) -> None:
    """Refuse a broker that machines of the cluster could not follow to.

    They know its brokers by their key, and must reach them over TCP.
    """
    lease = store.lease()
    if lease.remaining_s <= 0 or lease.holder == me.id:
        return
    seen = store.brokers()
    leader = next((one.broker for one in seen if one.broker.id == lease.holder), None)
    if leader is None or not me.pin or leader.pin != me.pin:
        raise Refused(
            f"another broker uses the database: {_words(leader)}",
            "stop that one first, or stand by: grass join --standby HOST:PORT/PIN/CODE",
        )


async def _claim(store: Store, me: BrokerPresence) -> None:
    """Announce this process as the broker, once no other process is.

    One that was killed on another host, or before a reboot, is announced for some
    seconds more; one that is announced again meanwhile runs.
    """
    last_s, deadline_s = 0.0, time.monotonic() + 2 * CLAIM_S
    while True:
        try:
            await asyncio.to_thread(store.announce, me)
        except BrokerInUse as error:
            if error.seen_s < last_s or time.monotonic() > deadline_s:
                raise
            last_s = error.seen_s
            await asyncio.sleep(CLAIM_LOOK_S)
        else:
            return


def _words(leader: BrokerPresence | None) -> str:
    return "" if leader is None else leader.address or leader.name
