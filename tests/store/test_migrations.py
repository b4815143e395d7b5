"""Databases of every released schema: they open, and nothing in them is lost."""

import json
import sqlite3
from base64 import b64encode
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.store.filling import FOUND, KEPT, dump, restored, version_of
from tests.support.brokerage import Brokerage

from grass.errors import GrassError, StorageError
from grass.model.jobs.lifecycle import JobState
from grass.store.sql.dialect import migrations
from grass.store.sqlite import database_file
from grass.store.sqlite.database_file import SCHEMA_VERSION
from grass.store.sqlite.sqlite_store import SqliteStore

WITH_BODY = ("queues", "workers", "tokens", "attempts", "jobs")
EVERY = "SELECT * FROM "
RENAMED = {
    "after_job": "after",
    "resting": "draining",
    "resting_reason": "draining_reason",
}
MODEL_NAMES = RENAMED | {"array_index": "index"}
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(params=KEPT, ids=[file.stem for file in KEPT])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database as an earlier version left it."""
    return restored(request.param, tmp_path)


def everything(path: Path) -> Rows:
    """Read every row of every table, by column or field."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [row["name"] for row in found]
        return {
            name: [
                fields(name, dict(row)) for row in db.execute(f"SELECT * FROM {name}")
            ]
            for name in names
        }


def fields(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Give the columns of a row and the fields of its body alike."""
    if table == "specs":
        spec = json.loads(row["body"])
        spec["after"] = [as_range(one) for one in spec.get("after", ())]
        return row | {"body": spec}
    if table not in WITH_BODY or "body" not in row:
        return row
    body: dict[str, Any] = json.loads(row.pop("body") or "{}")
    return row | body


def test_a_database_of_every_schema_is_kept() -> None:
    numbers = [number for number, _ in migrations("sqlite")]
    assert [file.stem for file in KEPT] == [f"schema_{number}" for number in numbers]


@pytest.mark.parametrize("file", KEPT, ids=[file.stem for file in KEPT])
def test_what_is_kept_is_of_the_schema_that_it_says(file: Path, tmp_path: Path) -> None:
    path = restored(file, tmp_path)
    assert f"schema_{version_of(path)}" == file.stem
    states = {job["state"] for job in everything(path)["jobs"]}
    assert states >= {"queued", "running", "succeeded", "failed", "cancelled", "lost"}


def test_the_latest_has_jobs_in_every_state(tmp_path: Path) -> None:
    jobs = everything(restored(KEPT[-1], tmp_path))["jobs"]
    assert {job["state"] for job in jobs} == set(JobState)


def test_it_is_brought_forward_and_keeps_everything(old: Path) -> None:
    before = everything(old)
    SqliteStore(old).close()
    after = everything(old)
    assert version_of(old) == SCHEMA_VERSION
    for table, rows in before.items():
        for was, now in zip(rows, after[table], strict=True):
            for column, value in was.items():
                if column == "apart":
                    continue
                kept = now.get(RENAMED.get(column, column))
                assert means(value, kept), (table, column, value, kept)


def as_range(after: list[Any]) -> list[Any]:
    """Return a dependency as a range: earlier schemas have single jobs."""
    if len(after) == 3:
        return after
    job, need = after
    return [need, job, job]


def means(was: Any, now: Any) -> bool:
    """Compare a column of before with a field of a body, which is JSON."""
    if isinstance(was, bytes):
        return bool(b64encode(was).decode() == now)
    if was == now or (was == 0 and now is None):
        return True
    return isinstance(was, str) and bool(json.loads(was) == now)


def test_what_a_store_reads_of_it_is_what_it_was(old: Path) -> None:
    before = everything(old)
    with closing(SqliteStore(old)) as store:
        loaded = store.load(0)
        jobs = store.details([job["id"] for job in before["jobs"]])
    found: dict[str, list[Any]] = {
        "queues": sorted(loaded.queues, key=attrgetter("name")),
        "workers": loaded.workers,
        "tokens": sorted(loaded.tokens, key=attrgetter("name")),
        "jobs": [one.job for one in jobs],
        "attempts": [attempt for one in jobs for attempt in one.attempts],
    }
    for table, values in found.items():
        for was, now in zip(before.get(table, []), values, strict=True):
            whole = json.loads(msgspec.json.encode(now))
            whole |= whole.pop("common", {})
            for column, value in was.items():
                if column in ("views", "connected", "apart"):
                    continue
                field = whole[MODEL_NAMES.get(column, column)]
                assert means(value, field), (table, column, value, field)


def test_it_is_laid_out_like_a_new_one(old: Path, tmp_path: Path) -> None:
    SqliteStore(old).close()
    new = tmp_path / "new.db"
    SqliteStore(new).close()
    layouts = []
    for path in (old, new):
        with closing(sqlite3.connect(path)) as db:
            found = db.execute("SELECT type, name, sql FROM sqlite_master")
            layouts.append({row[:2]: plain(row[2]) for row in found})
    assert layouts[0] == layouts[1]


def plain(sql: str | None) -> str:
    """Leave out what SQLite adds when it writes a name down again."""
    return " ".join((sql or "").replace('"', "").split())


def test_a_broker_goes_on_with_it(old: Path) -> None:
    ids = [job["id"] for job in everything(old)["jobs"]]
    events = len(everything(old)["events"])
    store = SqliteStore(old)
    assert [one.job.id for one in store.details(ids)] == ids
    assert len(store.events(0, 10_000, None, ())) == events
    last = store.load(0).last_job
    store.close()
    broker = Brokerage(old, FOUND, SqliteStore)
    assert broker.enqueue("next") == last + 1
    broker.store.close()


def test_opening_it_twice_changes_nothing_more(old: Path) -> None:
    SqliteStore(old).close()
    once = list(dump(old))
    SqliteStore(old).close()
    assert list(dump(old)) == once


def test_a_newer_one_is_refused_and_left_alone(old: Path) -> None:
    SqliteStore(old).close()
    with closing(sqlite3.connect(old)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = list(dump(old))
    message = rf"newer grass \(schema {SCHEMA_VERSION + 1}, this one knows"
    with pytest.raises(GrassError, match=message) as refused:
        SqliteStore(old)
    assert refused.value.hint == "install that version again"
    assert list(dump(old)) == before


def test_a_step_that_fails_leaves_the_file_as_it_was_before_the_first(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "CREATE TABLE extra (x); DELETE FROM jobs; INSERT INTO nowhere VALUES (1)"
    steps = [*migrations("sqlite"), (SCHEMA_VERSION + 1, broken)]
    before = list(dump(old))
    with monkeypatch.context() as patched:
        patched.setattr(database_file, "migrations", lambda _dialect: steps)
        with pytest.raises(StorageError, match="no such table: nowhere"):
            SqliteStore(old)
    assert list(dump(old)) == before
    SqliteStore(old).close()
    assert version_of(old) == SCHEMA_VERSION


def test_ends_by_a_wrong_clock_are_put_right_by_the_journal(tmp_path: Path) -> None:
    path = restored(KEPT[3], tmp_path)
    right = {job["id"]: job["finished_at"] for job in everything(path)["jobs"]}
    query = "SELECT id FROM jobs WHERE state IN ('succeeded', 'failed') ORDER BY id"
    with closing(sqlite3.connect(path)) as db:
        (wrong,), (near,) = db.execute(query).fetchmany(2)
        move = "UPDATE jobs SET finished_at = finished_at + ? WHERE id = ?"
        db.execute(move, (-(10**15), wrong))
        db.execute(move, (1_000_000, near))
        db.commit()
    SqliteStore(path).close()
    now = {job["id"]: job["finished_at"] for job in everything(path)["jobs"]}
    assert abs(now.pop(wrong) - right.pop(wrong)) <= 1_000_000
    assert now == {**right, near: right[near] + 1_000_000}
    tried = [one for one in everything(path)["attempts"] if "finished_at" in one]
    assert all(one["ran_s"] >= 0 for one in tried)


def test_when_a_job_was_cancelled_after_an_attempt_stays_right(tmp_path: Path) -> None:
    path = restored(KEPT[3], tmp_path)
    query = "SELECT id, finished_at FROM jobs WHERE state = 'failed' ORDER BY id"
    with closing(sqlite3.connect(path)) as db:
        job, ended = db.execute(query).fetchone()
        later = ended + 10**9
        db.execute(
            "INSERT INTO events (at, actor, kind, job, data)"
            " VALUES (?, 'uid:1', 'cancelled', ?, '{}')",
            (later, job),
        )
        db.execute("UPDATE jobs SET finished_at = ? WHERE id = ?", (later, job))
        db.commit()
    SqliteStore(path).close()
    [now] = [one for one in everything(path)["jobs"] if one["id"] == job]
    assert now["finished_at"] == later


def test_dependencies_on_jobs_that_follow_on_each_other_become_ranges(
    tmp_path: Path,
) -> None:
    path = restored(next(one for one in KEPT if one.stem == "schema_14"), tmp_path)
    after = [[9, "any"], [7, "any"], [7, "failed"], [8, "any"], [7, "any"]]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "UPDATE specs SET body = json_set(body, '$.after', json(?)) WHERE id = 10",
            (json.dumps(after),),
        )
    with closing(SqliteStore(path)) as store:
        waiting = next(one for one in store.load(0).specs.values() if one.after)
    assert waiting.after == (("any", 7, 9), ("failed", 7, 7))
