"""Bodies of rows: fields by name, which keep their names, and may be broken."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.building import a_job, a_pool, a_spec, an_attempt

from grass.errors import StorageError
from grass.model.access import Token
from grass.model.jobs.job import Attempt, Common, Job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.model.pools import Pilot
from grass.model.queue import Queue, View
from grass.model.usage.profiles import Profile
from grass.model.worker import Unit, Worker
from grass.store.bodies import CorruptRow, Rest, from_json, json_text
from grass.store.changes import Changes
from grass.store.sql import rows
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.sqlite_store import SqliteStore

NOT_UTF8 = "caf\udce9"
LIVE = {"connected", "skew_s", "unable", "shrinks"}
STORED = {
    Attempt: "worker boot allocation started_at finished_at pid exit_code signal reason"
    " output output_offset stderr stderr_offset max_rss cpu_s after",
    Job: "started_at exit_code signal reason stopping_since not_before failures losses"
    " suspended_since met",
    Queue: "name created_at paused default_request max_running max_fails fails"
    " paused_reason",
    View: "capacity prefix cwd env",
    Worker: "id name boot found added drained labels lease_s draining draining_reason"
    " address heard_at instance",
    Unit: "amount details",
    Token: "name role hash created_at created_by expires_at is_code worker used_at"
    " made",
    Spec: "env umask output stderr raw pin begin_at time_limit_s retries backoff_s"
    " retry_on retry_lost nice at_most max_fails request prefix cwd queue_cwd base_env"
    " max_output grace_s after worker labels limit_signal stdin window",
}


@pytest.mark.parametrize("kind", STORED)
def test_fields_that_were_ever_stored_keep_their_names(
    kind: type[msgspec.Struct],
) -> None:
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    gone = set(STORED[kind].split()) - names
    assert not gone, "rename with a migration; what is only dropped leaves this list"


def test_a_column_is_there_for_all_that_jobs_have_in_common() -> None:
    common = a_job(1, words=("a", "b"), array=7).common
    row = rows.common_row(common)
    assert len(row) == len(Common.__struct_fields__)
    [job] = rows.jobs_from([(1, *row, "queued", None, None, 0, None)])
    assert job.common == common


def test_the_state_of_a_workers_link_is_not_stored() -> None:
    live = Worker("w", "desk", connected=True, skew_s=90.0, unable="no room")
    live.found, live.lease_s = {"cpu": {"0": Unit(1)}}, 60.0
    _, body = rows.worker_row(live)
    assert not LIVE & set(msgspec.json.decode(body))
    stored = rows.worker_from("w", body)
    assert stored == replace(live, connected=False, skew_s=0.0, unable="")


def test_the_state_of_a_workers_link_is_not_read_from_earlier_bodies() -> None:
    body = json_text(Worker("w", "desk", connected=True, skew_s=90.0, unable="x"))
    assert rows.worker_from("w", body) == Worker("w", "desk")


class Earlier(msgspec.Struct):
    """A struct as it was."""

    key: int
    name: str = "none"
    size: int = 0


class Later(msgspec.Struct):
    """The same with more to it, and without its name."""

    key: int
    count: int = 3
    labels: list[str] = []


def test_fields_come_and_go() -> None:
    assert from_json(json_text(Earlier(1, "x")), Later) == Later(1)
    rest = Rest(Earlier, ("key",)).text(Earlier(1, "x"))
    assert rest == '{"name":"x"}'
    assert Rest(Later, ("key",)).fields(rest) == {"count": 3, "labels": []}


def test_fields_with_their_defaults_need_no_body() -> None:
    assert Rest(Earlier, ("key",)).text(Earlier(1)) is None


def test_bytes_that_are_not_utf8_are_kept() -> None:
    assert from_json(json_text(Earlier(1, NOT_UTF8)), Earlier).name == NOT_UTF8


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key":"x"}', '{"name":"\\ud800"}'])
def test_what_is_no_such_body_is_refused(text: str) -> None:
    with pytest.raises(CorruptRow, match="earlier 7 cannot be read"):
        from_json(text, Earlier, 7)


def load(store: SqliteStore) -> object:
    return store.load(0)


def details(store: SqliteStore) -> object:
    return store.details([1])


@pytest.mark.parametrize(
    ("table", "what", "read"),
    [
        ("queues", "queue q", load),
        ("workers", "worker w", load),
        ("views", "view of queue q on w", load),
        ("tokens", "token t", load),
        ("profiles", "profile train.py", load),
        ("pools", "pool p", load),
        ("pilots", "pilot m", load),
        ("jobs", "job 1", load),
        ("attempts", "attempt 1.1", load),
        ("specs", "spec 1", load),
        ("jobs", "job 1", details),
        ("attempts", "attempt 1.1", details),
        ("specs", "spec 1", details),
    ],
)
def test_a_broken_body_is_one_line_that_names_it(
    tmp_path: Path, table: str, what: str, read: Callable[[SqliteStore], object]
) -> None:
    path = tmp_path / "grass.db"
    with closing(SqliteStore(path)) as store:
        store.commit(something())
        read(store)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(f"UPDATE {table} SET body = '{{\"a'").rowcount == 1
        db.commit()
    with closing(SqliteStore(path)) as store:
        with pytest.raises(
            StorageError, match=f"grass.db failed: {what} cannot"
        ) as why:
            read(store)
        assert "\n" not in str(why.value)
        assert not is_fatal(why.value)


def test_a_state_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "grass.db")) as store:
        store.commit(something())
        store._writer.execute("UPDATE jobs SET state = 'dreaming'")
        with pytest.raises(StorageError, match="job 1 has the state 'dreaming'"):
            store.details([1])
        store._writer.execute("UPDATE jobs SET state = 'running'")
        store._writer.execute("UPDATE attempts SET state = 'dreaming'")
        with pytest.raises(StorageError, match=r"attempt 1\.1 has the state 'd"):
            store.details([1])


def something() -> Changes:
    view: Any = View({"cpu": {"0": 1}})
    return Changes(
        specs={1: a_spec()},
        queues={"q": Queue("q", 1)},
        workers={"w": Worker("w", "w")},
        views={("q", "w"): view},
        tokens={"t": Token("t", "read", b"h", 1, "uid:1")},
        profiles={("train.py", "A"): Profile("train.py", "A")},
        pools={"p": a_pool("p")},
        pilots={"m": Pilot(mark="m", pool="p", asked_at=1)},
        jobs={1: a_job(1, state=JobState.RUNNING, attempts=1, started_at=5)},
        attempts={(1, 1): an_attempt(1)},
    )
