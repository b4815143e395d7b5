"""What is particular to SQLite: its file, its limits, its errors."""

import re
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.building import a_job, a_spec

from grass.errors import GrassError, StorageError
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.store.changes import Changes, Env, Event
from grass.store.sql import job_queries
from grass.store.sql.dialect import migrations
from grass.store.sqlite.database_file import SCHEMA_VERSION, is_fatal
from grass.store.sqlite.dialect import SqliteDialect
from grass.store.sqlite.sqlite_store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "grass.db"


def test_a_database_of_a_newer_grass_is_refused(path: Path) -> None:
    SqliteStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    with pytest.raises(GrassError, match="written by a newer grass"):
        SqliteStore(path)


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("my thesis, not a database\n" * 100)
    with pytest.raises(StorageError, match="not a database") as refused:
        SqliteStore(path)
    assert is_fatal(refused.value)
    assert path.read_text().startswith("my thesis")


def test_a_folder_that_does_not_exist_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="unable to open") as refused:
        SqliteStore(tmp_path / "nowhere" / "grass.db")
    assert "\n" not in str(refused.value)


def test_a_store_whose_folder_was_moved_touches_nothing_of_the_next_one(
    tmp_path: Path,
) -> None:
    folder, moved = tmp_path / "home", tmp_path / "moved"
    folder.mkdir()
    first = SqliteStore(folder / "grass.db")
    first.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))
    folder.rename(moved)
    folder.mkdir()
    second = SqliteStore(folder / "grass.db")
    assert not first.is_in_place
    with ThreadPoolExecutor(1) as other_thread:
        reading = other_thread.submit(first.details, [1])
        assert isinstance(reading.exception(), StorageError)
    first.close()
    assert (folder / "grass.db-wal").exists()
    second.close()
    again = SqliteStore(moved / "grass.db")
    assert [job.id for job in again.load(0).jobs] == [1]
    again.close()


def test_the_migrations_end_at_the_schema_this_code_knows() -> None:
    assert [number for number, _ in migrations("sqlite")] == list(
        range(1, SCHEMA_VERSION + 1)
    )


def test_every_statement_is_complete_sql(path: Path) -> None:
    store = SqliteStore(path)
    store.close()
    with sqlite3.connect(path) as db:
        for name in (sql := SqliteDialect()).names():
            text = sql[name]
            holes = {"where": "TRUE", "order": "1", "index": "", "counted": "TRUE"}
            plain = text.format(**holes) if "{" in text else text
            assert sqlite3.complete_statement(plain), name
            db.execute(f"EXPLAIN {plain}", (None,) * plain.count("?"))
    db.close()


def test_a_second_opening_sees_what_the_first_committed(path: Path) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    first.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))
    assert [job.id for job in second.load(0).jobs] == [1]
    first.close()
    second.close()


def test_a_full_disk_is_named_and_changes_nothing(path: Path) -> None:
    store = SqliteStore(path)
    store.commit(Changes(specs={1: a_spec()}))
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages}")
    large = Changes(envs=[Env(1, "u", "x" * 100_000)], jobs={1: a_job(1)})
    with pytest.raises(StorageError, match="is full; nothing was changed") as refused:
        store.commit(large)
    assert "grass prune" in refused.value.hint
    assert not is_fatal(refused.value)
    assert not store.load(0).jobs
    store._writer.execute("PRAGMA max_page_count = 100000")
    store.commit(large)
    assert [job.id for job in store.load(0).jobs] == [1]
    store.close()


@pytest.mark.parametrize(
    ("name", "fatal"),
    [
        ("SQLITE_IOERR_FSYNC", True),
        ("SQLITE_CORRUPT", True),
        ("SQLITE_NOTADB", True),
        ("SQLITE_FULL", False),
        ("SQLITE_BUSY", False),
    ],
)
def test_only_a_file_that_cannot_be_trusted_is_fatal(name: str, fatal: bool) -> None:
    cause = sqlite3.OperationalError("failed")
    cause.sqlite_errorname = name
    error = StorageError("failed")
    error.__cause__ = cause
    assert is_fatal(error) is fatal


def test_the_reading_connection_cannot_write(path: Path) -> None:
    store = SqliteStore(path)
    with pytest.raises(sqlite3.OperationalError):
        store._reader.execute("DELETE FROM jobs")
    store.close()


def test_commits_are_synced_to_the_disk(path: Path) -> None:
    store = SqliteStore(path)
    assert store._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert stat.S_ISREG(path.stat().st_mode)
    store.close()


def test_wrong_sizes_in_the_database_keep_it_from_nothing(path: Path) -> None:
    store = SqliteStore(path)
    changes = Changes()
    changes.specs[1] = a_spec()
    for number in (1, 2):
        job = a_job(number)
        job.finished_at, job.state = 5, JobState.SUCCEEDED
        changes.jobs[number] = job
        attempt = Attempt(number, 1, "w", "boot", AttemptState.EXITED, {}, 1)
        attempt.output_bytes = 2**63 - 1
        changes.attempts[number, 1] = attempt
    store.commit(changes)
    store.close()
    again = SqliteStore(path)
    assert again.load(0).output_bytes == 2**63 - 1
    assert again.usage_before(10) == (2, 2**63 - 1)
    again.close()


def test_the_journal_is_read_by_an_index_for_every_filter(path: Path) -> None:
    store = SqliteStore(path)
    made = [Event(1, "uid:1", kind, 1) for kind in ("enqueued", "held", "released")]
    store.commit(Changes(events=made * 2))
    with sqlite3.connect(path) as db:
        asked = list[str]()
        db.set_trace_callback(asked.append)
        for job in (None, 1):
            for kinds in ((), ("held",), ("released", "held")):
                found = job_queries.events(db, SqliteDialect(), (1, job, kinds), 9)
                seqs = [one.seq for one in found]
                assert seqs == sorted(seqs)
                assert {one.kind for one in found} >= set(kinds)
        db.set_trace_callback(None)
        plans = [db.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in asked]
    store.close()
    steps = [row[3] for plan in plans for row in plan]
    assert not [one for one in steps if re.match("SCAN (events|e)\\b", one)]
    by_kind = [one for one in steps if "events_kind (kind=? AND rowid>?)" in one]
    assert len(by_kind) == 3


def test_several_kinds_of_events_are_one_page_in_order(path: Path) -> None:
    store = SqliteStore(path)
    kinds = ["held", "released", "paused"] * 5
    store.commit(Changes(events=[Event(1, "uid:1", kind) for kind in kinds]))
    page = store.events(2, 4, None, ("held", "released", "held"))
    assert [(one.seq, one.kind) for one in page] == [
        (4, "held"),
        (5, "released"),
        (7, "held"),
        (8, "released"),
    ]
    store.close()
