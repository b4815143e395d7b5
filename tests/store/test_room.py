"""The database file: it gives back the room that forgotten jobs leave."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.building import a_job, a_spec

from grass.errors import StorageError
from grass.model.jobs.lifecycle import JobState
from grass.store.changes import Changes
from grass.store.sqlite import vacuum
from grass.store.sqlite.sqlite_store import SqliteStore

JOBS = 2_000
LONG = "x" * 2_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "grass.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path)
    yield made
    made.close()


def fill(store: SqliteStore) -> None:
    ended = {"state": JobState.SUCCEEDED, "finished_at": 3, "words": (LONG,)}
    jobs = {number: a_job(number, **ended) for number in range(1, JOBS + 1)}
    store.commit(Changes(specs={1: a_spec()}, jobs=jobs))


def forget(store: SqliteStore) -> None:
    store.commit(Changes(removed_jobs=list(range(1, JOBS))))


def shrunk(store: SqliteStore) -> int:
    """Give back all that can be; tell how many steps it took."""
    steps = 1
    while store.shrink():
        steps += 1
    return steps


def test_the_file_is_shorter_after_jobs_were_forgotten(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "KEPT_PAGES", 10)
    fill(store)
    assert shrunk(store) == 1
    forget(store)
    free = vacuum.free_pages(store._writer)
    assert shrunk(store) > free // vacuum.STEP_PAGES
    assert vacuum.free_pages(store._writer) <= 10
    assert path.stat().st_size < JOBS * len(LONG) / 10
    assert [job.job.id for job in store.details([1, JOBS])] == [JOBS]


def test_little_room_is_kept(store: SqliteStore, path: Path) -> None:
    store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1), 2: a_job(2)}))
    store.commit(Changes(removed_jobs=[1]))
    assert shrunk(store) == 1


def test_a_commit_goes_between_two_steps(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "KEPT_PAGES", 10)
    fill(store)
    forget(store)
    assert store.shrink()
    store.commit(Changes(jobs={JOBS + 1: a_job(JOBS + 1)}))
    shrunk(store)
    found = store.details([JOBS, JOBS + 1])
    assert [one.job.id for one in found] == [JOBS, JOBS + 1]


def without_the_setting(path: Path) -> None:
    """Make a file as earlier versions did."""
    SqliteStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("VACUUM")
        assert db.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    db.close()


def auto_vacuum(store: SqliteStore) -> int:
    return int(store._writer.execute("PRAGMA auto_vacuum").fetchone()[0])


def test_a_file_of_an_earlier_version_is_written_anew(path: Path) -> None:
    without_the_setting(path)
    store = SqliteStore(path)
    assert auto_vacuum(store) == 2
    store.close()


def test_one_with_much_in_it_is_left_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_the_setting(path)
    monkeypatch.setattr(vacuum, "MOST_REWRITTEN_PAGES", 3)
    store = SqliteStore(path)
    assert auto_vacuum(store) == 0
    fill(store)
    forget(store)
    assert shrunk(store) == 1
    store.close()


def failing(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("name", "fatal"), [("SQLITE_FULL", False), ("SQLITE_IOERR_FSYNC", True)]
)
def test_a_failure_that_costs_trust_is_told_with_the_next_commit(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, name: str, fatal: bool
) -> None:
    def fail(_db: sqlite3.Connection) -> bool:
        raise failing(name)

    monkeypatch.setattr(vacuum, "release_pages", fail)
    assert not store.shrink()
    if fatal:
        with pytest.raises(StorageError, match="it failed"):
            store.commit(Changes(meta={"a": "b"}))
    else:
        store.commit(Changes(meta={"a": "b"}))
