"""Running a daemon: its log, its signals, its settings, and how it says that it runs.

It owns the state directory (by a lock that dies with it). Running jobs are the
keeper's: they notice neither that a daemon stops nor that another takes over.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import TypeVar

import uvloop

from grass.broker.shell.service import Broker
from grass.config import Home
from grass.daemon.hosting import Employer, Hosting, employer
from grass.daemon.life import Life
from grass.daemon.lost_database import note_cluster, refuse_lost_database
from grass.daemon.ownership import taken
from grass.daemon.preflight import ask_ahead, called
from grass.errors import GrassError
from grass.settings import Settings, settings_of
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.sqlite_store import SqliteStore

log = logging.getLogger("grass.daemon")

Failure = TypeVar("Failure", bound=Exception)


def main(home: Home, hosting: Hosting, *, ready: int | None, foreground: bool) -> int:
    """Run a daemon until it is told to stop; returns the process's exit code."""
    _set_up_log(foreground)
    os.umask(0o077)
    life = Life(ready, foreground)
    exit_code = 0
    try:
        # First of all: a mistake in the settings has touched nothing.
        settings = settings_of(home)
        works_for = employer(home, hosting)
        hosting = called(hosting)
        ask_ahead(hosting)
        with taken(home):
            _host(home, hosting, settings, works_for, life)
    except* GrassError as errors:
        failure = _first(errors)
        life.tell(f"grass: {failure}\n")
        log.error("grass: %s", failure)  # noqa: TRY400 -- the message is the whole story
        exit_code = failure.exit_code
    except* Exception as errors:
        defect = _first(errors)
        life.tell(f"grass: {type(defect).__name__}: {defect}\n")
        raise
    return exit_code


def _host(
    home: Home,
    hosting: Hosting,
    settings: Settings,
    works_for: Employer | None,
    life: Life,
) -> None:
    # A daemon loads what it hosts, and no more.
    if works_for is not None:
        from grass.daemon.worker_host import host_worker

        uvloop.run(host_worker(home, hosting, settings, works_for, life))
        return
    from grass.daemon.broker_host import host_broker

    refuse_lost_database(home)
    with contextlib.closing(_store(home)) as store, _put_back_if_gone(home, store):
        broker = Broker(store, is_fatal)
        note_cluster(home, broker.state.cluster)
        if not hosting.starts_jobs:
            broker.start_no_more()
        uvloop.run(host_broker(home, hosting, settings, broker, life))


@contextlib.contextmanager
def _put_back_if_gone(home: Home, store: SqliteStore) -> Iterator[None]:
    """Write a database anew that was deleted meanwhile: only this process has it."""
    try:
        yield
    finally:
        if os.path.isdir(home.folder) and not os.path.exists(home.database):
            store.write_anew()


def _store(home: Home) -> SqliteStore:
    return SqliteStore(Path(home.database))


def _first(errors: BaseExceptionGroup[Failure]) -> Failure:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


class LogFormatter(logging.Formatter):
    """Writes each record so that what a peer sent can neither forge a line nor act.

    What is not printable is written out. The lines of a traceback are indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record: its line, and below it what was raised."""
        record = copy(record)
        record.msg, record.args = _printable(record.getMessage()), None
        first, *more = super().format(record).split("\n")
        return "\n".join([first, *(f"  {_printable(line)}" for line in more)])


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    escaped = (one.encode("unicode_escape").decode("ascii") for one in text)
    pairs = zip(text, escaped, strict=True)
    return "".join(one if one.isprintable() else code for one, code in pairs)


def _set_up_log(foreground: bool) -> None:
    form = "%(message)s" if foreground else "%(asctime)s %(levelname)s %(message)s"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(form))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("websockets").setLevel(logging.WARNING)
    # The commit's thread makes many short calls that let go of the interpreter; with
    # the default of 5 ms each could wait that long to get it back.
    sys.setswitchinterval(0.0005)
