"""Room that is kept back for a full disk."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from grass.errors import DiskFull
from grass.store.sqlite import disk_reserve
from grass.store.sqlite.disk_reserve import DATABASE_BYTES, START_BYTES, preallocate
from grass.store.sqlite.sqlite_store import SqliteStore


def taken(path: Path) -> int:
    """Return how much of the disk a file takes."""
    return path.stat().st_blocks * 512


def test_room_lies_beyond_the_end_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    file = os.open(path, os.O_RDWR)
    try:
        if not preallocate(file, 1, 1 << 20) or taken(path) < 1 << 20:
            pytest.skip("this file system cannot keep room")
    finally:
        os.close(file)
    assert path.read_bytes() == b"x"


def test_an_open_database_has_room_to_grow(tmp_path: Path) -> None:
    path = tmp_path / "grass.db"
    with closing(SqliteStore(path)):
        assert taken(path) >= path.stat().st_size + DATABASE_BYTES
        assert taken(tmp_path / "reserve") >= START_BYTES
    with closing(SqliteStore(path)) as again:
        assert again.load(0).cluster


def test_a_folder_that_is_gone_is_no_full_disk(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with closing(SqliteStore(tmp_path / "home" / "grass.db")) as store:
        shutil.rmtree(tmp_path / "home")
        assert store.shortage() is None


def test_a_full_disk_is_told_until_there_is_enough_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = 0
    monkeypatch.setattr(disk_reserve, "free_bytes", lambda _folder: free)
    with closing(SqliteStore(tmp_path / "grass.db")) as store:
        assert isinstance(store.shortage(), DiskFull)
        free = disk_reserve.LITTLE_BYTES + 1
        assert isinstance(store.shortage(), DiskFull)
        free = disk_reserve.ENOUGH_BYTES
        assert store.shortage() is None
        free = disk_reserve.LITTLE_BYTES + 1
        assert store.shortage() is None
        free = disk_reserve.LITTLE_BYTES - 1
        assert isinstance(store.shortage(), DiskFull)
