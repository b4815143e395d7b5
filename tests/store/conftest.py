"""Every store there is; each must pass the whole suite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.simulation.memory_store import MemoryStore, new_disk

from grass.store import Store
from grass.store.sqlite.sqlite_store import SqliteStore

Reopen = Callable[[], Store]


@pytest.fixture(params=["sqlite", "memory"])
def reopen(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reopen]:
    """Open the same database again, as a broker does after a restart."""
    opened: list[Store] = []
    disk = new_disk("0123456789abcdef")

    def open_store() -> Store:
        for store in opened:
            store.close()
        in_memory = request.param == "memory"
        opened.append(
            MemoryStore(disk) if in_memory else SqliteStore(tmp_path / "grass.db")
        )
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Reopen) -> Store:
    return reopen()
