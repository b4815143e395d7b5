"""A sync that fails is seen wherever it happens, and is never tried again."""

import itertools
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grass.errors import StorageError
from grass.store.changes import Changes, Env
from grass.store.sqlite import disk_reserve
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.sqlite_store import SqliteStore
from grass.store.sqlite.write_ahead_log import FRAME_BYTES, LOG_BYTES

COPY = "PRAGMA wal_checkpoint(PASSIVE)"
PAGE = 4096
NUMBERS = itertools.count(1)
FAILED_SYNC = "SQLITE_IOERR_FSYNC"


class Failing:
    """A connection on which some statements fail, each once."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.errors: dict[str, str] = {}
        self.copies = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self.copies += statement == COPY
        name = self.errors.pop(statement, None)
        if name is not None:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = name
            raise error
        return self.db.execute(statement, *values)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "grass.db")
    failing: Any = Failing(store._writer)
    store._writer = failing
    assert not store._log.is_long
    yield store
    store.close()


def failing(store: SqliteStore) -> Failing:
    writer: Any = store._writer
    assert isinstance(writer, Failing)
    return writer


def large(pages: int = 100) -> Changes:
    return Changes(envs=[Env(next(NUMBERS), "u", "x" * (pages * PAGE))])


def fill_log(store: SqliteStore) -> None:
    """Commit until the log is so long that the next commit copies it first."""
    copies, commits = failing(store).copies, 0
    while not store._log.is_long:
        store.commit(large())
        commits += 1
    assert failing(store).copies == copies
    in_one = 100 * FRAME_BYTES
    assert LOG_BYTES / in_one - 2 <= commits <= LOG_BYTES / in_one


def test_a_log_that_is_long_is_copied_once_and_started_anew(
    store: SqliteStore, tmp_path: Path
) -> None:
    for _ in range(3):
        before = failing(store).copies
        fill_log(store)
        store.commit(large(1))
        assert not store._log.is_long
        assert failing(store).copies == before + 1
        assert (tmp_path / "grass.db-wal").stat().st_size == LOG_BYTES


def test_a_log_is_not_cut_on_a_full_disk_and_keeps_its_room(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "grass.db-wal"
    fill_log(store)
    monkeypatch.setattr(disk_reserve, "free_bytes", lambda _folder: 0)
    size, kept = log.stat().st_size, log.stat().st_blocks
    for _ in range(3):
        store.commit(large(1))
        assert store._log.is_long
    assert (log.stat().st_size, log.stat().st_blocks) == (size, kept)
    monkeypatch.undo()
    store.commit(large(1))
    store.commit(large(1))
    assert log.stat().st_size == LOG_BYTES
    assert log.stat().st_blocks >= (LOG_BYTES + disk_reserve.LOG_RESERVE_BYTES) // 512


def test_a_reader_in_the_way_of_copying_is_no_error(store: SqliteStore) -> None:
    store._reader.execute("BEGIN")
    store._reader.execute("SELECT count(*) FROM envs").fetchone()
    fill_log(store)
    for _ in range(3):
        store.commit(large(1))
    assert store._log.is_long
    store._reader.execute("COMMIT")
    store.commit(large(1))
    assert not store._log.is_long


def test_a_sync_that_fails_while_the_log_is_copied_is_fatal(
    store: SqliteStore,
) -> None:
    fill_log(store)
    failing(store).errors = {COPY: FAILED_SYNC}
    with pytest.raises(StorageError) as failed:
        store.commit(Changes(meta={"never": "1"}))
    assert is_fatal(failed.value)
    meta = dict(store._reader.execute("SELECT key, value FROM meta"))
    assert "never" not in meta


def test_a_log_that_a_full_disk_cannot_take_goes_on(store: SqliteStore) -> None:
    fill_log(store)
    failing(store).errors = {COPY: "SQLITE_FULL"}
    store.commit(Changes(meta={"kept": "1"}))
    meta = dict(store._reader.execute("SELECT key, value FROM meta"))
    assert meta["kept"] == "1"


def test_only_a_full_disk_is_passed_over_when_the_state_is_read(
    store: SqliteStore,
) -> None:
    failing(store).errors = {"COMMIT": "SQLITE_FULL"}
    assert store.load(0).last_job == 0
    failing(store).errors = {"COMMIT": FAILED_SYNC}
    with pytest.raises(StorageError) as failed:
        store.load(0)
    assert is_fatal(failed.value)


@pytest.mark.parametrize(
    ("first", "second"), [("SQLITE_FULL", FAILED_SYNC), (FAILED_SYNC, "SQLITE_ERROR")]
)
def test_a_rollback_that_fails_hides_nothing(
    store: SqliteStore, first: str, second: str
) -> None:
    failing(store).errors = {"COMMIT": first, "ROLLBACK": second}
    with pytest.raises(StorageError) as failed:
        store.commit(Changes())
    assert is_fatal(failed.value)


COMMITS = """
import sys
from pathlib import Path
from grass.errors import StorageError
from grass.store.changes import Changes
from grass.store.changes import Env
from grass.store.sqlite.sqlite_store import SqliteStore
from grass.store.sqlite.database_file import is_fatal

store = SqliteStore(Path(sys.argv[1]))
for number in range(60):
    try:
        store.commit(Changes(envs=[Env(number, "u", "x" * 400_000)]))
    except StorageError as error:
        print(number, is_fatal(error))
        break
store.close()
"""


def test_a_sync_of_the_database_that_the_kernel_refuses_is_not_tried_again(
    tmp_path: Path,
) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    path, log = tmp_path / "grass.db", tmp_path / "strace.log"
    SqliteStore(path).close()
    calls = "fsync,fdatasync"
    words = [strace, "-f", "-o", str(log), "-P", str(path), "-e", f"trace={calls}"]
    words += ["-e", f"inject={calls}:error=EIO:when=2+"]
    program = [sys.executable, "-c", COMMITS, str(path)]
    done = subprocess.run([*words, *program], capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("tracing a process is not allowed here")
    number, fatal = done.stdout.split()
    assert fatal == "True"
    assert log.read_text().count("INJECTED") == 1
    again = SqliteStore(path)
    kept = again.environments(dict.fromkeys(range(60), ""))
    assert [env.id for env in kept] == list(range(int(number)))
    again.close()
