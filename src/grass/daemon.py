"""The composition root: one process that hosts a broker, a worker and the API.

It owns the state directory (by a lock that dies with it), the log, the signals and the
order of starting and stopping. Running jobs are the keeper's: they notice neither that
a daemon stops nor that another takes over.
"""

import asyncio
import contextlib
import errno
import fcntl
import gc
import logging
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from secrets import token_hex

import uvloop

import grass
from grass.api.app import application
from grass.api.context import Context
from grass.api.pruning import prune_before
from grass.api.server import ApiServer, listen
from grass.broker.service import Broker
from grass.config import Home
from grass.devices.probe import boot_id, found_units
from grass.errors import GrassError, Refused
from grass.keeper.mounts import network_mount
from grass.link.messages import ToBroker, ToWorker
from grass.link.pair import LinkEnd, pair
from grass.model.environment import outside_a_job
from grass.neighbours import announce, other_daemons
from grass.notify import Around, Notifier
from grass.settings import Settings, settings_of
from grass.store.sqlite import SqliteStore
from grass.store.sqlite_file import is_fatal
from grass.worker.agent import Worker
from grass.worker.core import WorkerCore
from grass.worker.prepare import Surroundings

log = logging.getLogger("grass.daemon")

DAY_S = 86400.0
LAST_NOTIFICATIONS_S = 5.0
"""How long a daemon that stops lets notifications finish."""

RETENTION = "retention"
"""The actor of what is forgotten because of its age."""


def main(
    home: Home, *, ready: int | None, foreground: bool, starts_jobs: bool = True
) -> int:
    """Run a daemon until it is told to stop; returns the process's exit code."""
    _set_up_log(foreground)
    os.umask(0o077)
    exit_code = 0
    try:
        # First of all: a mistake in the settings has touched nothing.
        settings = settings_of(home)
        with _taken(home), contextlib.closing(_store(home)) as store:
            broker = Broker(store, is_fatal)
            if not starts_jobs:
                broker.start_no_more()
            uvloop.run(_serve(home, settings, broker, ready))
    except* GrassError as errors:
        failure = _first(errors)
        _tell(ready, f"grass: {failure}\n")
        log.error("grass: %s", failure)  # noqa: TRY400 -- the message is the whole story
        exit_code = failure.exit_code
    return exit_code


async def _serve(
    home: Home, settings: Settings, broker: Broker, ready: int | None
) -> None:
    """Bring everything up, say so, and take it down again in order."""
    near, far = _link()
    identity = _worker_id(home)
    stop = asyncio.Event()
    now_us = time.time_ns() // 1000
    context = Context(broker, identity, grass.__version__, now_us, stop.set, settings)
    server = ApiServer(application(context))
    _on_signals(stop)
    async with _notifier(settings, broker) as notifier, asyncio.TaskGroup() as group:
        broker.serve(near)
        parts = [
            group.create_task(broker.run()),
            group.create_task(_worker(home, identity, far).run()),
        ]
        await broker.welcomed(identity)
        serving = group.create_task(server.serve_on(listen(home.socket)))
        # What start-up made lives as long as the daemon: spare the collector the look.
        gc.collect()
        gc.freeze()
        _tell(ready, "ready\n")
        log.info("ready: pid %d, home %s", os.getpid(), home.folder)
        if settings.keep_s is not None:
            parts.append(group.create_task(_forget_old(broker, settings.keep_s)))
        await stop.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.socket)
        server.stop()
        await serving
        await notifier.settle(LAST_NOTIFICATIONS_S)
        for part in parts:
            part.cancel()
    log.info("stopped")


async def _forget_old(broker: Broker, keep_s: float) -> None:
    """Forget jobs that ended too long ago, now and then once a day."""
    while True:
        before = time.time_ns() // 1000 - int(keep_s * 1_000_000)
        try:
            gone = await prune_before(broker, RETENTION, before)
        except GrassError as error:
            log.warning("old jobs could not be forgotten: %s", error)
        else:
            if gone.jobs:
                log.info("forgot %d jobs older than %g s", gone.jobs, keep_s)
        await asyncio.sleep(DAY_S)


@contextlib.asynccontextmanager
async def _notifier(settings: Settings, broker: Broker) -> AsyncIterator[Notifier]:
    """Run the user's commands when jobs end, for as long as this lasts."""

    async def output_of(job: int, attempt: int) -> str:
        found = await broker.read(lambda db: db.details([job]))
        tries = [one for details in found for one in details.attempts]
        return next((one.output or "" for one in tries if one.number == attempt), "")

    around = Around(outside_a_job(os.environ), _folder(), _shell())
    notifier = Notifier(settings, around, output_of)
    broker.on_ended = notifier.ended
    try:
        yield notifier
    finally:
        broker.on_ended = None
        await notifier.aclose()


def _folder() -> str:
    home = os.path.expanduser("~")
    return home if os.path.isdir(home) else "/"


def _first(errors: BaseExceptionGroup[GrassError]) -> GrassError:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _on_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _store(home: Home) -> SqliteStore:
    return SqliteStore(Path(home.database))


@contextlib.contextmanager
def _taken(home: Home) -> Iterator[None]:
    """Hold the state directory for as long as this lasts."""
    lock = _take(home)
    try:
        yield
    finally:
        os.close(lock)


def _take(home: Home) -> int:
    """Make the state directory ours, or say who has it."""
    problem = _network_disk(home.folder)
    if problem is not None:
        raise Refused(
            f"{home.folder} lies on a network file system ({problem}), where SQLite is"
            " not safe",
            "set GRASS_HOME to a folder on a local disk",
        )
    try:
        home.make()
        lock = os.open(home.daemon_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise GrassError(f"{home.folder} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        first = os.read(lock, 32).decode(errors="replace").strip()
        os.close(lock)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise GrassError(f"{home.daemon_lock}: {error.strerror}") from error
        raise Refused(
            f"a daemon with pid {first} already serves {home.folder}",
            "`grass stop` ends it, GRASS_HOME chooses another home",
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    _warn_of_neighbours()
    return lock


def _network_disk(folder: str) -> str | None:
    try:
        mounts = Path("/proc/self/mountinfo").read_text(
            encoding="utf-8", errors="replace"
        )
    except OSError:
        return None
    return network_mount(folder, mounts)


def _warn_of_neighbours() -> None:
    for uid, pid in other_daemons():
        log.warning(
            "user %s runs a grass daemon on this machine too (pid %s): the two do not"
            " know of each other's jobs",
            uid,
            pid,
        )
    announce()


def _worker(home: Home, identity: str, link: LinkEnd[ToBroker, ToWorker]) -> Worker:
    around = Surroundings(
        output_folder=home.output,
        home=os.path.expanduser("~"),
        shell=_shell(),
        environment=outside_a_job(os.environ),
    )
    name = socket.gethostname()
    core = WorkerCore(identity, name, boot_id(), found_units(), around)
    return Worker(core, link, home.keeper, home.output)


def _shell() -> str:
    return shutil.which("bash") or shutil.which("sh") or "/bin/sh"


def _worker_id(home: Home) -> str:
    """Return this home's own random id, made at the first start."""
    path = Path(home.worker_id)
    with contextlib.suppress(FileNotFoundError):
        known = path.read_text().strip()
        if known:
            return known
    made = token_hex(8)
    draft = path.with_suffix(".new")
    draft.write_text(made + "\n")
    draft.rename(path)
    return made


def _link() -> tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]]:
    return pair()


def _set_up_log(foreground: bool) -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(message)s" if foreground else "%(asctime)s %(levelname)s %(message)s",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # The commit's thread makes many short calls that let go of the interpreter; with
    # the default of 5 ms each could wait that long to get it back.
    sys.setswitchinterval(0.0005)


def _tell(ready: int | None, text: str) -> None:
    """Tell whoever started us how it went; nobody has to listen."""
    if ready is not None:
        with contextlib.suppress(OSError):
            os.write(ready, text.encode())
        with contextlib.suppress(OSError):
            os.close(ready)
