"""The database file: opening it, its schema, and what its failures mean."""

import sqlite3
import time
from base64 import b64encode
from pathlib import Path
from secrets import token_hex

from grass.errors import DiskFull, GrassError, StorageError
from grass.model.ids import CLUSTER_ID_BYTES
from grass.store.sql.dialect import migrations
from grass.store.sqlite import vacuum
from grass.store.sqlite.dialect import add_functions
from grass.store.sqlite.disk_reserve import free_bytes
from grass.store.sqlite.write_ahead_log import checkpoint, fill_log_file

SCHEMA_VERSION = 15
CACHE_KIB = 1024
STEPS_UNTIMED = 10_000
"""How many steps of SQLite pass between two looks at the clock."""
FIELD_NAMES_BYTES = 256
"""By how much the body of a row may be longer than the columns that it replaces."""
NEW_TABLE_BYTES = 48 * 1024
EMPTY_TABLES_BYTES = 96 * 1024
FEW_PAGES_BYTES = 256 << 10
"""For the first pages of tables and indexes, and for tables with few rows."""
INDEXED_BYTES = 100
"""For a job in the indexes and counts that a migration adds to it."""
SORTED_BYTES = 150
"""For a job in the indexes of orders, without names and owners."""
NEW_INDEX_BYTES = 16 * 1024
"""For the first pages of an index, and what of the log describes it."""
EVENT_BYTES = 80
"""For an event in the index of kinds."""
LONG_ROW_BYTES = 700
"""Longer rows may leave half of their page empty."""
_ROOM_HINT = "free some space; `grass prune` of the earlier grass still works on it"
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
"""The second is raised on opening a database whose index has no room."""


def storage_error(error: Exception, path: Path) -> StorageError:
    """Return the error of the database as one line with a hint."""
    if is_full(error):
        return disk_full(path)
    if is_damage(error):
        return damaged(path, str(error))
    return StorageError(f"the database {path} failed: {error}", "see the daemon's log")


def damaged(path: Path, problem: str) -> StorageError:
    """Return the error for a file that is no database any more, or not a whole one."""
    line = " ".join(problem.replace("*** in database main ***", "").split())
    return StorageError(
        f"the database {path} is damaged: {line}",
        "`grass stop`, then `grass restore FILE` puts a backup in its place; without a"
        f" backup, move {path.name} away and `grass start --new-database`",
    )


def is_damage(error: BaseException | None) -> bool:
    """Return whether SQLite found that the file is damaged."""
    return getattr(error, "sqlite_errorname", "").startswith(_DAMAGE)


def disk_full(path: Path) -> DiskFull:
    """Return the error for a full disk."""
    return DiskFull(
        f"the disk that holds {path} is full; nothing was changed",
        "free some space, for example with `grass prune`, and try again",
    )


def is_full(error: Exception) -> bool:
    """Return whether the error is that the disk is full."""
    return getattr(error, "sqlite_errorname", "") in _FULL


def is_fatal(error: StorageError) -> bool:
    """Return whether no further commit to the file may be tried.

    After a failed sync Linux may drop the page and report success the next time, so
    the only safe answer is to stop and to start again from what is on the disk.
    """
    name = getattr(error.__cause__, "sqlite_errorname", "")
    return name not in _FULL and name.startswith(("SQLITE_IOERR", *_DAMAGE))


def rolled_back(db: sqlite3.Connection, error: Exception, path: Path) -> StorageError:
    """Roll back after an error, and return the error to raise."""
    failure = storage_error(error, path)
    failure.__cause__ = error
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
    except sqlite3.Error as second:
        if not is_fatal(failure):
            failure = storage_error(second, path)
            failure.__cause__ = second
    return failure


def open_writer(path: Path) -> sqlite3.Connection:
    """Open the connection that writes."""
    try:
        # Opened in the thread that starts the daemon, used in the writer's.
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        vacuum.prepare(db)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA busy_timeout = 2000")
        # It would hide that a sync failed: see `write_ahead_log`.
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except sqlite3.Error as error:
        raise storage_error(error, path) from error
    return db


def preallocate_log(db: sqlite3.Connection, path: Path) -> None:
    """Give the write-ahead log its full size at once, unless the disk is full."""
    try:
        db.execute("PRAGMA cache_size = 16")
        checkpoint(db)
        fill_log_file(db)
    except sqlite3.Error as error:
        failure = rolled_back(db, error, path)
        if not is_full(error) or is_fatal(failure):
            raise failure from failure.__cause__
        # The next commit reports the full disk.
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA cache_size = -512")
        add_functions(db)
    except sqlite3.Error:
        db.close()
        raise
    return db


def limit_time(db: sqlite3.Connection, limit_s: float | None) -> None:
    """Interrupt what a connection does once this time is over; None: never."""
    if limit_s is None:
        db.set_progress_handler(None, 0)
        return
    deadline = time.monotonic() + limit_s
    db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_UNTIMED)


def is_interrupted(error: Exception) -> bool:
    """Return whether a query was ended because its time was over."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT"


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring an older database to the schema of this version; refuse a newer one."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise GrassError(
            f"{path} was written by a newer grass (schema {version}, this one knows"
            f" {SCHEMA_VERSION})",
            "install that version again",
        )
    steps = [step for step in migrations("sqlite") if step[0] > version]
    if steps:
        _check_room(db, path, version)
        db.create_function("base64", 1, lambda blob: b64encode(blob).decode())
        _apply(db, path, steps)


def enable_vacuum(db: sqlite3.Connection, path: Path) -> None:
    """Let pages of the file be released from now on, unless the disk is full."""
    try:
        vacuum.rewrite(db)
    except sqlite3.Error as error:
        failure = rolled_back(db, error, path)
        if not is_full(error):
            raise failure from failure.__cause__


def _check_room(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Refuse a migration that the disk has no room for, before it begins."""
    try:
        needed = migration_bytes(db) if version else 0
    except sqlite3.Error as error:
        raise storage_error(error, path) from error
    free = free_bytes(path.parent)
    if free < needed:
        raise DiskFull(
            f"to open {path} this grass converts it, which needs {needed:,} bytes of"
            f" disk space, and {free:,} are free; nothing was changed",
            _ROOM_HINT,
        )


def migration_bytes(db: sqlite3.Connection) -> int:
    """Return about how much disk space a migration needs, rather more than less.

    Jobs and attempts are written anew unless they have bodies, otherwise only indexed.
    The log has their old and
    their new pages, the file grows by the new ones, and indexes are sorted in temporary
    files.
    """
    if db.execute("PRAGMA table_info(pools)").fetchone() is not None:
        return NEW_TABLE_BYTES
    if db.execute("PRAGMA index_info(events_kind)").fetchone() is not None:
        return EMPTY_TABLES_BYTES
    (events,) = db.execute("SELECT COUNT(*) FROM events").fetchone()
    journal = EVENT_BYTES * int(events)
    if "jobs_name" in [row[1] for row in db.execute("PRAGMA index_list(jobs)")]:
        return EMPTY_TABLES_BYTES + NEW_INDEX_BYTES + journal
    jobs, names = db.execute(
        "SELECT COUNT(*), TOTAL(LENGTH(name) + LENGTH(owner)) FROM jobs"
    ).fetchone()
    orders = SORTED_BYTES * int(jobs) + 3 * int(names) + journal
    orders += 3 * NEW_INDEX_BYTES
    if db.execute("PRAGMA table_info(job_counts)").fetchone() is not None:
        return EMPTY_TABLES_BYTES + orders
    if "body" in [row[1] for row in db.execute("PRAGMA table_info(jobs)")]:
        return FEW_PAGES_BYTES // 2 + INDEXED_BYTES * int(jobs) + orders
    total = FEW_PAGES_BYTES + orders
    for table, indexed in (("jobs", ("queue", "project")), ("attempts", ())):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        size = " + ".join(
            f"IFNULL(LENGTH(CAST({name} AS BLOB)), 0)" for name in (*columns, *indexed)
        )
        query = (
            f"SELECT COUNT(*), TOTAL(size * (1 + (size > {LONG_ROW_BYTES})))"  # noqa: S608 -- names from the schema
            f" FROM (SELECT {size} AS size FROM {table})"
        )
        rows, content = db.execute(query).fetchone()
        total += 4 * int(content) + 2 * rows * FIELD_NAMES_BYTES
    return total


def _apply(db: sqlite3.Connection, path: Path, steps: list[tuple[int, str]]) -> None:
    """Apply all steps in one transaction.

    After a failure the version of grass that wrote the database can open it again.
    """
    parts = (f"{script};{_first_rows(number)}" for number, script in steps)
    try:
        db.executescript(f"BEGIN;{''.join(parts)}COMMIT;")
    except sqlite3.Error as error:
        failure = rolled_back(db, error, path)
        if is_full(error):
            failure.hint = _ROOM_HINT
        raise failure from failure.__cause__


def _first_rows(number: int) -> str:
    mark = f"PRAGMA user_version = {number};"
    if number > 1:
        return mark
    values = f"('cluster', '{token_hex(CLUSTER_ID_BYTES)}'), ('last_job', '0'),"
    return f"INSERT INTO meta (key, value) VALUES {values} ('paused', '0');{mark}"  # noqa: S608 -- all of it is ours
