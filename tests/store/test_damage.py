"""A file that is damaged, or has lost its log: seen once, it is written no more."""

import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.store.damaging import damage
from tests.support.building import a_job, a_spec

from grass.errors import GrassError, StorageError
from grass.store.changes import Changes, Env
from grass.store.sqlite import database_file
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.database_note import OPEN, DatabaseNote
from grass.store.sqlite.sqlite_store import SqliteStore
from grass.store.sqlite.write_ahead_log import LOG_BYTES

PAGE = 4096
FULL = Changes(specs={1: a_spec()}, jobs={1: a_job(1)})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with a job, which was closed."""
    path = tmp_path / "grass.db"
    store = SqliteStore(path)
    store.commit(FULL)
    store.close()
    return path


def test_after_damage_was_read_nothing_is_written(path: Path) -> None:
    store = SqliteStore(path)
    damage(path)
    with pytest.raises(StorageError, match="is damaged: ") as read:
        store.details([1])
    assert "`grass restore FILE`" in read.value.hint
    with pytest.raises(StorageError, match="is damaged: ") as refused:
        store.commit(Changes(envs=[Env(1, "u", "x")]))
    assert is_fatal(refused.value)
    store.close()


def test_damage_that_a_start_does_not_come_across_is_remembered(path: Path) -> None:
    store = SqliteStore(path)
    whole = damage(path)
    with pytest.raises(StorageError):
        store.details([1])
    store.close()
    for _ in range(2):
        with pytest.raises(StorageError, match="is damaged: "):
            SqliteStore(path)
    path.write_bytes(whole)
    again = SqliteStore(path)
    assert [job.id for job in again.load(0).jobs] == [1]
    again.commit(Changes(envs=[Env(1, "u", "x")]))
    again.close()


def test_a_file_that_is_no_database_is_one_error(path: Path) -> None:
    path.write_bytes(os.urandom(10 * PAGE))
    with pytest.raises(StorageError, match="is damaged: file is not a database"):
        SqliteStore(path)


def killed(path: Path, first: int = 1) -> None:
    """Have a process write something that is in the log alone, and die."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from grass.store.sqlite.sqlite_store import SqliteStore\n"
        "from grass.store.changes import Changes, Env\n"
        "store = SqliteStore(Path(sys.argv[1]))\n"
        "store.commit(Changes(envs=[Env(1, 'u', 'x' * int(sys.argv[2]))]))\n"
        "store.commit(Changes(meta={'last_job': '7'}))\n"
        "os._exit(1)\n"
    )
    words = [sys.executable, "-c", script, str(path), str(first)]
    assert subprocess.run(words, check=False).returncode == 1


def test_a_log_that_was_deleted_after_a_crash_is_missed(path: Path) -> None:
    killed(path)
    log = Path(f"{path}-wal")
    kept = log.read_bytes()
    log.unlink()
    for _ in range(2):
        with pytest.raises(StorageError, match="-wal is gone") as refused:
            SqliteStore(path)
        assert "grass restore" in refused.value.hint
    assert not log.exists()
    log.write_bytes(kept)
    store = SqliteStore(path)
    assert store.load(0).last_job == 7
    store.close()


def test_one_may_go_on_without_the_log(path: Path) -> None:
    killed(path)
    Path(f"{path}-wal").unlink()
    Path(f"{path}-note").unlink()
    store = SqliteStore(path)
    assert [job.id for job in store.load(0).jobs] == [1]
    store.close()


def test_no_log_is_missed_where_another_file_was_put_in_its_place(
    path: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(path.read_bytes())
    killed(path)
    Path(f"{path}-wal").unlink()
    kept.rename(path)
    store = SqliteStore(path)
    assert [job.id for job in store.load(0).jobs] == [1]
    store.close()


def test_no_log_is_missed_that_a_program_has_copied(path: Path) -> None:
    killed(path)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT COUNT(*) FROM jobs").fetchone() == (1,)
    db.close()
    assert not Path(f"{path}-wal").exists()
    store = SqliteStore(path)
    assert store.load(0).last_job == 7
    store.close()


def test_the_log_is_missed_after_it_was_copied_on_the_way(path: Path) -> None:
    killed(path, LOG_BYTES + PAGE)
    Path(f"{path}-wal").write_bytes(b"")
    with pytest.raises(StorageError, match="-wal is gone"):
        SqliteStore(path)


def test_a_start_that_is_refused_misses_no_log_afterwards(path: Path) -> None:
    killed(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database_file, "SCHEMA_VERSION", database_file.SCHEMA_VERSION - 1)
        with pytest.raises(GrassError, match="newer grass"):
            SqliteStore(path)
    store = SqliteStore(path)
    assert store.load(0).last_job == 7
    store.close()


def test_a_note_that_cannot_be_written_leaves_the_one_before(path: Path) -> None:
    killed(path)
    before = Path(f"{path}-note").read_bytes()
    assert before
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        DatabaseNote(path).write(OPEN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert Path(f"{path}-note").read_bytes() == before


def test_the_note_stays_until_nothing_is_in_the_log_alone(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    remove = DatabaseNote.remove

    def watched(note: DatabaseNote, state: str) -> None:
        seen.append(path.read_bytes())
        remove(note, state)

    store = SqliteStore(path)
    store.commit(Changes(meta={"last_job": "7"}))
    monkeypatch.setattr(DatabaseNote, "remove", watched)
    store.close()
    store.close()
    alone = tmp_path / "alone.db"
    alone.write_bytes(seen[0])
    again = SqliteStore(alone)
    assert again.load(0).last_job == 7
    again.close()
    assert not Path(f"{path}-note").exists()
