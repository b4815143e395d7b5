"""Moving a cluster's state from SQLite to PostgreSQL, or back.

All rows are written in one transaction of the new database, read back and compared with
the old one before it is committed. So an interruption at any point leaves the old
database as it is, and in the new one nothing. Blobs are copied first: those that nobody
names do no harm.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg

from grass.errors import Refused, StorageError
from grass.store.blob_folder import BlobFolder
from grass.store.blobs import PIECE, Blobs
from grass.store.postgres.connections import connect
from grass.store.postgres.failures import storage_error
from grass.store.postgres.postgres_store import PostgresStore
from grass.store.sql.dialect import Connection
from grass.store.sql.table_copies import KEYS, Digest, digest, read_rows, write_rows
from grass.store.sqlite.database_file import open_reader
from grass.store.sqlite.sqlite_store import SqliteStore

Digests = dict[str, Digest]
Reached = Callable[[str], None]
"""Called between two steps; a test may interrupt there."""


def to_postgres(path: Path, target: PostgresStore, reached: Reached) -> Digests:
    """Copy the database in a file to an empty one; return what was compared.

    A target that has the same rows already is what an interrupted move has left behind.
    """
    with closing(open_reader(path)) as source:
        columns = _columns(source)
        source.execute("BEGIN")
        wanted = {table: digest(source, table, columns[table]) for table in KEYS}
        with closing(connect(target.address)) as db:
            if not _is_empty(db):
                found = {table: digest(db, table, columns[table]) for table in KEYS}
                if found != wanted:
                    raise _not_empty(target)
                return wanted
        reached("blobs")
        _copy_blobs(BlobFolder(path.parent / "blobs", is_shared=True), target.blobs)
        reached("rows")
        (last,) = source.execute(_LAST_LINE).fetchone() or (0,)
        _fill_postgres(source, target, columns, wanted, (last, reached))
    return wanted


def _fill_postgres(
    source: sqlite3.Connection,
    target: PostgresStore,
    columns: dict[str, list[str]],
    wanted: Digests,
    rest: tuple[int, Reached],
) -> None:
    last, reached = rest
    with closing(connect(target.address)) as db:
        try:
            db.execute("BEGIN")
            db.execute("SELECT last FROM journal FOR UPDATE")
            if not _is_empty(db):
                raise _not_empty(target)
            db.execute("DELETE FROM meta WHERE key NOT IN ('schema', 'moved')")
            for table in KEYS:
                rows = read_rows(source, table, columns[table])
                write_rows(db, table, columns[table], rows)
                reached(table)
            db.execute("UPDATE journal SET last = ?", (last,))
            _compare(db, columns, wanted)
            reached("compared")
            db.execute("COMMIT")
        except psycopg.Error as error:
            raise storage_error(error, target.address) from error
        db.execute("ANALYZE")


def to_sqlite(source: PostgresStore, path: Path, reached: Reached) -> Digests:
    """Copy a database to a new file; return what was compared."""
    draft = path.with_name(path.name + ".moving")
    for end in ("", "-wal", "-shm"):
        Path(f"{draft}{end}").unlink(missing_ok=True)
    SqliteStore(draft).close()
    with closing(connect(source.address)) as db:
        try:
            with closing(sqlite3.connect(draft, isolation_level=None)) as target:
                wanted = _fill_sqlite(db, target, source, path, reached)
        except psycopg.Error as error:
            raise storage_error(error, source.address) from error
        except sqlite3.Error as error:
            raise StorageError(f"{draft} cannot be written: {error}") from error
        reached("compared")
        draft.rename(path)
        reached("renamed")
        moved = "INSERT INTO meta (key, value) VALUES ('moved', ?)"
        db.execute("ROLLBACK")
        db.execute(moved, (str(path),))
    return wanted


def _fill_sqlite(
    db: Connection,
    target: sqlite3.Connection,
    source: PostgresStore,
    path: Path,
    reached: Reached,
) -> Digests:
    columns = _columns(target)
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reached("blobs")
    _copy_blobs(source.blobs, BlobFolder(path.parent / "blobs", is_shared=True))
    reached("rows")
    target.execute("BEGIN IMMEDIATE")
    target.execute("DELETE FROM meta")
    for table in KEYS:
        rows = read_rows(db, table, columns[table])
        write_rows(target, table, columns[table], rows)
        reached(table)
    (last,) = db.execute("SELECT last FROM journal").fetchone()
    target.execute("DELETE FROM sqlite_sequence WHERE name = 'events'")
    sequence = "INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?)"
    target.execute(sequence, (last,))
    wanted = {table: digest(db, table, columns[table]) for table in KEYS}
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


def _compare(db: Connection, columns: dict[str, list[str]], wanted: Digests) -> None:
    """Raise unless each table has the rows that it should have."""
    for table, known in wanted.items():
        found = digest(db, table, columns[table])
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
