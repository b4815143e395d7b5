"""Moving a cluster's state from SQLite to PostgreSQL, or back.

All rows are written in one transaction of the new database, read back and compared with
the old one before it is committed. So an interruption at any point leaves the old
database as it is, and in the new one nothing. Blobs are copied first: those that nobody
names do no harm. No broker can write to PostgreSQL meanwhile, nor one of before later.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg

from grass.errors import Refused, StorageError
from grass.store.blob_folder import BlobFolder
from grass.store.blobs import PIECE, Blobs
from grass.store.bodies import CorruptRow
from grass.store.changes import Env, env_origins
from grass.store.postgres.connections import PostgresConnection, connect
from grass.store.postgres.failures import storage_error
from grass.store.postgres.fencing import begin_alone
from grass.store.postgres.postgres_store import PostgresStore
from grass.store.sql.dialect import Connection, Dialect, Row
from grass.store.sql.loading import HOME_WORKER
from grass.store.sql.rows import spec_from
from grass.store.sql.table_copies import (
    ENVS,
    KEYS,
    Digest,
    OpenRow,
    digest,
    read_rows,
    write_rows,
)
from grass.store.sqlite.database_file import open_reader
from grass.store.sqlite.sqlite_store import SqliteStore

Digests = dict[str, Digest]
Reached = Callable[[str], None]
"""Called between two steps; a test may interrupt there."""


class EnvRows:
    """Environments as rows of a file, and as PostgreSQL has them."""

    def __init__(self, sql: Dialect, source: Connection) -> None:
        """Read from the source which machine each of them came from."""
        self._sql = sql
        named = source.execute(
            "SELECT id, body FROM specs WHERE base_env IS NOT NULL"
        ).fetchall()
        self._origins = env_origins(spec_from(id, body) for id, body in named)

    def sealed(self, row: Row) -> Row:
        """Return a row as PostgreSQL has it."""
        return self._sql.sealed(self._env(row))[:3]

    def opened(self, row: Row) -> Row:
        """Return a row of PostgreSQL as a file has it."""
        return self._sql.opened(self._env(row))[:3]

    def _env(self, row: Row) -> Env:
        id, owner, body = row
        return Env(id, owner, body, self._origins.get(id, ""))


class _Copying(NamedTuple):
    """What is known of a file that is copied to PostgreSQL."""

    columns: dict[str, list[str]]
    wanted: Digests
    envs: EnvRows
    last_event: int
    home_worker: str


@contextmanager
def _failing_in_one_line(path: Path, shared: PostgresStore) -> Iterator[None]:
    """Raise errors of either database, and of a row in it, as those of a store."""
    try:
        yield
    except psycopg.Error as error:
        raise storage_error(error, shared.address) from error
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"{path} could not be used: {error}") from error
    except CorruptRow as error:
        raise StorageError(str(error), "look at it with `grass store check`") from error


def to_postgres(
    path: Path, target: PostgresStore, reached: Reached, home_worker: str = ""
) -> Digests:
    """Copy the database in a file to an empty one; return what was compared.

    Environments in a file came from the machine of `home_worker`, and do not say so.
    A target that has the same rows already is what an interrupted move has left behind.
    """
    with _failing_in_one_line(path, target), closing(open_reader(path)) as source:
        columns = _columns(source)
        source.execute("BEGIN")
        wanted = {table: digest(source, table, columns[table]) for table in KEYS}
        envs = EnvRows(target.dialect, source)
        with closing(connect(target.address)) as db:
            if not _is_empty(db):
                if not _are_same(db, columns, envs, wanted):
                    raise _not_empty(target)
                return wanted
        reached("blobs")
        _copy_blobs(BlobFolder(path.parent / "blobs", is_shared=True), target.blobs)
        reached("rows")
        (last,) = source.execute(_LAST_LINE).fetchone() or (0,)
        copying = _Copying(columns, wanted, envs, last, home_worker)
        _fill_postgres(source, target, copying, reached)
    return wanted


def _fill_postgres(
    source: sqlite3.Connection,
    target: PostgresStore,
    copying: _Copying,
    reached: Reached,
) -> None:
    columns, wanted, envs, last, home_worker = copying
    with closing(connect(target.address)) as db:
        begin_alone(db, target.address)
        if not _is_empty(db):
            raise _not_empty(target)
        db.execute("DELETE FROM meta WHERE key IN ('cluster', 'last_job', 'paused')")
        for table in KEYS:
            rows = read_rows(source, table, columns[table])
            written = map(envs.sealed, rows) if table == ENVS else rows
            write_rows(db, table, columns[table], written)
            reached(table)
        db.execute("UPDATE journal SET last = ?", (last,))
        db.execute(target.dialect["save_meta"], (HOME_WORKER, home_worker))
        _compare(db, columns, wanted, envs.opened)
        reached("compared")
        db.execute("COMMIT")
        # It is moved by now; the server does this by itself later on.
        with suppress(psycopg.Error):
            db.execute("ANALYZE")


def to_sqlite(source: PostgresStore, path: Path, reached: Reached) -> Digests:
    """Copy a database to a new file; return what was compared."""
    draft = path.with_name(path.name + ".moving")
    for end in ("", "-wal", "-shm"):
        Path(f"{draft}{end}").unlink(missing_ok=True)
    # Whatever umask the caller has: there are environments in it.
    draft.touch(0o600)
    SqliteStore(draft).close()
    with _failing_in_one_line(path, source), closing(connect(source.address)) as db:
        with closing(sqlite3.connect(draft, isolation_level=None)) as target:
            wanted = _fill_sqlite(db, target, source, path, reached)
        reached("compared")
        draft.rename(path)
        _sync_folder(path.parent)
        reached("renamed")
        moved = "INSERT INTO meta (key, value) VALUES ('moved', ?)"
        db.execute(moved, (str(path),))
        db.execute("COMMIT")
    return wanted


def _sync_folder(folder: Path) -> None:
    """Put a new name on the disk, before the old database does not count any more."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fill_sqlite(
    db: PostgresConnection,
    target: sqlite3.Connection,
    source: PostgresStore,
    path: Path,
    reached: Reached,
) -> Digests:
    columns = _columns(target)
    begin_alone(db, source.address)
    reached("blobs")
    _copy_blobs(source.blobs, BlobFolder(path.parent / "blobs", is_shared=True))
    reached("rows")
    target.execute("BEGIN IMMEDIATE")
    target.execute("DELETE FROM meta")
    envs = EnvRows(source.dialect, db)
    for table in KEYS:
        rows = read_rows(db, table, columns[table], envs.opened)
        write_rows(target, table, columns[table], rows)
        reached(table)
    (last,) = db.execute("SELECT last FROM journal").fetchone()
    target.execute("DELETE FROM sqlite_sequence WHERE name = 'events'")
    sequence = "INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?)"
    target.execute(sequence, (last,))
    wanted = _digests(db, columns, envs.opened)
    _compare(target, columns, wanted)
    target.execute("COMMIT")
    target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return wanted


_LAST_LINE = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"


def _columns(db: sqlite3.Connection) -> dict[str, list[str]]:
    return {
        table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        for table in KEYS
    }


def _is_empty(db: Connection) -> bool:
    """Tell whether nothing of a cluster was ever committed here."""
    (last,) = db.execute("SELECT last FROM journal").fetchone()
    (workers,) = db.execute("SELECT COUNT(*) FROM workers").fetchone()
    (specs,) = db.execute("SELECT COUNT(*) FROM specs").fetchone()
    return not (last or workers or specs)


def _not_empty(target: PostgresStore) -> Refused:
    return Refused(
        f"the database {target.address.shown} has a queue of its own already",
        "name an empty database",
    )


def _are_same(
    db: Connection, columns: dict[str, list[str]], envs: EnvRows, wanted: Digests
) -> bool:
    try:
        return _digests(db, columns, envs.opened) == wanted
    except CorruptRow:
        return False


def _digests(db: Connection, columns: dict[str, list[str]], opened: OpenRow) -> Digests:
    return {table: digest(db, table, columns[table], opened) for table in KEYS}


def _compare(
    db: Connection,
    columns: dict[str, list[str]],
    wanted: Digests,
    opened: OpenRow = tuple,
) -> None:
    """Raise unless each table has the rows that it should have."""
    for table, known in wanted.items():
        found = digest(db, table, columns[table], opened)
        if found != known:
            raise StorageError(
                f"table {table} has {found.rows} rows with the hash"
                f" {found.sha256[:12]}, not {known.rows} with {known.sha256[:12]};"
                " nothing was changed"
            )


def _copy_blobs(source: Blobs, target: Blobs) -> None:
    for name in target.missing(source.names()):
        draft, offset = target.begin(name), 0
        try:
            while piece := source.read(name, offset, PIECE):
                draft.write(piece)
                offset += len(piece)
            draft.finish()
        finally:
            draft.discard()
