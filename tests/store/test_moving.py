"""A store that is moved has every row afterwards, or nothing has changed."""

import hashlib
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.store.filling import dump, fill
from tests.support.brokers_key import FixedKey
from tests.support.building import a_job
from tests.support.patience import until

from grass.errors import NoDatabase, Refused, StorageError
from grass.store.blob_folder import BlobFolder
from grass.store.changes import Changes
from grass.store.sqlite.sqlite_store import SqliteStore

pytest.importorskip("psycopg")

from grass.store import moving
from grass.store.moving import to_postgres, to_sqlite
from grass.store.postgres.address import address_of
from grass.store.postgres.postgres_store import PostgresStore
from grass.store.sql import checking
from grass.store.sql.table_copies import KEYS, write_rows

BYTES = b"a function" * 100_000


class Interrupted(Exception):
    """Raised where a move is interrupted."""


def go_on(_step: str) -> None:
    pass


def stop_at(wanted: str) -> Callable[[str], None]:
    def reached(step: str) -> None:
        if step == wanted:
            raise Interrupted

    return reached


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "grass.db"
    fill(path)
    blobs = BlobFolder(tmp_path / "blobs")
    draft = blobs.begin(hashlib.sha256(BYTES).hexdigest())
    draft.write(BYTES)
    draft.finish()
    return path


def in_postgres(url: str) -> "closing[PostgresStore]":
    return closing(PostgresStore(address_of(url), FixedKey()))


def test_there_and_back_every_row_is_the_same(
    filled: Path, database: str, tmp_path: Path
) -> None:
    before = list(dump(filled))
    with closing(SqliteStore(filled)) as store:
        loaded = store.load(0)
    with in_postgres(database) as shared:
        moved = to_postgres(filled, shared, go_on)
        assert moved["jobs"].rows == 20
        assert shared.load(0) == loaded
        assert shared.last_event() == 52
        assert list(shared.blobs.names()) == [hashlib.sha256(BYTES).hexdigest()]
        with shared.reading() as db:
            assert not list(checking.problems(db, shared.blobs))
        back = tmp_path / "back" / "grass.db"
        back.parent.mkdir()
        umask = os.umask(0o022)
        try:
            assert to_sqlite(shared, back, go_on) == moved
        finally:
            os.umask(umask)
        # Whoever may read the folder: there are environments in it.
        assert stat.S_IMODE(back.stat().st_mode) == 0o600
    assert sorted(dump(back)) == sorted(before)
    assert BlobFolder(tmp_path / "back" / "blobs").size(
        hashlib.sha256(BYTES).hexdigest()
    ) == len(BYTES)
    with pytest.raises(NoDatabase, match="was moved to"):
        PostgresStore(address_of(database), FixedKey())


@pytest.mark.parametrize("step", ["blobs", "rows", "jobs", "events", "compared"])
def test_a_move_that_is_interrupted_changes_nothing(
    filled: Path, database: str, tmp_path: Path, step: str
) -> None:
    before = list(dump(filled))
    back = tmp_path / "back" / "grass.db"
    back.parent.mkdir()
    with in_postgres(database) as shared:
        with pytest.raises(Interrupted):
            to_postgres(filled, shared, stop_at(step))
        assert shared.load(0).last_job == 0
        assert list(dump(filled)) == before
        moved = to_postgres(filled, shared, go_on)
        # The last step of a move was not done: it is not taken for another queue.
        assert to_postgres(filled, shared, go_on) == moved
        with pytest.raises(Interrupted):
            to_sqlite(shared, back, stop_at(step))
        assert not back.exists()
        to_sqlite(shared, back, go_on)


def test_nothing_moves_while_a_broker_leads(
    filled: Path, database: str, tmp_path: Path
) -> None:
    back = tmp_path / "back" / "grass.db"
    back.parent.mkdir()
    with in_postgres(database) as shared:
        epoch = shared.take_lease("b1", "h:1", 60).epoch
        with pytest.raises(Refused, match="a broker uses the database"):
            to_postgres(filled, shared, go_on)
        assert shared.load(0).last_job == 0
        shared.take_lease("b1", "h:1", 0, epoch)
        to_postgres(filled, shared, go_on)
        shared.take_lease("b1", "h:1", 60)
        with pytest.raises(Refused, match="a broker uses the database"):
            to_sqlite(shared, back, go_on)
        assert not back.exists()


def test_a_leader_of_before_writes_nothing_beside_a_move_nor_after_it(
    filled: Path, database: str, tmp_path: Path
) -> None:
    back = tmp_path / "back" / "grass.db"
    back.parent.mkdir()
    with in_postgres(database) as shared, in_postgres(database) as hung:
        to_postgres(filled, shared, go_on)
        # Its term is over, and it does not know.
        epoch = hung.take_lease("b1", "h:1", 0).epoch
        late = Thread(target=lambda: outcomes.append(outcome_of_commit(hung, epoch)))
        outcomes: list[str] = []

        def write_meanwhile(step: str) -> None:
            if step == "rows":
                late.start()

        to_sqlite(shared, back, write_meanwhile)
        late.join()
        assert outcomes == ["LeadLost"]
        assert outcome_of_commit(hung, epoch) == "LeadLost"
    with closing(SqliteStore(back)) as moved:
        assert not moved.details([999])


def test_a_standby_that_slept_cannot_lead_a_database_that_was_moved(
    filled: Path, database: str, tmp_path: Path
) -> None:
    back = tmp_path / "back" / "grass.db"
    back.parent.mkdir()
    with in_postgres(database) as shared, in_postgres(database) as slept:
        to_postgres(filled, shared, go_on)
        refusals: list[str] = []
        asking = Thread(target=lambda: refusals.append(refusal_of_lead(slept)))

        def ask_meanwhile(step: str) -> None:
            if step == "compared":
                asking.start()
                until(lambda: waits_for_the_lead(shared), "it waits for the move")

        to_sqlite(shared, back, ask_meanwhile)
        asking.join()
        assert refusals == [refusal_of_lead(slept)]
        assert "was moved to" in refusals[0]
        with pytest.raises(NoDatabase, match="was moved to"):
            slept.load(0)


def waits_for_the_lead(store: PostgresStore) -> bool:
    waiting = "SELECT 1 FROM pg_locks WHERE relation = 'lead'::regclass AND NOT granted"
    return store._writer.execute(waiting).fetchone() is not None


def refusal_of_lead(store: PostgresStore) -> str:
    with pytest.raises(NoDatabase) as refused:
        store.take_lease("b2", "h:2", 60)
    return refused.value.message


def outcome_of_commit(store: PostgresStore, epoch: int) -> str:
    try:
        store.commit(Changes(jobs={999: a_job(999)}), epoch)
    except StorageError as error:
        return type(error).__name__
    return "written"


def test_the_name_of_a_file_is_on_the_disk_before_the_move_counts(
    filled: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = tmp_path / "back" / "grass.db"
    back.parent.mkdir()
    moved: list[bool] = []
    with in_postgres(database) as shared:
        to_postgres(filled, shared, go_on)

        def sync(descriptor: int) -> None:
            if back.exists() and os.path.sameopenfile(descriptor, folder):
                asked = "SELECT 1 FROM meta WHERE key = 'moved'"
                moved.append(shared._writer.execute(asked).fetchone() is not None)
            real_sync(descriptor)

        real_sync, folder = os.fsync, os.open(back.parent, os.O_RDONLY)
        monkeypatch.setattr(os, "fsync", sync)
        to_sqlite(shared, back, go_on)
        os.close(folder)
    assert moved == [False]


@pytest.mark.parametrize("step", ["blobs", "renamed"])
def test_a_database_that_goes_away_while_it_is_moved_is_one_line(
    filled: Path, database: str, tmp_path: Path, step: str
) -> None:
    back = tmp_path / "back" / "grass.db"
    back.parent.mkdir()

    def lose(reached: str) -> None:
        if reached == step:
            shared._writer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    with in_postgres(database) as shared:
        to_postgres(filled, shared, go_on)
        with pytest.raises(NoDatabase, match="does not answer"):
            to_sqlite(shared, back, lose)


def test_a_row_that_cannot_be_read_is_one_line(
    filled: Path, database: str, tmp_path: Path
) -> None:
    with in_postgres(database) as shared:
        to_postgres(filled, shared, go_on)
        shared._writer.execute("UPDATE envs SET body = 'sealed-1:AAAA'")
        with pytest.raises(StorageError, match="was not sealed for this row"):
            to_sqlite(shared, tmp_path / "back.db", go_on)


def test_who_starts_while_a_database_is_moved_is_refused(database: str) -> None:
    with in_postgres(database) as moving_it, in_postgres(database) as starting:
        assert moving_it.lock_out_others()
        with pytest.raises(Refused, match="is being copied or checked"):
            starting.use()
    with in_postgres(database) as running, in_postgres(database) as mover:
        running.use()
        assert not mover.lock_out_others()


def test_a_row_that_differs_is_found_and_nothing_counts(
    filled: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(db: Any, table: str, columns: list[str], rows: Any) -> None:
        given = list(rows)
        write_rows(db, table, columns, given[1:] if table == "events" else given)

    with in_postgres(database) as shared:
        monkeypatch.setattr(moving, "write_rows", wrong)
        with pytest.raises(StorageError, match="table events has 47 rows"):
            to_postgres(filled, shared, go_on)
        assert shared.load(0).last_job == 0


def test_a_database_with_another_queue_is_left_alone(
    filled: Path, database: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    fill(other / "grass.db")
    with in_postgres(database) as shared:
        to_postgres(other / "grass.db", shared, go_on)
        kept = shared.load(0)
        with pytest.raises(Refused, match="a queue of its own"):
            to_postgres(filled, shared, go_on)
        assert shared.load(0) == kept


def test_every_table_is_moved(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as db:
        named = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {row[0] for row in named} - {"sqlite_sequence", "leases"}
    assert tables == set(KEYS)


def test_a_check_tells_what_is_wrong(filled: Path) -> None:
    blobs = BlobFolder(filled.parent / "blobs")
    with closing(sqlite3.connect(filled)) as db:
        assert not list(checking.problems(db, blobs))
        db.execute("UPDATE job_counts SET jobs = jobs + 1 WHERE state = 'held'")
        db.execute("DELETE FROM specs WHERE id = 1")
        db.execute("INSERT INTO job_blobs VALUES (1, 'gone')")
        db.execute("UPDATE jobs SET body = '{' WHERE id = 2")
        found = list(checking.problems(db, blobs))
    assert found[:2] == ["1 jobs are held, and 2 are counted", "1 jobs without a spec"]
    assert "job 2 cannot be read" in found[2]
    assert found[3] == "blob gone is named and not there"
