"""Hosts only a worker, for the broker of another machine.

The worker goes on while the broker is unreachable: jobs run, exits are kept, and the
link is retried forever. The Unix socket answers what concerns this machine and forwards
the rest (`forwarding`).
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from grass.client.credentials import Credentials, JoinedBroker
from grass.config import Home
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.forwarding.deferred_server import DeferredServer
from grass.daemon.hosting import (
    Hosting,
    RemoteBroker,
    StandbyAnswers,
    save_options,
    with_worker_name,
)
from grass.daemon.pools.pilot_variables import AWAY_LIMIT
from grass.daemon.unix_access import UnixAccess
from grass.daemon.worker_setup import (
    with_old_results_removed,
    worker,
    worker_id,
)
from grass.devices.probe import boot_id
from grass.errors import GrassError
from grass.event_log import EventLog
from grass.link.dialer import HEARTBEAT_S, Dialer, DialerState, Phase
from grass.model.addresses import Address
from grass.settings import Settings
from grass.worker.shell.agent import WorkerAgent
from grass.worker.shell.blob_files import MOST_KEPT, folder_of_boot

if TYPE_CHECKING:
    from grass.api.server.unix_server import ApiServer

log = EventLog("grass.daemon")


class _AwayLimit:
    """Stops the daemon of a pilot that does not reach its broker.

    It would hold what its engine has lent until that takes it back.
    """

    def __init__(self, limit_s: float, stop: Callable[[], None]) -> None:
        """Count from now on, until the broker was reached."""
        self._limit_s, self._stop = limit_s, stop
        self._timer: asyncio.TimerHandle | None = None
        self.note(DialerState())

    def note(self, state: DialerState) -> None:
        """Take in what became of the link."""
        if state.phase is Phase.WELCOMED and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif state.phase is not Phase.WELCOMED and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._limit_s, self._leave)

    def _leave(self) -> None:
        log.warning("worker.left", away_s=self._limit_s)
        self._stop()


class _Hosted(NamedTuple):
    """What this daemon consists of, for those who ask it."""

    home: Home
    identity: str
    works_for: RemoteBroker
    settings: Settings
    process: DaemonProcess
    agent: WorkerAgent

    def api(
        self,
        link_state: Callable[[], DialerState],
        standby: StandbyAnswers | None,
    ) -> "ApiServer":
        """Make what answers on the Unix socket."""
        # Loaded on use: it takes longer than all the rest of this daemon.
        from grass.api.server.unix_server import ApiServer
        from grass.daemon.forwarding.api_forwarding import application
        from grass.daemon.forwarding.remote_calls import WorkerDaemon

        return ApiServer(application(WorkerDaemon(*self, link_state, standby)))


async def host_worker(
    home: Home,
    hosting: Hosting,
    settings: Settings,
    works_for: RemoteBroker,
    process: DaemonProcess,
    standby: StandbyAnswers | None = None,
) -> None:
    """Run the worker until the daemon is to stop; running jobs go on.

    `standby` answers what is the broker's, where this daemon has one that stands by.
    """
    process.handle_signals()
    identity = worker_id(home)
    dialer = _dialer(home, hosting, works_for, identity)
    if away_limit_s := os.environ.get(AWAY_LIMIT):
        dialer.on_state = _AwayLimit(float(away_limit_s), process.stop).note
    named = with_worker_name(hosting, works_for)
    blobs = folder_of_boot(home.fetched_blobs, boot_id()), MOST_KEPT
    agent = await worker(home, named, identity, dialer, settings, blobs)
    hosted = _Hosted(home, identity, works_for, settings, process, agent)
    server = DeferredServer(lambda: hosted.api(lambda: dialer.state, standby))
    working = with_old_results_removed(home, settings, agent.run())
    unix = UnixAccess(home, server)
    async with asyncio.TaskGroup() as group:
        parts = [group.create_task(dialer.run()), group.create_task(working)]
        unix.start(group)
        save_options(home, hosting.words)
        process.report_ready(home)
        await process.stopping()
        await unix.stop()
        for part in parts:
            part.cancel()
    if process.stops:
        log.info("daemon.stopped", pid=os.getpid())


def _dialer(
    home: Home, hosting: Hosting, works_for: RemoteBroker, identity: str
) -> Dialer:
    """Return the link to the broker, which notes where its brokers are."""
    known = works_for.known
    dialer = Dialer(
        works_for.addresses,
        known.pin,
        lambda: _newest(home, known).token,
        identity,
        heartbeat_s=_heartbeat_s(hosting.lease_s),
    )
    dialer.on_brokers = lambda told: _note_brokers(home, known.pin, told)
    dialer.known_brokers = lambda: _newest(home, known).addresses
    return dialer


def _newest(home: Home, known: JoinedBroker) -> JoinedBroker:
    """Return what is known of the broker by now.

    A machine that joins again gets another token, and any command may be told of
    brokers that came later.
    """
    with contextlib.suppress(GrassError):
        known = Credentials.load(home).by_pin(known.pin) or known
    return known


def _note_brokers(home: Home, pin: str, told: list[Address]) -> None:
    """Note where the brokers are, for the next start and for commands."""
    with contextlib.suppress(GrassError, OSError):
        Credentials.load(home).set_addresses(pin, told)


def _heartbeat_s(lease_s: float | None) -> float:
    """Return the interval of heartbeats: several fit into a lease."""
    return HEARTBEAT_S if lease_s is None else min(HEARTBEAT_S, lease_s / 4)
