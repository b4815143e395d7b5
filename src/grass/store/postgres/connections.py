"""Connections to PostgreSQL: one that writes, and one for each thread that reads.

Each is opened when it is needed, and again after it was lost. A server that cannot
reach us, or that we left in the middle of a transaction, ends the session by itself:
what it had locked would keep others from taking the lead.
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg import RawCursor, RawServerCursor
from psycopg.types.numeric import Int8Dumper

from grass.errors import GrassError, NoDatabase
from grass.store.postgres.address import DatabaseAddress
from grass.store.postgres.failures import cannot_open, gone
from grass.store.sql.dialect import Cursor, Row

OLDEST = 13
"""The oldest PostgreSQL that statements are written for."""
CONNECT_S = 5
COPY_AT_LEAST = 200
"""From this many rows on they are copied into a table, which costs two statements."""
FETCHED = 2000
"""How many rows of a long result are fetched at a time."""
SESSION: dict[str, Any] = {
    "application_name": "grass",
    "connect_timeout": str(CONNECT_S),
    "keepalives_idle": "3",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "8000",
    "client_encoding": "UTF8",
}
_SETTINGS = """
SET idle_in_transaction_session_timeout TO {idle_s};
SET lock_timeout TO {lock_s};
SET tcp_keepalives_idle TO 3;
SET tcp_keepalives_interval TO 2;
SET tcp_keepalives_count TO 3;
SET tcp_user_timeout TO 4000;
"""
"""The server must notice soon that we are gone: it holds the lock of a commit that we
left unfinished, and nobody can take the lead meanwhile. Keepalives are not sent while
an answer of the server is not acknowledged, and a pipeline is never idle."""
_INSERT = re.compile(
    r"INSERT INTO (\w+) \(([^)]*)\)\s+VALUES \([?, ]*\)(.*)", re.DOTALL
)
_PARAMETER = re.compile(r"\?")
_PARTS = count(1)


class PostgresConnection:
    """A connection that takes statements with `?`, as those of SQLite are written."""

    def __init__(self, session: "psycopg.Connection[Row]") -> None:
        self.session = session
        self._long = False
        self._parts: list[_Parts] = []

    @property
    def is_open(self) -> bool:
        """Whether the session has not been lost."""
        return not self.session.closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        status = self.session.info.transaction_status
        return status is not psycopg.pq.TransactionStatus.IDLE

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        """Execute a statement."""
        text = _numbered(statement)
        if self._long and text.startswith("SELECT"):
            self._parts.append(_Parts(self.session, text, values))
            return self._parts[-1]
        found: Cursor = self.session.execute(text, values)
        return found

    def read_binary(self, statement: str, values: Sequence[Any]) -> list[Row]:
        """Read rows of bytes; as text they would take twice the room."""
        return self.session.execute(
            _numbered(statement), values, binary=True
        ).fetchall()

    def executemany(self, statement: str, rows: Iterable[Row], /) -> None:
        """Execute a statement for each of these rows, many of them by copying."""
        listed = list(rows)
        if not listed:
            return
        insert = _INSERT.match(statement) if len(listed) >= COPY_AT_LEAST else None
        if insert is not None and not self.is_pipelined:
            table, columns, rest = insert.groups()
            self._copy(table, columns, rest, listed)
        elif len(listed) == 1:
            self.execute(statement, listed[0])
        else:
            with self.session.cursor() as cursor:
                cursor.executemany(_numbered(statement), listed)

    @property
    def is_pipelined(self) -> bool:
        """Whether statements are sent without waiting for results."""
        return self.session.info.pipeline_status is not psycopg.pq.PipelineStatus.OFF

    def fetch_in_parts(self) -> None:
        """Have long results fetched in parts from now on, inside of a transaction."""
        self._long = True

    def _copy(self, table: str, columns: str, rest: str, rows: list[Row]) -> None:
        """Copy rows into a table of this session, and insert them from there."""
        draft = f"incoming_{table}"
        self.session.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS {draft} ON COMMIT DELETE ROWS"  # noqa: S608
            f" AS SELECT {columns} FROM {table} WITH NO DATA"
        )
        into = f"COPY {draft} ({columns}) FROM STDIN"
        with self.session.cursor() as cursor, cursor.copy(into) as copy:
            for row in rows:
                copy.write_row(row)
        chosen = f"SELECT {columns} FROM {draft}"  # noqa: S608 -- names of ours
        insert = f"INSERT INTO {table} ({columns}) {chosen} {rest}"
        self.session.execute(insert)
        self.session.execute(f"TRUNCATE {draft}")

    def close(self) -> None:
        """Close the session; may be called twice."""
        for one in self._parts:
            # A reader that failed has left it open, and maybe the session is lost.
            with suppress(psycopg.Error):
                one.close()
        self.session.close()


class _Parts:
    """The rows of a statement, fetched some at a time inside of a transaction."""

    rowcount = -1

    def __init__(
        self, session: "psycopg.Connection[Row]", text: str, values: Sequence[Any]
    ) -> None:
        self._cursor = RawServerCursor(session, f"parts_{next(_PARTS)}")
        self._cursor.execute(text, values)
        self._rows = self._fetched()

    def _fetched(self) -> Iterator[Row]:
        while some := self._cursor.fetchmany(FETCHED):
            yield from some
            if len(some) < FETCHED:
                break
        self.close()

    def __iter__(self) -> Iterator[Row]:
        """Yield all rows that are left."""
        return self._rows

    def fetchone(self) -> Row | None:
        """Return the first row that is left, and drop the others."""
        found = next(self._rows, None)
        self.close()
        return found

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""
        return list(self._rows)

    def close(self) -> None:
        """Drop the rows that were not read."""
        self._cursor.close()


@lru_cache(maxsize=1024)
def _numbered(statement: str) -> str:
    """Return a statement with `$1` for its first `?`, and so on."""
    numbers = count(1)
    return _PARAMETER.sub(lambda _: f"${next(numbers)}", statement)


def connect(
    address: DatabaseAddress, *, idle_s: float = 0.0, lock_s: float = 0.0
) -> PostgresConnection:
    """Open a connection, and check that grass can use this server.

    A transaction that does nothing for `idle_s` is ended, and so is a statement that
    waits for others for `lock_s`; 0: never.
    """
    try:
        session = psycopg.connect(
            address.url,
            autocommit=True,
            cursor_factory=RawCursor,
            **SESSION,
        )
    except (psycopg.Error, OSError, UnicodeError) as error:
        raise cannot_open(error, address) from None
    try:
        _check_version(session, address)
        session.adapters.register_dumper(int, Int8Dumper)
        session.prepared_max = 400
        settings = _SETTINGS.format(idle_s=int(idle_s * 1e3), lock_s=int(lock_s * 1e3))
        session.execute(settings)
        _check_encoding(session, address)
        if session.execute("SHOW synchronous_commit").fetchone() == ("off",):
            session.execute("SET synchronous_commit TO on")
    except (psycopg.Error, OSError) as error:
        session.close()
        raise cannot_open(error, address) from None
    except GrassError:
        session.close()
        raise
    return PostgresConnection(session)


def _check_version(
    session: "psycopg.Connection[Any]", address: DatabaseAddress
) -> None:
    """Refuse a server that is too old, before it is told what it does not know."""
    version = session.info.server_version // 10_000
    if version < OLDEST:
        raise NoDatabase(
            f"the database {address.shown} is PostgreSQL {version}; grass needs"
            f" {OLDEST} or later",
            "upgrade the server",
        )


def _check_encoding(
    session: "psycopg.Connection[Any]", address: DatabaseAddress
) -> None:
    (encoding,) = session.execute("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise NoDatabase(
            f"the database {address.shown} has the encoding {encoding}, not UTF8",
            "create it with `createdb --encoding UTF8 --template template0 NAME`",
        )


class ThreadConnections:
    """One connection for each thread that asks for one, as long as it runs."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._local = threading.local()
        self._all: list[tuple[threading.Thread, PostgresConnection]] = []
        self._lock = threading.Lock()
        self._found = False
        """Whether the database was found before."""

    def of_thread(self) -> PostgresConnection:
        """Return the connection of this thread, opened again if it was lost."""
        known: PostgresConnection | None = getattr(self._local, "connection", None)
        if known is not None and known.is_open:
            return known
        self.release()
        try:
            made = connect(self._address)
        except NoDatabase as error:
            raise (gone(error, self._address) if self._found else error) from None
        self._local.connection, self._found = made, True
        with self._lock:
            self._all.append((threading.current_thread(), made))
        self._close_where(lambda thread, _: not thread.is_alive())
        return made

    def release(self) -> None:
        """Close the connection of this thread, if it has one."""
        known: PostgresConnection | None = getattr(self._local, "connection", None)
        if known is not None:
            del self._local.connection
            self._close_where(lambda _, one: one is known)

    def close(self) -> None:
        """Close all."""
        self._close_where(lambda _thread, _one: True)

    def _close_where(
        self, chosen: Callable[[threading.Thread, PostgresConnection], bool]
    ) -> None:
        with self._lock:
            closing = [pair for pair in self._all if chosen(*pair)]
            self._all = [pair for pair in self._all if pair not in closing]
        for _, one in closing:
            one.close()
