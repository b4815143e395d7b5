"""Every store there is; each must pass the whole suite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.simulation.memory_store import MemoryStore, new_disk
from tests.support.brokers_key import FixedKey
from tests.support.fixtures import database, postgres

from grass.store.interface import Store
from grass.store.sqlite.sqlite_store import SqliteStore

__all__ = ["database", "postgres"]

Reopen = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def reopen(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reopen]:
    """Open the same database again, as a broker does after a restart."""
    opened: list[Store] = []
    disk = new_disk("0123456789abcdef")
    makers: dict[str, Reopen] = {
        "sqlite": lambda: SqliteStore(tmp_path / "grass.db"),
        "memory": lambda: MemoryStore(disk),
        "postgres": lambda: in_postgres(request.getfixturevalue("database")),
    }

    def open_store() -> Store:
        for store in opened:
            store.close()
        opened.append(makers[request.param]())
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


def in_postgres(url: str) -> Store:
    """Open a store in PostgreSQL."""
    # Imported here: psycopg is installed where it is used.
    from grass.store.postgres.address import address_of
    from grass.store.postgres.postgres_store import PostgresStore

    return PostgresStore(address_of(url), FixedKey())


@pytest.fixture
def store(reopen: Reopen) -> Store:
    return reopen()
