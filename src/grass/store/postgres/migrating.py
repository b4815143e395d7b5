"""Brings a PostgreSQL database to the schema of this version, one broker at a time."""

import contextlib
from collections.abc import Iterator
from secrets import token_hex

import psycopg

from grass.errors import GrassError, NoDatabase
from grass.model.ids import CLUSTER_ID_BYTES
from grass.store.postgres.address import DatabaseAddress
from grass.store.postgres.connections import PostgresConnection, connect
from grass.store.postgres.failures import cannot_open, storage_error
from grass.store.postgres.sealing import BrokersKey, Sealing, sealing_of
from grass.store.sql.dialect import migrations

SCHEMA_VERSION = 2
_LOCK = 0x67726173
"""A number that nobody else who uses the database is likely to lock."""
_CLUSTER = "SELECT value FROM meta WHERE key = 'cluster'"
_VERSION = "SELECT value FROM meta WHERE key = 'schema'"


def migrate(db: PostgresConnection, address: DatabaseAddress) -> None:
    """Apply the steps that are missing, in one transaction; refuse a newer schema."""
    with _first_of_all(db, address):
        version = usable_version(db, address)
        if version < SCHEMA_VERSION:
            _refuse_replica(db, address)
            if version:
                # A broker of an older version may lead.
                db.execute("LOCK TABLE lead IN EXCLUSIVE MODE")
                db.execute("UPDATE lead SET epoch = epoch + 1")
            _apply(db, version)


def unlocked(
    db: PostgresConnection, address: DatabaseAddress, key: BrokersKey
) -> Sealing:
    """Return the sealing of environments in a database; refuse another key."""
    with _first_of_all(db, address):
        return sealing_of(db, key, address)


@contextlib.contextmanager
def _first_of_all(db: PostgresConnection, address: DatabaseAddress) -> Iterator[None]:
    """Do something in a transaction; others that would do the same wait for it."""
    try:
        db.execute("BEGIN")
        db.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        yield
        db.execute("COMMIT")
    except (psycopg.Error, OSError) as error:
        _roll_back(db)
        raise _failure(error, address) from None
    except GrassError:
        _roll_back(db)
        raise


def schema_version(db: PostgresConnection) -> int:
    """Return the version that a database has; 0: it has no tables of grass."""
    (known,) = db.execute("SELECT to_regclass('meta') IS NOT NULL").fetchone()
    if not known:
        return 0
    found = db.execute(_VERSION).fetchone()
    return 0 if found is None else int(found[0])


def cluster_of(address: DatabaseAddress) -> str | None:
    """Return the cluster whose queue a database has; None: it has none yet."""
    with contextlib.closing(connect(address)) as db:
        try:
            has_tables = usable_version(db, address) > 0
            known = db.execute(_CLUSTER).fetchone() if has_tables else None
        except (psycopg.Error, OSError) as error:
            raise _failure(error, address) from None
    return None if known is None else str(known[0])


def usable_version(db: PostgresConnection, address: DatabaseAddress) -> int:
    """Return the version; refuse a newer one, and a queue that is elsewhere by now."""
    version = schema_version(db)
    _refuse_newer(version, address)
    if version:
        _refuse_moved(db, address)
    return version


def _refuse_newer(version: int, address: DatabaseAddress) -> None:
    if version > SCHEMA_VERSION:
        raise NoDatabase(
            f"the database {address.shown} was written by a newer grass (schema"
            f" {version}, this one knows {SCHEMA_VERSION})",
            "install that version again",
        )


def _refuse_moved(db: PostgresConnection, address: DatabaseAddress) -> None:
    moved = db.execute("SELECT value FROM meta WHERE key = 'moved'").fetchone()
    if moved is not None:
        raise NoDatabase(
            f"the queue of the database {address.shown} was moved to {moved[0]}",
            "use an empty database, and drop this one",
        )


def _refuse_replica(db: PostgresConnection, address: DatabaseAddress) -> None:
    (is_replica,) = db.execute("SELECT pg_is_in_recovery()").fetchone()
    if is_replica:
        raise NoDatabase(
            f"the database {address.shown} is a replica, which cannot be written",
            "name the primary server",
        )


def _apply(db: PostgresConnection, version: int) -> None:
    for number, script in migrations("postgres"):
        if number > version:
            # Several statements at once: without parameters.
            db.session.execute(script)
    first = {"cluster": token_hex(CLUSTER_ID_BYTES), "last_job": "0", "paused": "0"}
    save = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO "
    for key, value in first.items():
        db.execute(f"{save} NOTHING", (key, value))
    updated = f"{save} UPDATE SET value = excluded.value"
    db.execute(updated, ("schema", str(SCHEMA_VERSION)))


def _failure(error: Exception, address: DatabaseAddress) -> GrassError:
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return cannot_open(error, address)
    return storage_error(error, address)


def _roll_back(db: PostgresConnection) -> None:
    if db.is_open and db.in_transaction:
        try:
            db.execute("ROLLBACK")
        except psycopg.Error:
            db.close()
