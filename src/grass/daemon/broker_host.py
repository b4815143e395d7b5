"""Hosts a broker: usually with this machine's worker, and with --bind over TCP too.

Parts start in order: broker, worker, API on the Unix socket. The TCP server starts
last, when everything behind it runs. Beside them, retention forgets old jobs, and
notifications run for jobs that have ended.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import grass
from grass.api.app import application
from grass.api.context import Context, StandbyOffer
from grass.api.server.unix_server import ApiServer, listen
from grass.broker.shell.pruning import prune_before
from grass.broker.shell.service import Broker
from grass.config import Home, user_environment
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.doctor_process import DoctorProcess
from grass.daemon.file_restore import restore_files
from grass.daemon.hosting import Hosting, save_options
from grass.daemon.pools.kept_output import KeptOutput
from grass.daemon.pools.pool_host import output_folder, pool_runner
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


async def host_broker(
    home: Home,
    hosting: Hosting,
    settings: Settings,
    broker: Broker,
    process: DaemonProcess,
    tcp: "TcpAccess | None" = None,
) -> None:
    """Start all parts, report that they run, and stop them in order."""
    process.handle_signals()
    own = worker_id(home) if hosting.has_worker else ""
    tcp = tcp or tcp_access(home, hosting)
    web = WebHost(home, hosting, broker, None if tcp is None else tcp.identity)
    pools = pool_runner(broker, None if tcp is None else tcp.endpoint)
    context = Context(
        broker,
        own,
        grass.__version__,
        process.started_at,
        process.stop,
        settings,
        tcp=None if tcp is None else tcp.endpoint,
        web=web,
        findings=DoctorProcess(home).findings,
        pools=pools,
        standby=_standby_offer(home, hosting, broker),
    )
    server = ApiServer(application(context))
    broker.limit_gpus(settings.gpu_strangers, settings.gpu_jobs)
    async with notifier(settings, broker) as notifying, asyncio.TaskGroup() as group:
        parts = [group.create_task(_run_broker(broker, process))]
        parts.append(group.create_task(broker.blobs.run()))
        if own:
            parts.append(group.create_task(_run_worker(context, home, hosting)))
            await _first_report(broker, own, process)
        serving = group.create_task(server.serve_on(listen(home.socket)))
        restoring = group.create_task(
            restore_files(home, server, *_database(home, hosting))
        )
        if tcp is not None:
            parts.append(group.create_task(tcp.serve(server)))
            await _offer_joining(tcp, broker, process)
        broker.output.kept = KeptOutput(broker, output_folder, group.create_task)
        parts.append(group.create_task(pools.run()))
        await web.resume(server)
        save_options(home, hosting.words)
        process.report_ready(home)
        if settings.keep_s is not None:
            parts.append(group.create_task(forget_old(broker, settings.keep_s)))
        await process.stopping()
        restoring.cancel()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.socket)
        await web.stop()
        server.stop()
        await serving
        await notifying.finish(LAST_NOTIFICATIONS_S)
        broker.output.kept.close()
        for part in parts:
            part.cancel()
    if process.stops:
        log.info("daemon.stopped", pid=os.getpid())


def _standby_offer(home: Home, hosting: Hosting, broker: Broker) -> StandbyOffer | None:
    """Return what a standby gets; one with a key of its own cannot be given it."""
    if broker.lead is None or hosting.cert is not None:
        return None
    from grass.store.postgres.address import address_of
    from grass.tls.key_files import key_text

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
    """Run the user's commands when jobs end."""

    async def output_of(job: int, attempt: int) -> str:
        found = await broker.read(lambda db: db.details([job]))
        tries = [one for details in found for one in details.attempts]
        return next((one.output or "" for one in tries if one.number == attempt), "")

    around = CommandEnvironment(user_environment(os.environ), home_folder(), shell())
    notifying = Notifier(settings, around, output_of)
    broker.on_ended = notifying.ended
    try:
        yield notifying
    finally:
        broker.on_ended = None
        await notifying.aclose()
