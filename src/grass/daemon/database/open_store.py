"""Opens the database of this home's broker: a file here, or one in PostgreSQL."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from grass.config import Home
from grass.daemon.database.brokers_key import HomeKey
from grass.daemon.database.database_loss import (
    refuse_lost_database,
    refuse_other_database,
    written_cluster,
)
from grass.errors import NoDatabase, Refused, StorageError
from grass.setting_values import SQLITE
from grass.store.interface import Store
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from grass.store.postgres.postgres_store import PostgresStore
    from grass.store.postgres.sealing import BrokersKey

IsFatal = Callable[[StorageError], bool]
"""Tells whether a daemon must stop after an error of its store."""


@contextlib.contextmanager
def open_store(home: Home, url: str) -> Iterator[tuple[Store, IsFatal]]:
    """Open the store that a URL names, as long as the block runs."""
    if url == SQLITE:
        refuse_lost_database(home)
        refuse_other_database(home)
        file = _in_file(home)
        with contextlib.closing(file), _rewritten_if_deleted(home, file):
            yield file, is_fatal
        return
    refuse_other_cluster(home, url)
    with contextlib.closing(in_postgres(url, HomeKey(home))) as shared:
        shared.use()
        yield shared, lambda _error: False


def _in_file(home: Home) -> SqliteStore:
    return SqliteStore(Path(home.database))


def in_postgres(url: str, key: "BrokersKey") -> "PostgresStore":
    """Open a store in PostgreSQL."""
    with _driver():
        from grass.store.postgres.address import address_of
        from grass.store.postgres.postgres_store import PostgresStore
    return PostgresStore(address_of(url), key)


@contextlib.contextmanager
def _driver() -> Iterator[None]:
    """Import what needs the driver: on use, since most daemons need none."""
    try:
        yield
    except ImportError:
        raise NoDatabase(
            "PostgreSQL needs psycopg, which is not installed",
            "pip install 'grass-scheduler[postgres]'",
        ) from None


def cluster_in(url: str) -> str | None:
    """Return the cluster whose queue a database has; None: it has none yet."""
    with _driver():
        from grass.store.postgres.address import address_of
        from grass.store.postgres.migrating import cluster_of
    return cluster_of(address_of(url))


def refuse_other_cluster(home: Home, url: str) -> None:
    """Refuse a database that cannot be used, or has not the jobs that this home has.

    Nothing is written to it: it may be that of another one.
    """
    known, cluster = written_cluster(home), cluster_in(url)
    if known in (None, cluster):
        return
    has = "is empty" if cluster is None else f"has that of {cluster}"
    is_here = os.path.exists(home.database)
    move = f"`grass store move sqlite {quote(url)}` brings it there"
    raise Refused(
        f"this home has the queue of cluster {known}, the database {has}",
        f"{move if is_here else 'name the database of that one'}, or use another"
        " GRASS_HOME",
    )


@contextlib.contextmanager
def _rewritten_if_deleted(home: Home, store: SqliteStore) -> Iterator[None]:
    """Write the database again if it was deleted while this process had it open."""
    try:
        yield
    finally:
        if store.is_in_place and not os.path.exists(home.database):
            store.restore_file()
