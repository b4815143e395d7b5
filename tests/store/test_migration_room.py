"""Bringing an old database forward on a disk with little room."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.filling import KEPT, dump, multiply, restored, version_of

from grass.errors import DiskFull, StorageError
from grass.store.sqlite import database_file, sqlite_store
from grass.store.sqlite.database_file import (
    SCHEMA_VERSION,
    migrate,
    migration_bytes,
    open_writer,
)
from grass.store.sqlite.sqlite_store import SqliteStore

COPIES = 40
WITH_BODIES = 8
"""From this schema on attempts are not written anew."""
WITH_COUNTS = 9
"""From this schema on jobs are not counted anew."""
LONG = "x" * 2_100
SHAPES = {
    "as-filled": "SELECT 1",
    "long-words": f"UPDATE jobs SET words = '[\"{LONG}\"]'",
    "long-projects": f"UPDATE jobs SET project = '{LONG[:300]}'",
    "long-outputs": f"UPDATE attempts SET output = '\"{LONG[:300]}\"'",
    "short": "UPDATE jobs SET words = '[]', name = '', project = '', owner = ''",
}


@pytest.fixture(params=KEPT[:-1], ids=[file.stem for file in KEPT[:-1]])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database of an earlier schema with some hundred jobs."""
    path = restored(request.param, tmp_path)
    multiply(path, COPIES)
    return path


def needed(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return migration_bytes(db)


def test_too_little_room_is_one_line_and_changes_nothing(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, schema = list(dump(old)), version_of(old)
    needs = needed(old)
    with monkeypatch.context() as patched:
        patched.setattr(database_file, "free_bytes", lambda _folder: needs - 1)
        with pytest.raises(DiskFull) as refused:
            SqliteStore(old)
    assert "\n" not in str(refused.value)
    assert f"needs {needs:,} bytes" in refused.value.message
    assert f"{needs - 1:,} are free; nothing was changed" in refused.value.message
    assert "`grass prune` of the earlier grass" in refused.value.hint
    assert (list(dump(old)), version_of(old)) == (before, schema)
    SqliteStore(old).close()
    assert version_of(old) == SCHEMA_VERSION


def test_a_new_database_and_a_present_one_need_no_room_for_a_migration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_file, "free_bytes", lambda _folder: 0)
    for _ in range(2):
        SqliteStore(tmp_path / "grass.db").close()


def full_after(pages: int) -> Callable[[Path], sqlite3.Connection]:
    """Make a way to open a database that can grow by so many pages only."""

    def opened(path: Path) -> sqlite3.Connection:
        db = open_writer(path)
        (count,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {count + pages}")
        return db

    return opened


@pytest.mark.parametrize("pages", [1, 4, 8])
def test_a_disk_that_fills_meanwhile_leaves_the_database_as_it_was(
    old: Path, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, schema = list(dump(old)), version_of(old)
    pages = 0 if schema >= WITH_COUNTS else pages
    with monkeypatch.context() as patched:
        patched.setattr(sqlite_store, "open_writer", full_after(pages))
        with pytest.raises(DiskFull, match="nothing was changed") as refused:
            SqliteStore(old)
    assert "`grass prune` of the earlier grass" in refused.value.hint
    assert (list(dump(old)), version_of(old)) == (before, schema)
    SqliteStore(old).close()
    assert version_of(old) == SCHEMA_VERSION


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_asked_for_suffices(old: Path, shape: str) -> None:
    if shape == "long-outputs" and version_of(old) >= WITH_BODIES:
        return
    with closing(sqlite3.connect(old)) as db:
        db.execute(SHAPES[shape])
        db.commit()
    needs, size = needed(old), old.stat().st_size
    with closing(open_writer(old)) as db:
        migrate(db, old)
        log = old.with_name("grass.db-wal").stat().st_size
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    used = log + old.stat().st_size - size
    assert needs / 4 < used < needs


def test_a_table_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = restored(KEPT[0], tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE attempts")
        db.commit()
    with pytest.raises(StorageError, match=r"grass\.db failed: "):
        SqliteStore(path)
