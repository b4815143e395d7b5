"""The store that brokers of tests have: SQLite, or with STORE=postgres PostgreSQL.

A database of PostgreSQL belongs to the path that a file of SQLite would have. So a
broker that is opened again finds what it had, and tests need not know the difference.
"""

import os
from pathlib import Path
from typing import Any

from grass.store.interface import Store
from grass.store.sqlite.sqlite_store import SqliteStore
from tests.support.brokers_key import FixedKey

IN_POSTGRES = os.environ.get("STORE") == "postgres"
_urls: dict[Path, str] = {}


def open_store(path: Path) -> Store:
    """Open the store of a broker; the path need not be that of a file."""
    if not IN_POSTGRES:
        return SqliteStore(path)
    from grass.daemon.database.open_store import in_postgres

    return in_postgres(url_of(path), FixedKey())


def url_of(path: Path) -> str:
    """Return the database of PostgreSQL that belongs to a path."""
    from tests.support.postgres import shared_server

    if path not in _urls:
        # One of a test that is over, whose folder is gone, is used again.
        over = next((known for known in _urls if not known.parent.exists()), None)
        if over is None:
            _urls[path] = shared_server().new_database()
        else:
            _urls[path] = _urls.pop(over)
            shared_server().clear(_urls[path])
    return _urls[path]


def rows_of(url: str, query: str, *values: object) -> list[Any]:
    """Read the database beside its broker."""
    from grass.store.postgres.address import address_of
    from grass.store.postgres.connections import connect

    db = connect(address_of(url))
    try:
        found: Any = db.execute(query, values)
        return found.fetchall() if found.description else []
    finally:
        db.close()
