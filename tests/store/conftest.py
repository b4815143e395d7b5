"""Every store there is; each must pass the whole suite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grass.store import Store
from grass.store.sqlite import SqliteStore

Reopen = Callable[[], Store]


@pytest.fixture(params=["sqlite"])
def reopen(tmp_path: Path) -> Iterator[Reopen]:
    """Open the same database again, as a broker does after a restart."""
    opened: list[Store] = []

    def open_store() -> Store:
        for store in opened:
            store.close()
        opened.append(SqliteStore(tmp_path / "grass.db"))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Reopen) -> Store:
    return reopen()
