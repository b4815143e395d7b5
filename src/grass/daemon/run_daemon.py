"""Runs a daemon: settings, log, locks, and what it hosts.

The daemon holds the lock of its state directory. Running jobs belong to the keeper, and
are not affected when a daemon stops or another one takes over.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import uvloop

from grass.client.autostart import make
from grass.config import Home, has_queue
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.home_lock import locked
from grass.daemon.hosting import Hosting, RemoteBroker, remote_broker, save_options
from grass.daemon.preflight import ask_pass_phrase, with_loopback_name
from grass.errors import GrassError, NoBroker, NoDatabase
from grass.event_log import EventLog, set_up
from grass.setting_values import SQLITE
from grass.settings import Settings, settings_of

if TYPE_CHECKING:
    from grass.store.interface import Store

log = EventLog("grass.daemon")

Failure = TypeVar("Failure", bound=Exception)
SWITCH_S = 0.0005
"""The commit's thread makes many short calls that release the interpreter; with the
default of 5 ms each could wait that long to get it back."""


def run_daemon(
    home: Home, hosting: Hosting, *, ready: int | None, foreground: bool
) -> int:
    """Run a daemon until it stops; return the process's exit code."""
    set_up(hosting.log_format or "text")
    sys.setswitchinterval(SWITCH_S)
    os.umask(0o077)
    process = DaemonProcess(ready, foreground)
    exit_code, failure = 0, None
    try:
        # Before anything else, so that a mistake in the settings changes nothing.
        settings = settings_of(home)
        log_format = hosting.log_format or settings.log_format
        set_up(log_format)
        hosting = hosting._replace(log_format=log_format)
        with _remembered_worker(home, hosting.words):
            works_for = remote_broker(home, hosting)
        hosting = with_loopback_name(hosting)
        ask_pass_phrase(hosting)
        with locked(home):
            _host(home, hosting, settings, works_for, process)
    except* GrassError as errors:
        failure = _first(errors)
        process.report(f"{_start_code(failure)} grass: {failure}\n")
    except* Exception as errors:  # noqa: BLE001 -- logged with its traceback
        defect = _first(errors)
        process.report(f"grass: {type(defect).__name__}: {defect}\n")
        log.defect(defect)
        exit_code = GrassError.exit_code
    return exit_code if failure is None else _failed(failure, hosting, process)


def _failed(failure: GrassError, hosting: Hosting, process: DaemonProcess) -> int:
    """Log a failure; a person who could not start a daemon gets the plain message."""
    if process.foreground and not process.was_ready and hosting.log_format != "json":
        raise failure
    hint = failure.hint or None
    log.error("daemon.failed", error=failure.message, hint=hint)
    return failure.exit_code


@contextlib.contextmanager
def _remembered_store(home: Home, asked: str | None) -> Iterator[None]:
    """Save which database was asked for, if a home that never had a broker gets none.

    The next command would make a queue in a file here, and this home would have it.
    """
    try:
        yield
    except GrassError:
        if asked not in (None, SQLITE) and not has_queue(home):
            save_options(home, [f"--store={asked}"])
        raise


@contextlib.contextmanager
def _remembered_worker(home: Home, words: Sequence[str]) -> Iterator[None]:
    """Save the options of a worker whose broker this machine has not joined yet.

    The next command would start a broker here, and make a queue that nobody asked for.
    """
    try:
        yield
    except NoBroker:
        if not has_queue(home):
            make(home)
            save_options(home, words)
        raise


def _start_code(failure: GrassError) -> int:
    """Return with which code the command that starts a daemon is to exit."""
    is_away = isinstance(failure, NoDatabase | NoBroker)
    return failure.exit_code if is_away else GrassError.exit_code


def _host(
    home: Home,
    hosting: Hosting,
    settings: Settings,
    works_for: RemoteBroker | None,
    process: DaemonProcess,
) -> None:
    # A daemon loads what it hosts, and no more.
    if works_for is not None:
        from grass.daemon.worker_host import host_worker

        uvloop.run(host_worker(home, hosting, settings, works_for, process))
        return
    from grass.broker.shell.service import Broker
    from grass.daemon.broker_host import BrokerHost, tcp_access
    from grass.daemon.database.database_loss import write_cluster
    from grass.daemon.database.open_store import open_store

    asked, url = hosting.store, hosting.store or settings.store
    hosting = hosting._replace(store=url)
    if url != SQLITE and not _await_database(home, url, process):
        return
    with (
        _remembered_store(home, asked),
        open_store(home, url) as (store, is_fatal),
    ):
        if url != SQLITE:
            _host_shared(home, hosting, settings, process, store)
            return
        broker = Broker(store, is_fatal)
        write_cluster(home, broker.state.cluster)
        if not hosting.starts_jobs:
            broker.stop_starting()
        tcp = tcp_access(home, hosting)
        host = BrokerHost(home, hosting, settings, broker, process, tcp)
        uvloop.run(host.run())


def _await_database(home: Home, url: str, process: DaemonProcess) -> bool:
    """Wait for a database that this home has used before; return whether to go on."""
    from grass.daemon.database.database_loss import written_cluster
    from grass.daemon.database.open_store import cluster_in

    if written_cluster(home) is None:
        return True
    try:
        cluster_in(url)
    except NoDatabase as error:
        if not error.may_return:
            raise
        from grass.daemon.database.database_wait import DatabaseWait

        uvloop.run(DatabaseWait(home, url, process, error).run())
    return not process.stops


def _host_shared(
    home: Home,
    hosting: Hosting,
    settings: Settings,
    process: DaemonProcess,
    store: "Store",
) -> None:
    """Host a broker that shares its database with those of other machines."""
    from grass.daemon.database.database_loss import write_cluster
    from grass.daemon.leading.shared_host import SharedHost

    assert hosting.store is not None
    cluster = store.cluster()
    write_cluster(home, cluster)
    uvloop.run(SharedHost(home, hosting, settings, store, process).run())


def _first(errors: BaseExceptionGroup[Failure]) -> Failure:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
