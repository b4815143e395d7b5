"""Servers that killed runs have left are removed; those in use are not."""

import fcntl
import os
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from tests.support.postgres import remove_leftovers

LONG_AGO = 1


def left(folder: Path, name: str) -> Path:
    root = folder / f"grass-postgres-{name}"
    root.mkdir()
    for lock in ("starting", "users"):
        (root / lock).touch()
    return root


def test_a_server_that_nobody_uses_is_removed(tmp_path: Path) -> None:
    old, new, used = (left(tmp_path, name) for name in ("old", "new", "used"))
    for root in (old, used):
        os.utime(root, (LONG_AGO, LONG_AGO))
    with (used / "users").open() as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [new, used]
