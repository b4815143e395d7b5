"""The store in SQLite.

Exactly one connection writes, always from the broker's writer thread; it also runs the
checkpoints. WAL with `synchronous=FULL`: when `commit` returns, a power cut loses
nothing. People's reading goes over a second connection that cannot write, so a long
listing never delays a commit.
"""

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from grass.errors import GrassError, StorageError
from grass.model.ids import CLUSTER_ID_BYTES
from grass.model.job import Job, Spec
from grass.model.queue import View
from grass.model.selectors import Selection
from grass.store import queries, rows
from grass.store.changes import Call, Changes, Env
from grass.store.interface import JobDetails, JobFilter, Snapshot
from grass.store.statements import migrations, statements

SCHEMA_VERSION = 1
CACHE_KIB = 4096
LOG_BYTES = 1100 * 4096
"""A little more than the 1,000 pages after which SQLite starts the log anew."""

T = TypeVar("T")

_FAILURES = (sqlite3.Error, UnicodeError, OverflowError)
"""The last two are what binding a value raises that SQLite cannot hold."""


class SqliteStore:
    """One cluster's state in one file."""

    def __init__(self, path: Path) -> None:
        """Open the database, making or migrating it first where needed."""
        self.path = path
        self._sql = statements("sqlite")
        self._writer = _opened(path)
        _migrate(self._writer, path)
        _grow_log(self._writer)
        self._reader = _opened_for_reading(path)
        self._reading = threading.Lock()

    def commit(self, changes: Changes) -> None:
        """Write all of it durably, or nothing and raise `StorageError`."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            self._write(changes)
            self._writer.execute("COMMIT")
        except _FAILURES as error:
            self._roll_back()
            raise storage_error(error, self.path) from error

    def load(self, calls_since: int) -> Snapshot:
        """Read back what `commit` has written."""
        try:
            self._tidy(calls_since)
            return self._loaded(calls_since)
        except sqlite3.Error as error:
            self._roll_back()
            raise storage_error(error, self.path) from error

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobDetails]:
        """Read one page of jobs."""
        return self._read(lambda db: queries.page(db, self._sql, wanted, limit))

    def details(self, ids: list[int]) -> list[JobDetails]:
        """Read these jobs, those that exist, in order of id."""
        return self._read(lambda db: queries.details(db, self._sql, ids))

    def outcomes(self, ids: list[int]) -> list[Job]:
        """Read these jobs, those that exist, without spec and attempts."""
        return self._read(lambda db: queries.jobs_by_id(db, self._sql, ids))

    def select(self, selections: list[Selection]) -> list[int]:
        """Give the ids of all jobs that any of the selections means."""
        return self._read(lambda db: queries.select(db, self._sql, selections))

    def usage_before(self, at: int) -> tuple[int, int]:
        """Count jobs that ended before a time, and the bytes of their output."""
        statement = self._sql["usage_before"]
        return self._read(lambda db: _pair(db.execute(statement, (at,)).fetchone()))

    def finished_before(self, at: int, limit: int) -> list[int]:
        """Give jobs that ended before a time, the oldest first."""
        statement = self._sql["finished_before"]
        return self._read(
            lambda db: [row[0] for row in db.execute(statement, (at, limit))]
        )

    def close(self) -> None:
        """Let go of the database; may be called twice."""
        self._reader.close()
        self._writer.close()

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        with self._reading:
            try:
                return query(self._reader)
            except _FAILURES as error:
                raise storage_error(error, self.path) from error

    def _write(self, changes: Changes) -> None:
        for statement, values_of, row in _WRITES:
            values = values_of(changes)
            if values:
                self._many(statement, map(row, values))
        if changes.removed_jobs:
            self._remove_jobs(changes.removed_jobs)

    def _many(self, name: str, parameters: Iterable[rows.Row]) -> None:
        self._writer.executemany(self._sql[name], parameters)

    def _remove_jobs(self, ids: list[int]) -> None:
        for name in ("remove_events_of", "remove_attempts_of", "remove_job"):
            self._many(name, ((job,) for job in ids))
        self._writer.execute(self._sql["remove_unused_specs"])
        self._writer.execute(self._sql["remove_unused_envs"])

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _tidy(self, calls_since: int) -> None:
        """Undo what a broker was in the middle of writing, and drop old answers."""
        self._writer.execute("BEGIN IMMEDIATE")
        self._writer.execute(self._sql["expire_calls"], (calls_since,))
        self._writer.execute(self._sql["drop_arriving_jobs"])
        self._writer.execute(self._sql["drop_arrivals"])
        self._writer.execute("COMMIT")

    def _loaded(self, calls_since: int) -> Snapshot:
        db, sql = self._writer, self._sql
        meta = dict(db.execute(sql["load_meta"]))
        last_spec, last_env = db.execute(sql["largest_ids"]).fetchone()
        queues = {
            row[0]: rows.queue_from(row) for row in db.execute(sql["load_queues"])
        }
        for queue, worker, body in db.execute(sql["load_views"]):
            queues[queue].views[worker] = rows.view_from(body)
        return Snapshot(
            cluster=meta["cluster"],
            last_job=int(meta["last_job"]),
            last_spec=last_spec,
            last_env=last_env,
            paused=meta["paused"] == "1",
            queues=list(queues.values()),
            workers=[rows.worker_from(row) for row in db.execute(sql["load_workers"])],
            jobs=[
                rows.job_from(row) for row in db.execute(sql["load_unfinished_jobs"])
            ],
            attempts=[
                rows.attempt_from(row) for row in db.execute(sql["load_live_attempts"])
            ],
            specs={
                number: rows.spec_from(body)
                for number, body in db.execute(sql["load_specs"])
            },
            envs=[Env(*row) for row in db.execute(sql["load_envs"])],
            calls=[Call(*row) for row in db.execute(sql["load_calls"], (calls_since,))],
            counts=dict(db.execute(sql["count_by_state"])),
            output_bytes=db.execute(sql["output_usage"]).fetchone()[0],
        )


def storage_error(error: Exception, path: Path) -> StorageError:
    """Say in one line what the database could not do, and what to do about it."""
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return StorageError(
            f"the disk that holds {path} is full; nothing was changed",
            "free some space, for example with `grass prune`, and try again",
        )
    return StorageError(f"the database {path} failed: {error}", "see the daemon's log")


def is_fatal(error: StorageError) -> bool:
    """Tell whether the file can no longer be trusted with another commit.

    After a failed sync Linux may drop the page and report success the next time, so
    the only safe answer is to stop and start anew from what is on the disk.
    """
    name = getattr(error.__cause__, "sqlite_errorname", "")
    return name.startswith(("SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOTADB"))


def _opened(path: Path) -> sqlite3.Connection:
    try:
        # Opened in the thread that starts the daemon, used in the writer's.
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA busy_timeout = 2000")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except sqlite3.Error as error:
        raise storage_error(error, path) from error
    return db


def _grow_log(db: sqlite3.Connection) -> None:
    """Give the write-ahead log its full size at once.

    SQLite reuses it from then on. While it still grows, every sync has to write the
    file's new size as well, which takes twice as long.
    """
    try:
        db.execute("PRAGMA cache_size = 16")
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE filler (content BLOB)")
        db.execute("INSERT INTO filler VALUES (zeroblob(?))", (LOG_BYTES,))
    except sqlite3.Error:
        # A full disk: whoever commits next is told.
        pass
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


def _opened_for_reading(path: Path) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False
    )
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA cache_size = -2048")
    queries.add_functions(db)
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise GrassError(
            f"{path} was written by a newer grass (schema {version}, this one knows"
            f" {SCHEMA_VERSION})",
            "install that version again",
        )
    for number, script in migrations():
        if number > version:
            db.executescript(f"BEGIN;{script};{_first_rows(number)}COMMIT;")


def _first_rows(number: int) -> str:
    mark = f"PRAGMA user_version = {number};"
    if number > 1:
        return mark
    values = f"('cluster', '{token_hex(CLUSTER_ID_BYTES)}'), ('last_job', '0'),"
    return f"INSERT INTO meta (key, value) VALUES {values} ('paused', '0');{mark}"  # noqa: S608 -- all of it is ours


def _pair(row: rows.Row) -> tuple[int, int]:
    return int(row[0]), int(row[1])


def _spec_row(item: tuple[int, Spec]) -> rows.Row:
    number, spec = item
    return (number, spec.base_env, rows.json_text(spec))


def _view_row(item: tuple[tuple[str, str], View]) -> rows.Row:
    (queue, worker), view = item
    return (queue, worker, rows.json_text(view))


def _alone(value: object) -> rows.Row:
    return (value,)


def _as_it_is(row: rows.Row) -> rows.Row:
    return row


_WRITES: list[tuple[str, Callable[[Changes], Collection[Any]], Callable[..., rows.Row]]]
_WRITES = [
    ("save_meta", lambda changes: changes.meta.items(), _as_it_is),
    ("add_env", lambda changes: changes.envs, _as_it_is),
    ("add_spec", lambda changes: changes.specs.items(), _spec_row),
    ("save_worker", lambda changes: changes.workers.values(), rows.worker_row),
    # Removals first: a queue may be made anew in the batch that deleted it.
    ("remove_view", lambda changes: changes.removed_views, _as_it_is),
    ("remove_queue", lambda changes: changes.removed_queues, _alone),
    ("save_queue", lambda changes: changes.queues.values(), rows.queue_row),
    ("save_view", lambda changes: changes.views.items(), _view_row),
    ("save_job", lambda changes: changes.jobs.values(), rows.job_row),
    ("remove_attempt", lambda changes: changes.removed_attempts, _as_it_is),
    ("save_attempt", lambda changes: changes.attempts.values(), rows.attempt_row),
    ("add_arrival", lambda changes: changes.arrivals, _as_it_is),
    ("remove_arrival", lambda changes: changes.removed_arrivals, _alone),
    ("add_event", lambda changes: changes.events, _as_it_is),
    ("add_call", lambda changes: changes.calls, _as_it_is),
]
"""Statement, what of the changes it writes, and how a value becomes a row."""
