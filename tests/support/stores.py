"""The store that brokers of tests have: SQLite, or with STORE=postgres PostgreSQL.

A database of PostgreSQL belongs to the path that a file of SQLite would have. So a
broker that is opened again finds what it had, and tests need not know the difference.
"""

import os
from pathlib import Path
from typing import Any

from grass.store import Store
from grass.store.sqlite.sqlite_store import SqliteStore

IN_POSTGRES = os.environ.get("STORE") == "postgres"
_urls: dict[Path, str] = {}


def open_store(path: Path) -> Store:
    """Open the store of a broker; the path need not be that of a file."""
    if not IN_POSTGRES:
        return SqliteStore(path)
    from grass.daemon.stores import in_postgres

    return in_postgres(url_of(path))


def url_of(path: Path) -> str:
    """Return the database of PostgreSQL that belongs to a path."""
    from tests.support.postgres import shared_server

    if path not in _urls:
        _urls[path] = shared_server().new_database()
    return _urls[path]


def drop_databases() -> None:
    """Remove the databases that tests have used so far."""
    if _urls:
        from tests.support.postgres import shared_server

        for url in _urls.values():
            shared_server().drop(url)
        _urls.clear()


def rows_of(path: Path, query: str, *values: object) -> list[Any]:
    """Read the database beside its broker."""
    from grass.store.postgres.address import address_of
    from grass.store.postgres.connections import connect

    db = connect(address_of(url_of(path)))
    try:
        cursor = db.execute(query, values)
        return [] if cursor.rowcount < 0 else cursor.fetchall()
    finally:
        db.close()
