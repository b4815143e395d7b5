"""One process that hosts a broker, a worker and the API.

It owns the state directory (by a lock that dies with it), the log, the signals and the
order of starting and stopping. Running jobs are the keeper's: they notice neither that
a daemon stops nor that another takes over.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from pathlib import Path

import uvloop

import grass
from grass.api.app import application
from grass.api.context import Context
from grass.api.server import ApiServer, listen
from grass.broker.service import Broker
from grass.config import Home
from grass.daemon.machine import worker, worker_id
from grass.daemon.ownership import taken
from grass.daemon.upkeep import forget_old, notifier
from grass.errors import GrassError
from grass.link.messages import ToBroker, ToWorker
from grass.link.pair import LinkEnd, pair
from grass.settings import Settings, settings_of
from grass.store.sqlite import SqliteStore
from grass.store.sqlite_file import is_fatal

log = logging.getLogger("grass.daemon")

LAST_NOTIFICATIONS_S = 5.0
"""How long a daemon that stops lets notifications finish."""


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
        with taken(home), contextlib.closing(_store(home)) as store:
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
    near: LinkEnd[ToWorker, ToBroker]
    near, far = pair()
    identity = worker_id(home)
    stop = asyncio.Event()
    now_us = time.time_ns() // 1000
    context = Context(broker, identity, grass.__version__, now_us, stop.set, settings)
    server = ApiServer(application(context))
    _on_signals(stop)
    async with notifier(settings, broker) as telling, asyncio.TaskGroup() as group:
        broker.serve(near)
        parts = [
            group.create_task(broker.run()),
            group.create_task(worker(home, identity, far).run()),
        ]
        await broker.welcomed(identity)
        serving = group.create_task(server.serve_on(listen(home.socket)))
        # What start-up made lives as long as the daemon: spare the collector the look.
        gc.collect()
        gc.freeze()
        _tell(ready, "ready\n")
        log.info("ready: pid %d, home %s", os.getpid(), home.folder)
        if settings.keep_s is not None:
            parts.append(group.create_task(forget_old(broker, settings.keep_s)))
        await stop.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.socket)
        server.stop()
        await serving
        await telling.settle(LAST_NOTIFICATIONS_S)
        for part in parts:
            part.cancel()
    log.info("stopped")


def _first(errors: BaseExceptionGroup[GrassError]) -> GrassError:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _on_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _store(home: Home) -> SqliteStore:
    return SqliteStore(Path(home.database))


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
