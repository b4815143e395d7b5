"""What is particular to PostgreSQL: its server, its schema, its errors."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from tests.support.brokers_key import FixedKey
from tests.support.building import a_job, a_spec
from tests.support.patience import until

from grass.errors import LeadLost, NoDatabase, StorageError
from grass.store.changes import Changes, Event
from grass.store.sqlite.dialect import SqliteDialect
from grass.store.sqlite.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer


pytest.importorskip("psycopg")

import psycopg

from grass.store.postgres import connections, leading, migrating
from grass.store.postgres.address import DatabaseAddress, address_of
from grass.store.postgres.dialect import PostgresDialect
from grass.store.postgres.failures import cannot_open
from grass.store.postgres.postgres_store import PostgresStore
from grass.store.postgres.sealing import Sealing
from grass.store.sql.dialect import migrations

ONLY_SQLITE = {"leases"}
"""A table of an early version, which nothing uses."""
SECRET = "s3cret-word"
PID = os.getpid()


@pytest.fixture
def store(database: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(address_of(database), FixedKey())) as store:
        yield store


@pytest.fixture
def empty(postgres: "PostgresServer") -> Iterator[str]:
    """A database without tables."""
    name = f"empty_{PID}"
    postgres.execute(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_it_has_every_column_that_sqlite_has(
    store: PostgresStore, tmp_path: Path
) -> None:
    SqliteStore(tmp_path / "grass.db").close()
    with closing(sqlite3.connect(tmp_path / "grass.db")) as db:
        named = db.execute(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name)"
            " AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
        ).fetchall()
    wanted = {one for one in named if one[0] not in ONLY_SQLITE}
    found = store._writer.execute(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public'"
    ).fetchall()
    assert wanted <= set(found)


def test_the_migrations_end_at_the_schema_this_code_knows() -> None:
    numbers = [number for number, _ in migrations("postgres")]
    assert numbers == list(range(1, migrating.SCHEMA_VERSION + 1))


def test_it_has_a_statement_for_each_of_sqlite() -> None:
    assert set(SqliteDialect().names()) <= set(PostgresDialect(Sealing(b"")).names())


def test_every_statement_is_taken(store: PostgresStore) -> None:
    sql = PostgresDialect(Sealing(b""))
    holes = {"where": "TRUE", "order": "1", "index": "", "counted": "TRUE"}
    for name in sql.names():
        plain = sql[name].format(**holes) if "{where}" in sql[name] else sql[name]
        plain = plain.replace("{counted}", "TRUE")
        store._writer.session.execute(
            f"PREPARE one AS {connections._numbered(plain)}"  # type: ignore[arg-type, unused-ignore]
        )
        store._writer.session.execute("DEALLOCATE one")


def test_brokers_that_start_together_make_one_schema(empty: str) -> None:
    clusters: list[str] = []

    def start() -> None:
        with closing(PostgresStore(address_of(empty), FixedKey())) as store:
            clusters.append(store.load(0).cluster)

    threads = [Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clusters) == 4
    assert len(set(clusters)) == 1


def test_a_database_of_a_newer_grass_is_refused(store: PostgresStore) -> None:
    newer = migrating.SCHEMA_VERSION + 1
    store._writer.execute(f"UPDATE meta SET value = '{newer}' WHERE key = 'schema'")
    with pytest.raises(NoDatabase, match="written by a newer grass") as refused:
        PostgresStore(store.address, FixedKey())
    assert refused.value.exit_code == 3


def test_a_migration_that_fails_leaves_nothing(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [(1, "CREATE TABLE meta (key TEXT); INSERT INTO nowhere VALUES (1)")]
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "migrations", lambda _dialect: steps)
        with pytest.raises(StorageError, match="nowhere"):
            PostgresStore(address_of(empty), FixedKey())
    PostgresStore(address_of(empty), FixedKey()).close()


def test_a_migration_ends_the_lead_of_an_older_broker_for_good(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = migrating.SCHEMA_VERSION + 1
    newer = [*migrations("postgres"), (later, "CREATE TABLE later (id BIGINT)")]
    epoch = store.take_lease("old", "h1", 60.0).epoch
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "migrations", lambda _dialect: newer)
        for module in (migrating, leading):
            patched.setattr(module, "SCHEMA_VERSION", later)
        with closing(PostgresStore(store.address, FixedKey())) as migrated:
            # It may speak until its term is over, and writes nothing more.
            assert migrated.take_lease("new", "h2", 60.0).holder == "old"
    with pytest.raises(LeadLost):
        store.commit(Changes(meta={"last_job": "7"}), epoch)
    for asks_with in (epoch, 0):
        with pytest.raises(NoDatabase, match="written by a newer grass"):
            store.take_lease("old", "h1", 60.0, asks_with)
    with pytest.raises(NoDatabase, match="written by a newer grass"):
        store.load(0)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/grass",
        f"postgresql://me:{SECRET}@127.0.0.1:abc/grass",
        f"postgresql://me:{SECRET}@[::1/grass",
        f"postgresql://me:{SECRET}@nowhere.invalid/grass?connect_timeout=2",
        f"postgresql://me@127.0.0.1:1/grass?password={SECRET}",
        f"postgresql://me@127.0.0.1:1/grass?pass%77ord={SECRET}",
        f"postgresql://me:a?{SECRET}@127.0.0.1:1/grass",
        f"postgresql://me:a/{SECRET}@127.0.0.1:1/grass",
        f"postgresql//me:{SECRET}@127.0.0.1/grass",
        f"mysql://me:{SECRET}@127.0.0.1/grass",
    ],
)
def test_what_cannot_be_opened_is_one_line_without_the_password(url: str) -> None:
    with pytest.raises(NoDatabase) as refused:
        PostgresStore(address_of(url), FixedKey())
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ('could not translate host name "x": Name or service not known', "the URL"),
        ('definition of service "x" not found', "pg_service.conf"),
        ('no pg_hba.conf entry for host "h", user "u", SSL encryption', "pg_hba.conf"),
        ("server does not support SSL, but SSL was required", "sslmode"),
        ('password authentication failed for user "u"', "~/.pgpass"),
    ],
)
def test_a_hint_fits_what_the_server_or_the_driver_says(said: str, hint: str) -> None:
    failure = cannot_open(OSError(said), DatabaseAddress("postgresql://h", "h"))
    assert hint in failure.hint


def test_a_database_that_does_not_exist_is_named(postgres: "PostgresServer") -> None:
    with pytest.raises(NoDatabase, match='"nowhere" does not exist') as refused:
        PostgresStore(address_of(postgres.url("nowhere")), FixedKey())
    assert "createdb" in refused.value.hint


def test_a_database_that_is_not_in_utf8_is_refused(postgres: "PostgresServer") -> None:
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(NoDatabase, match="encoding LATIN1, not UTF8"):
        PostgresStore(address_of(postgres.url("latin")), FixedKey())


def test_a_lost_connection_fails_one_commit_and_the_next_one_works(
    store: PostgresStore, postgres: "PostgresServer"
) -> None:
    store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))
    assert len(store.details([1])) == 1
    end_sessions(postgres)
    with pytest.raises(NoDatabase, match="does not answer"):
        store.commit(Changes(jobs={2: a_job(2)}))
    # A read is simply done again.
    assert [job.id for job in store.outcomes([1, 2])] == [1]
    assert [job.id for job in store.load(0).jobs] == [1]
    store.commit(Changes(jobs={2: a_job(2)}, events=[Event(1, "me", "enqueued", 2)]))
    end_sessions(postgres)
    with store.consistent():
        assert len(store.details([1, 2])) == 2
        end_sessions(postgres)
        with pytest.raises(NoDatabase):
            store.details([1])
    assert len(store.details([1, 2])) == 2
    assert store.blobs.size("0" * 64) is None


def test_sessions_of_threads_that_ended_are_closed(store: PostgresStore) -> None:
    counted = (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend'"
    )

    def sessions() -> int:
        return int(store._writer.execute(counted).fetchone()[0])

    def read_in_a_thread() -> None:
        for read in (lambda: store.details([1]), lambda: store.blobs.size("0" * 64)):
            thread = Thread(target=read)
            thread.start()
            thread.join()

    read_in_a_thread()
    before = sessions()
    for _ in range(3):
        read_in_a_thread()
    # The server takes a moment to end a session.
    until(sessions, "sessions of threads that ended are open", lambda n: n <= before, 5)


def end_sessions(postgres: "PostgresServer") -> None:
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'grass'"
        f" AND datname LIKE 'test_{PID}_%'"
    )


def test_a_read_only_database_takes_no_commit_and_says_so(
    store: PostgresStore,
) -> None:
    store._writer.execute("SET default_transaction_read_only TO on")
    with pytest.raises(StorageError, match="is read-only; nothing was changed"):
        store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))
    store._writer.execute("SET default_transaction_read_only TO off")
    store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))


def test_names_longer_than_an_entry_of_an_index_are_sorted(
    store: PostgresStore,
) -> None:
    from grass.store.interface import JobFilter, Sorting, SortKey

    start = "".join(chr(0x4E00 + number) for number in range(3000))
    jobs = {n: a_job(n, name=start + end) for n, end in ((1, "b"), (2, "a"), (3, "c"))}
    store.commit(Changes(specs={1: a_spec()}, jobs=jobs))
    first = store.sorted_jobs(JobFilter(), Sorting(SortKey.NAME), 2)
    assert [one.job.id for one in first.jobs] == [2, 1]
    rest = store.sorted_jobs(JobFilter(), Sorting(SortKey.NAME, place=first.next), 2)
    assert [one.job.id for one in rest.jobs] == [3]


def test_the_lead_is_taken_from_a_broker_that_hangs_in_the_middle_of_a_commit(
    store: PostgresStore,
) -> None:
    begin = PostgresDialect(Sealing(b""))["begin_writing"]
    store.take_lease("one", "h1:1", 0.05, 0)
    with closing(connections.connect(store.address)) as hung:
        pipeline = hung.session.pipeline()
        pipeline.__enter__()
        # As a commit begins; what it has asked is answered, and nothing follows.
        hung.execute("BEGIN")
        assert hung.execute(begin).fetchone() is not None
        pid = hung.session.info.backend_pid
        waits = "SELECT clock_timestamp() - state_change > INTERVAL '2.1 seconds' FROM"
        asked = f"{waits} pg_stat_activity WHERE pid = {pid}"
        until(lambda: store._writer.execute(asked).fetchone()[0], "it hangs")
        assert store.take_lease("two", "h2:1", 5.0, 0).holder == "two"
        with pytest.raises(psycopg.OperationalError):
            hung.execute("SELECT 1").fetchone()
