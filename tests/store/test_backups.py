"""A backup is one commit, made beside a writer, and comes back whole."""

import hashlib
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
from msgspec.structs import replace
from tests.store.damaging import damage
from tests.store.filling import dump, fill
from tests.support.building import a_job, a_spec

from grass.errors import Refused, StorageError
from grass.model.jobs.task_call import TaskCall
from grass.model.restored import RESTORED_LAST_JOB
from grass.store.changes import Changes, Event
from grass.store.sqlite.backups import back_up, restore
from grass.store.sqlite.database_file import SCHEMA_VERSION
from grass.store.sqlite.sqlite_store import SqliteStore

DATA = b"bytes of a function" * 100_000
NAME = hashlib.sha256(DATA).hexdigest()


def test_a_backup_comes_back_with_the_blobs_that_it_names(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "grass.db")) as store:
        draft = store.blobs.begin(NAME)
        draft.write(DATA)
        draft.finish()
        spec = replace(a_spec(), task=TaskCall(NAME, "3.11"))
        store.commit(Changes(specs={1: spec}, jobs={1: a_job(1)}))
        assert back_up(store.path, tmp_path / "kept") == (1, 1)
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600
    home = tmp_path / "home"
    home.mkdir()
    assert restore(tmp_path / "kept", home / "grass.db") == 1
    with closing(SqliteStore(home / "grass.db")) as store:
        assert [job.id for job in store.load(0).jobs] == [1]
        assert store.blobs.read(NAME, 0, len(DATA)) == DATA


def test_a_backup_beside_a_writer_is_of_one_commit(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "grass.db")) as store:
        store.commit(Changes(specs={1: a_spec()}))
        done: list[int] = []

        def write() -> None:
            for id in range(1, 200):
                event = Event(id, "me", "enqueued", id)
                store.commit(Changes(jobs={id: a_job(id)}, events=[event]))
                done.append(id)

        writing = Thread(target=write)
        writing.start()
        for number in range(5):
            target = tmp_path / f"kept-{number}"
            jobs, _ = back_up(store.path, target)
            with closing(sqlite3.connect(target)) as copy:
                (events,) = copy.execute("SELECT COUNT(*) FROM events").fetchone()
            assert jobs == events
        writing.join()
        assert len(done) == 199


def test_the_database_before_is_kept(tmp_path: Path) -> None:
    fill(tmp_path / "grass.db")
    before = list(dump(tmp_path / "grass.db"))
    back_up(tmp_path / "grass.db", tmp_path / "kept")
    restore(tmp_path / "kept", tmp_path / "grass.db")
    assert list(dump(tmp_path / "grass.db.before-restore")) == before
    restored = list(dump(tmp_path / "grass.db"))
    restore(tmp_path / "kept", tmp_path / "grass.db")
    assert list(dump(tmp_path / "grass.db.before-restore")) == before
    assert list(dump(tmp_path / "grass.db.before-restore.2")) == restored
    mark = f"INSERT INTO \"meta\" VALUES('{RESTORED_LAST_JOB}','21');"
    assert sorted(dump(tmp_path / "grass.db")) == sorted([*before, mark])


def test_a_damaged_database_replaces_no_backup(tmp_path: Path) -> None:
    path, kept = tmp_path / "grass.db", tmp_path / "kept"
    fill(path)
    back_up(path, kept)
    before = kept.read_bytes()
    damage(path)
    with pytest.raises(StorageError, match="is left as it was"):
        back_up(path, kept)
    assert kept.read_bytes() == before
    assert sorted(one.name for one in tmp_path.glob("kept*")) == ["kept"]


def test_what_is_no_backup_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    fill(tmp_path / "grass.db")
    before = list(dump(tmp_path / "grass.db"))
    bad = tmp_path / "bad"
    bad.write_text("my thesis\n" * 500)
    with pytest.raises(StorageError, match="cannot be restored"):
        restore(bad, tmp_path / "grass.db")
    with pytest.raises(Refused, match="is no backup"):
        restore(tmp_path / "grass.db", tmp_path / "grass.db")
    back_up(tmp_path / "grass.db", tmp_path / "kept")
    with closing(sqlite3.connect(tmp_path / "kept")) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(Refused, match="newer grass"):
        restore(tmp_path / "kept", tmp_path / "grass.db")
    assert list(dump(tmp_path / "grass.db")) == before


def test_only_a_backup_or_an_empty_file_is_replaced(tmp_path: Path) -> None:
    database, target = tmp_path / "grass.db", tmp_path / "kept"
    fill(database)
    target.touch()
    assert back_up(database, target) == back_up(database, target)
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("my thesis\n" * 500)
    for other in (thesis, database, tmp_path, Path("/dev/null")):
        with pytest.raises(Refused, match="is no backup"):
            back_up(database, other)
    assert thesis.read_text().startswith("my thesis")
    assert not list(tmp_path.glob("*.draft*"))


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    fill(tmp_path / "grass.db")
    with pytest.raises(StorageError, match="cannot be written"):
        back_up(tmp_path / "grass.db", tmp_path / "nowhere" / "kept")
