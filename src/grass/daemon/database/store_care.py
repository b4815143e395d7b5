"""What is done to a broker's database by hand: moved, checked, backed up, restored."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from grass.config import Home
from grass.daemon.database import identity_files
from grass.daemon.database.brokers_key import HomeKey
from grass.daemon.database.database_loss import (
    MOVED,
    cluster_of,
    refuse_lost_database,
    refuse_other_database,
    write_cluster,
)
from grass.daemon.database.open_store import cluster_in, in_postgres
from grass.daemon.home_lock import locked
from grass.daemon.worker_setup import note_id, worker_id
from grass.errors import GrassError, NotFound, Refused, UsageError
from grass.keeper.crash_points import crash_point
from grass.setting_values import SQLITE
from grass.store.blobs import Blobs
from grass.store.sql import checking
from grass.store.sql.dialect import Connection
from grass.store.sqlite import backups
from grass.store.sqlite.database_file import damaged, open_reader, storage_error
from grass.store.sqlite.database_note import DatabaseNote
from grass.store.sqlite.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from grass.store.postgres.postgres_store import PostgresStore


def move(home: Home, source: str, target: str) -> dict[str, int]:
    """Move the state to another database; return the rows of each table."""
    if (source == SQLITE) == (target == SQLITE):
        raise UsageError(
            "one of the two is `sqlite`, the other one a URL",
            "between two PostgreSQL servers use pg_dump and pg_restore",
        )
    with locked(home, "grass store move"):
        to_file = target == SQLITE
        return _to_file(home, source) if to_file else _to_postgres(home, target)


def _to_postgres(home: Home, url: str) -> dict[str, int]:
    refuse_lost_database(home)
    path = Path(home.database)
    if not path.exists():
        raise NotFound(f"there is no database {path}")
    with _without_leader(home, url) as target:
        from grass.store.moving import to_postgres

        # Brings it to the schema of this version.
        SqliteStore(path).close()
        done = to_postgres(path, target, _reached, worker_id(home))
    path.rename(f"{path}{MOVED}")
    _reached("put-away")
    return {table: one.rows for table, one in done.items()}


def _to_file(home: Home, url: str) -> dict[str, int]:
    path = Path(home.database)
    if path.exists():
        raise Refused(f"{path} is there already", "move it away first")
    with _without_leader(home, url) as source:
        from grass.store.moving import to_sqlite

        done = to_sqlite(source, path, _reached)
        write_cluster(home, source.cluster())
    return {table: one.rows for table, one in done.items()}


@contextlib.contextmanager
def _without_leader(home: Home, url: str) -> Iterator["PostgresStore"]:
    """Open a database that no broker uses."""
    with contextlib.closing(in_postgres(url, HomeKey(home))) as store:
        from grass.store.postgres.fencing import used

        if store.lease().remaining_s > 0 or not store.lock_out_others():
            raise used(store.address)
        yield store


def _reached(step: str) -> None:
    crash_point(f"store.move-{step}")


def forget_environments(home: Home, url: str) -> int:
    """Remove all environments, whose key is lost, from a database; return how many."""
    if url == SQLITE:
        raise Refused("environments in the state directory are not sealed")
    from grass.store.postgres.address import address_of
    from grass.store.postgres.fencing import give_up_environments

    with locked(home, "grass store forget-environments"):
        _refuse_empty(url)
        return give_up_environments(address_of(url))


def check(home: Home, url: str) -> tuple[dict[str, int], list[str]]:
    """Look at all of a store; return its sizes, and what is wrong with it."""
    with _opened(home, url) as (db, blobs):
        return checking.sizes(db), list(checking.problems(db, blobs))


@contextlib.contextmanager
def _opened(home: Home, url: str) -> Iterator[tuple[Connection, Blobs]]:
    if url != SQLITE:
        _refuse_empty(url)
        store = in_postgres(url, HomeKey(home))
        with contextlib.closing(store), store.reading() as shared:
            yield shared, store.blobs
        return
    from grass.store.blob_folder import BlobFolder

    if not os.path.exists(home.database):
        raise NotFound(f"there is no database {home.database}")
    path = Path(home.database)
    _refuse_incomplete(home)
    try:
        with contextlib.closing(open_reader(path)) as db:
            _check_file(db, path)
            db.execute("BEGIN")
            yield db, BlobFolder(home.blobs, is_shared=True)
    except sqlite3.Error as error:
        raise storage_error(error, path) from error


def _refuse_empty(url: str) -> None:
    """Refuse a database without a queue, which opening it would make."""
    if cluster_in(url) is None:
        raise NotFound(
            f"the database {url} has no queue", "is it the one that you mean?"
        )


def _check_file(db: Connection, path: Path) -> None:
    (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise damaged(path, found)


def back_up(home: Home, url: str, target: str) -> tuple[int, int]:
    """Copy the database into a file, also while its broker runs."""
    _refuse_postgres(url, "pg_dump")
    if not os.path.exists(home.database):
        raise NotFound(f"there is no database {home.database}")
    _refuse_incomplete(home)
    files = identity_files.identity_files(home)
    return backups.back_up(Path(home.database), Path(target).absolute(), files)


def _refuse_incomplete(home: Home) -> None:
    """Refuse a database whose log is gone; a daemon that runs has both open."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(home))
        except GrassError:
            return
        DatabaseNote(Path(home.database)).check_log()


def check_files(home: Home) -> None:
    """Raise for what keeps a daemon from starting on the files of this home."""
    refuse_lost_database(home)
    if os.path.exists(home.worker_id):
        worker_id(home)
    if not os.path.exists(home.database):
        return
    refuse_other_database(home)
    _refuse_incomplete(home)
    path = Path(home.database)
    try:
        with contextlib.closing(open_reader(path)) as db:
            problem = DatabaseNote(path).damage(db)
    except sqlite3.Error as error:
        raise storage_error(error, path) from error
    if problem is not None:
        raise damaged(path, problem)


def replaced_machine(home: Home, url: str, source: str) -> str | None:
    """Return which machine a restore here would replace; None: it is this one."""
    _refuse_postgres(url, "pg_restore")
    if not os.path.exists(source):
        raise NotFound(f"there is no file {source}")
    return identity_files.replaced_machine(home, backups.files_in(Path(source)))


def restore(home: Home, url: str, source: str) -> int:
    """Put a backup in the place of the database, and its broker's identity here."""
    _refuse_postgres(url, "pg_restore")
    with locked(home, "grass restore"):
        files = backups.files_in(Path(source))

        def put_back(database: Path) -> None:
            # After a crash no daemon uses the database with another identity, nor
            # the identity with another database.
            write_cluster(home, cluster_of(database) or "")
            identity_files.put_back(home, files)
            crash_point("restore-identity")

        jobs = backups.restore(Path(source), Path(home.database), put_back)
        # Brings it to the schema of this version.
        SqliteStore(Path(home.database)).close()
        with contextlib.suppress(FileNotFoundError):
            note_id(home, Path(home.worker_id).read_text().strip())
    return jobs


def _refuse_postgres(url: str, program: str) -> None:
    if url != SQLITE:
        raise Refused(
            "the store is in PostgreSQL, which has programs of its own for this",
            f"use {program}: see docs/how-to/postgresql.md",
        )
