"""All rows of a store, copied to another one and compared, table by table.

What SQLite has as columns, any database of ours has under the same names. Rows are read
and compared in the order of their keys, which is that of bytes in every database.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from grass.store.sql.dialect import Connection, Row

CHUNK = 5000
"""How many rows are read and written at a time."""

KEYS = {
    "meta": "key",
    "envs": "id",
    "specs": "id",
    "queues": "name",
    "workers": "id",
    "views": "queue, worker",
    "jobs": "id",
    "attempts": "job, number",
    "arrivals": "first_job",
    "arrays": "first_job",
    "array_spans": "first_job",
    "job_counts": 'state, "array", queue, project, owner',
    "events": "seq",
    "calls": "key",
    "tokens": "name",
    "pools": "name",
    "pilots": "mark",
    "profiles": "job_type, model",
    "removals": "id",
    "held_sums": "ended_in, began_in, owner, project, worker, allocation",
    "spec_blobs": "spec",
    "job_blobs": "job",
}
"""Every table that is copied, in an order in which rows may refer to earlier ones."""
OWN_META = ("schema", "moved", "sealed_with", "home_worker")
"""What each database says of itself."""
ENVS = "envs"
OpenRow = Callable[[Row], Row]
"""Makes a row readable, as by opening what is encrypted in it."""
_encode = msgspec.json.Encoder().encode


class Digest(msgspec.Struct, frozen=True):
    """How many rows a table has, and the hash of all of them."""

    rows: int
    sha256: str


def _as_it_is(row: Row) -> Row:
    return row


def read_rows(
    db: Connection, table: str, columns: list[str], opened: OpenRow = _as_it_is
) -> Iterator[Row]:
    """Yield the rows of a table, in the order of its key, environments opened."""
    named = ", ".join(f'"{name}"' for name in columns)
    chosen = f"SELECT {named} FROM {table} ORDER BY {KEYS[table]}"  # noqa: S608 -- ours
    for row in db.execute(chosen):
        if table != "meta" or row[columns.index("key")] not in OWN_META:
            yield opened(row) if table == ENVS else row


def write_rows(
    db: Connection, table: str, columns: list[str], rows: Iterable[Row]
) -> None:
    """Insert rows into a table, inside of a transaction."""
    named = ", ".join(f'"{name}"' for name in columns)
    holes = ", ".join("?" for _ in columns)
    insert = f"INSERT INTO {table} ({named}) VALUES ({holes})"  # noqa: S608 -- ours
    left = iter(rows)
    shell = columns.index("shell") if "shell" in columns else None
    while some := list(islice(left, CHUNK)):
        if shell is not None:
            # SQLite has 0 and 1 for what PostgreSQL calls false and true.
            some = [(*r[:shell], bool(r[shell]), *r[shell + 1 :]) for r in some]
        db.executemany(insert, some)


def digest(
    db: Connection, table: str, columns: list[str], opened: OpenRow = _as_it_is
) -> Digest:
    """Return what identifies all rows of a table, environments opened."""
    known, count = hashlib.sha256(), 0
    for row in read_rows(db, table, columns, opened):
        known.update(_encode([_plain(value) for value in row]))
        count += 1
    return Digest(count, known.hexdigest())


def _plain(value: object) -> object:
    return int(value) if isinstance(value, bool) else value
