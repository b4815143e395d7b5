"""Environments in PostgreSQL: only brokers can read them, each in its own row."""

import json
from contextlib import closing

import pytest
from tests.support.brokers_key import FixedKey
from tests.support.building import a_job, a_spec
from tests.support.postgres import everything

from grass.errors import NoDatabase, Refused, StorageError
from grass.store.changes import Changes, Env

pytest.importorskip("psycopg")

import psycopg

from grass.store.bodies import CorruptRow
from grass.store.postgres.address import address_of
from grass.store.postgres.fencing import give_up_environments
from grass.store.postgres.postgres_store import PostgresStore
from grass.store.postgres.sealing import Sealing

SECRET = "hunter2-planted"
BODY = json.dumps({"PATH": "/bin", "AWS_SECRET": SECRET})
ORIGIN = "00000000000000b2"


def opened(url: str, key: FixedKey | None = None) -> "closing[PostgresStore]":
    return closing(PostgresStore(address_of(url), key or FixedKey()))


def fill(store: PostgresStore) -> None:
    specs = {n: a_spec(base_env=n, origin=ORIGIN) for n in (1, 2)}
    envs = [Env(n, "uid:1", BODY, ORIGIN) for n in (1, 2)]
    jobs = {n: a_job(n, spec=n) for n in (1, 2)}
    store.commit(Changes(specs=specs, envs=envs, jobs=jobs))


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(statement)


def test_the_database_has_no_environment_and_the_broker_has(database: str) -> None:
    with opened(database) as store:
        fill(store)
        assert store.load(0).envs == [Env(n, "uid:1", BODY, ORIGIN) for n in (1, 2)]
        assert store.environments({2: ORIGIN})[0].body == BODY
    assert SECRET not in everything(database)
    assert "AWS_SECRET" not in everything(database)
    with opened(database) as again:
        assert [env.body for env in again.load(0).envs] == [BODY, BODY]


def test_equal_environments_look_different(database: str) -> None:
    with opened(database) as store:
        fill(store)
    with psycopg.connect(database) as db:
        found = db.execute("SELECT DISTINCT body FROM envs").fetchall()
    assert len(found) == 2


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE envs SET body = (SELECT body FROM envs WHERE id = 2) WHERE id = 1",
        "UPDATE envs SET owner = 'uid:2' WHERE id = 1",
        "UPDATE envs SET body = left(body, -4) WHERE id = 1",
        "UPDATE envs SET body = '{}' WHERE id = 1",
        "UPDATE specs SET body = replace(body, '00b2', '00c3') WHERE id = 1",
    ],
    ids=["another row's", "another owner", "cut", "in clear", "another machine"],
)
def test_what_was_changed_is_refused(database: str, tampering: str) -> None:
    with opened(database) as store:
        fill(store)
        execute(database, tampering)
        with pytest.raises(StorageError, match="environment 1 was not sealed for"):
            store.load(0)


@pytest.mark.parametrize(
    ("key", "said"),
    [(FixedKey(b"other"), "with another key than"), (FixedKey(None), "there is no")],
    ids=["wrong", "missing"],
)
def test_without_the_key_it_is_refused_in_one_line(
    database: str, key: FixedKey, said: str
) -> None:
    with opened(database) as store:
        fill(store)
    with pytest.raises(NoDatabase, match=said) as refused:
        opened(database, key)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 3
    assert "grass store forget-environments" in refused.value.hint
    assert key.secret != b"a new key"


def test_where_the_key_is_lost_environments_can_be_given_up(database: str) -> None:
    with opened(database) as store:
        fill(store)
        store.take_lease("b1", "h:1", 60)
        with pytest.raises(Refused, match="a broker uses the database"):
            give_up_environments(store.address)
        store.take_lease("b1", "h:1", 0, store.lease().epoch)
        assert give_up_environments(store.address) == 2
    with opened(database, FixedKey(None)) as store:
        loaded = store.load(0)
        assert [job.id for job in loaded.jobs] == [1, 2]
        assert loaded.envs == []


def test_a_seal_tells_nothing_of_its_key() -> None:
    one, other = Sealing(b"one"), Sealing(b"other")
    assert one.mark == Sealing(b"one").mark != other.mark
    sealed = one.sealed(Env(1, "u", BODY))
    assert one.opened(sealed).body == BODY
    with pytest.raises(CorruptRow):
        other.opened(sealed)
