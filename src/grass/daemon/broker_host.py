"""Hosts a broker: usually with this machine's worker, and with --bind over TCP too.

Parts start in order: broker, worker, API on the Unix socket. The TCP server starts
last, when everything behind it runs. Beside them, retention forgets old jobs, and
notifications run for jobs that have ended.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

import grass
from grass.api.app import application
from grass.api.context import Context, StandbyOffer
from grass.api.server.unix_server import ApiServer
from grass.broker.shell.pruning import prune_before
from grass.broker.shell.service import Broker
from grass.config import Home, user_environment
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.doctor_process import DoctorProcess
from grass.daemon.hosting import Hosting, save_options
from grass.daemon.pools.pilot_folders import PilotFolders
from grass.daemon.pools.pilot_output import PilotOutput
from grass.daemon.pools.pool_host import pool_runner
from grass.daemon.unix_access import UnixAccess
from grass.daemon.web_host import WebHost
from grass.daemon.worker_setup import (
    home_folder,
    shell,
    with_old_results_removed,
    worker,
    worker_id,
)
from grass.devices.probe import boot_id
from grass.errors import GrassError, LeadLost
from grass.event_log import EventLog
from grass.link.channel import LinkEnd, pair
from grass.link.messages import Resync, ToBroker, ToWorker
from grass.notify import CommandEnvironment, Notifier
from grass.setting_values import SQLITE
from grass.settings import Settings
from grass.worker.shell.blob_files import MOST_KEPT, folder_of_boot

if TYPE_CHECKING:
    from grass.daemon.tcp_access import TcpAccess

log = EventLog("grass.daemon")

REPORT_S, MOST_REPORT_WAITS = 1.0, 15
"""How long to wait for the worker's first report, and how often."""
JOIN_HINT = "`grass token new` prints the line that others join with"
LAST_NOTIFICATIONS_S = 5.0
"""How long a daemon that stops waits for notifications."""
DAY_S = 86400.0
RETENTION = "retention"
"""The actor of jobs that are forgotten because of their age."""


class BrokerHost:
    """A daemon's broker, with all that runs beside it."""

    def __init__(
        self,
        home: Home,
        hosting: Hosting,
        settings: Settings,
        broker: Broker,
        process: DaemonProcess,
        tcp: "TcpAccess | None",
    ) -> None:
        """`tcp` is None where the daemon serves only its own machine."""
        self._home, self._hosting, self._settings = home, hosting, settings
        self._broker = broker
        self._process = process
        self._tcp = tcp
        identity = None if tcp is None else tcp.identity
        self._endpoint = None if tcp is None else tcp.endpoint
        self._web = WebHost(home, hosting, broker, identity)
        self._pilot_folders = PilotFolders(home)
        self._pools = pool_runner(broker, self._endpoint, self._pilot_folders)
        self._context = self._new_context()
        self._server = ApiServer(application(self._context))
        self._unix = UnixAccess(home, self._server)
        self._parts: list[asyncio.Task[None]] = []
        """What runs until it is cancelled."""

    def _new_context(self) -> Context:
        return Context(
            self._broker,
            worker_id(self._home) if self._hosting.has_worker else "",
            grass.__version__,
            self._process.started_at,
            self._process.stop,
            self._settings,
            tcp=self._endpoint,
            web=self._web,
            findings=DoctorProcess(self._home).findings,
            pools=self._pools,
            standby=_standby_offer(self._home, self._hosting, self._broker),
        )

    async def run(self) -> None:
        """Start all parts, report that they run, and stop them in order."""
        self._process.handle_signals()
        self._broker.limit_gpus(
            self._settings.gpu_strangers,
            self._settings.gpu_jobs,
            self._settings.gpu_acknowledge_s,
        )
        async with (
            notifier(self._settings, self._broker) as notifying,
            asyncio.TaskGroup() as group,
        ):
            await self._start_broker(group)
            await self._start_servers(group)
            if self._settings.keep_s is not None:
                self._begin(group, forget_old(self._broker, self._settings.keep_s))
            await self._process.stopping()
            await self._stop(notifying)
        if self._process.stops:
            log.info("daemon.stopped", pid=os.getpid())

    async def _start_broker(self, group: asyncio.TaskGroup) -> None:
        """Start the broker, and this machine's worker."""
        self._begin(group, _run_broker(self._broker, self._process))
        self._begin(group, self._broker.blobs.run())
        own = self._context.worker
        if own:
            self._begin(group, _run_worker(self._context, self._home, self._hosting))
            await _first_report(self._broker, own, self._process)

    async def _start_servers(self, group: asyncio.TaskGroup) -> None:
        """Start to answer, first on this machine, and report that the daemon does."""
        self._unix.start(group, *_database(self._home, self._hosting))
        if self._tcp is not None:
            self._begin(group, self._tcp.serve(self._server))
            await _offer_joining(self._tcp, self._broker, self._process)
        self._begin_pools(group)
        await self._web.resume(self._server)
        save_options(self._home, self._hosting.words)
        self._process.report_ready(self._home)

    def _begin_pools(self, group: asyncio.TaskGroup) -> None:
        """Ask engines for workers, and read what the jobs of earlier ones printed."""
        self._pilot_output = PilotOutput(
            self._broker, self._pilot_folders, group.create_task
        )
        self._broker.requests.output.kept = self._pilot_output
        self._begin(group, self._pools.run())

    def _begin(self, group: asyncio.TaskGroup, part: Coroutine[Any, Any, None]) -> None:
        self._parts.append(group.create_task(part))

    async def _stop(self, notifying: Notifier) -> None:
        """Answer what was asked, and then stop the broker itself."""
        self._unix.remove_socket()
        await self._web.stop()
        await self._unix.stop()
        await notifying.finish(LAST_NOTIFICATIONS_S)
        self._pilot_output.close()
        for part in self._parts:
            part.cancel()


def _standby_offer(home: Home, hosting: Hosting, broker: Broker) -> StandbyOffer | None:
    """Return what a standby gets; one with a key of its own cannot be given it."""
    if broker.lead is None or hosting.cert is not None:
        return None
    from grass.store.postgres.address import address_of
    from grass.tls.key_text import key_text

    shown = address_of(hosting.store or "").shown
    return StandbyOffer(lambda: key_text(home.folder), shown)


async def _run_broker(broker: Broker, process: DaemonProcess) -> None:
    """Run the broker; one that loses the lead ends with all that belongs to it."""
    try:
        await broker.run()
    except LeadLost as lost:
        if broker.lead is not None:
            broker.lead.give_up(lost.message)
        process.end_role()


def _database(home: Home, hosting: Hosting) -> list[str]:
    """Return the files without which nothing can be committed."""
    if hosting.store != SQLITE:
        return []
    return [home.database + end for end in ("", "-wal", "-shm")]


async def _first_report(broker: Broker, own: str, process: DaemonProcess) -> None:
    """Wait until this machine's worker has reported its units.

    The wait is limited, as a daemon without its worker can still answer and be stopped.
    Where a standby begins to lead, the other machines have waited long enough.
    """
    if process.was_ready:
        return
    for _ in range(MOST_REPORT_WAITS):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(broker.welcomed(own), REPORT_S)
            return
        if broker.state.daemon.disk_full:
            break
    log.warning("worker.not_reported", worker=own)


async def _run_worker(context: Context, home: Home, hosting: Hosting) -> None:
    """Run this machine's worker in the broker's process."""
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]]
    ends = pair(Resync())
    near, far = ends
    context.broker.serve(near, worker=context.worker)
    blobs: tuple[str, int | None] = home.blobs, None
    if hosting.store != SQLITE:
        blobs = folder_of_boot(home.fetched_blobs, boot_id()), MOST_KEPT
    agent = await worker(home, hosting, context.worker, far, context.settings, blobs)
    await with_old_results_removed(home, context.settings, agent.run())


def tcp_access(home: Home, hosting: Hosting) -> "TcpAccess | None":
    """Listen for other machines, if the daemon is to."""
    if hosting.bind is None:
        return None
    from grass.daemon.tcp_access import TcpAccess

    return TcpAccess(home, hosting)


async def _offer_joining(
    tcp: "TcpAccess", broker: Broker, process: DaemonProcess
) -> None:
    """Print the line that others join with, or log how to get one."""
    if process.has_reader and not process.was_ready:
        process.print_join_line(await tcp.join_line(broker))
    else:
        log.info("tcp.listening", address=tcp.endpoint.address, hint=JOIN_HINT)


async def forget_old(broker: Broker, keep_s: float) -> None:
    """Forget jobs that ended too long ago, now and then once a day."""
    while True:
        before = time.time_ns() // 1000 - int(keep_s * 1_000_000)
        try:
            pruned = await prune_before(broker, RETENTION, before)
        except GrassError as error:
            log.warning("retention.failed", error=error)
        else:
            if pruned.jobs:
                log.info("retention.pruned", jobs=pruned.jobs, keep_s=keep_s)
        await asyncio.sleep(DAY_S)


@contextlib.asynccontextmanager
async def notifier(settings: Settings, broker: Broker) -> AsyncIterator[Notifier]:
    """Run the user's commands when jobs end and GPUs fail."""

    async def output_of(job: int, attempt: int) -> str:
        found = await broker.read(lambda db: db.details([job]))
        tries = [one for details in found for one in details.attempts]
        return next((one.output or "" for one in tries if one.number == attempt), "")

    around = CommandEnvironment(user_environment(os.environ), home_folder(), shell())
    notifying = Notifier(settings, around, output_of)
    broker.on_news = notifying.notify
    try:
        yield notifying
    finally:
        broker.on_news = None
        await notifying.aclose()
