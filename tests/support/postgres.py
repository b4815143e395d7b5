"""A PostgreSQL server for one run of the tests, and a database for each test.

The processes of a run share the server: the first that needs it starts it, and the last
that leaves stops it. It syncs nothing, and is reached by a socket in its folder. Where
tests run as root it belongs to another user, as it refuses to run as root.
"""

import contextlib
import fcntl
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import psycopg

from grass.store.postgres.address import address_of
from grass.store.postgres.connections import connect
from grass.store.postgres.migrating import SCHEMA_VERSION, migrate

SETTINGS = (
    "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=200"
    " -c shared_buffers=32MB -c autovacuum_naptime=5s"
)
TEMPLATE = "grass_template"
PORT = 5432
"""Part of the name of its socket; nothing listens on it."""
_JSON_EXTRACT = """CREATE FUNCTION json_extract(text, text) RETURNS jsonb AS
$$ SELECT jsonb_path_query_first($1::jsonb, $2::jsonpath) $$ LANGUAGE sql"""
"""As SQLite has it, for questions of tests."""
_USERS = ("postgres", "nobody")
_FOLDER = "grass-postgres-"
_NEW_S = 60.0
"""How long a run may take from making its folder to locking it."""
_numbers = itertools.count(1)


def missing_program() -> str | None:
    """Tell which program is missing; None: a server can be started."""
    return None if _program("initdb") else "initdb"


def _program(name: str) -> str | None:
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    return shutil.which(name, path=":".join((*folders, os.environ.get("PATH", ""))))


class PostgresServer:
    """A server with its data in a folder."""

    def __init__(
        self, folder: Path, settings: str = SETTINGS, within: Sequence[str] = ()
    ) -> None:
        """`within` are words that root runs its programs with, on another host."""
        self.folder = folder
        self._within = tuple(within)
        self._settings = f"{settings} -c unix_socket_directories={folder}"

    def create(self) -> None:
        """Make the data, which a user owns who is not root."""
        self.folder.mkdir(mode=0o755)
        if "user" in (as_user := _as_user()):
            os.chown(self.folder, as_user["user"], -1)
        self._run(
            "initdb", "-U", "grass", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"
        )

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        log = str(self.folder / "log")
        self._run("pg_ctl", "-w", "-l", log, "-o", self._settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; all of its processes are gone when this returns."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        """Remove its data."""
        shutil.rmtree(self.folder)

    @property
    def pid(self) -> int:
        """The server's first process."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def url(self, database: str) -> str:
        """Return how a database is reached."""
        return f"postgresql://grass@/{database}?host={self.folder}&port={PORT}"

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Execute a statement outside of any transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as db:
            found = db.execute(statement)
            return found.fetchall() if found.description else []

    def make_template(self) -> None:
        """Make the database that those of tests are copied from."""
        self.execute(f"CREATE DATABASE {TEMPLATE}")
        address = address_of(self.url(TEMPLATE))
        with contextlib.closing(connect(address)) as db:
            migrate(db, address)
            db.execute(_JSON_EXTRACT)

    def new_database(self) -> str:
        """Make a database for one test, and return its URL."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        update = f"UPDATE meta SET value = '{token_hex(8)}' WHERE key = 'cluster'"
        self.execute(update, name)
        return self.url(name)

    def clear(self, url: str) -> None:
        """Make a database as it was at first, whoever uses it."""
        name = urlsplit(url).path.removeprefix("/")
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
            f" '{name}'"
        )
        with psycopg.connect(url, autocommit=True) as db:
            named = ", ".join(row[0] for row in db.execute(tables))
            db.execute(
                f"BEGIN; TRUNCATE {named} RESTART IDENTITY;"
                f" INSERT INTO meta VALUES ('schema', '{SCHEMA_VERSION}'),"
                f" ('cluster', '{token_hex(8)}'), ('last_job', '0'), ('paused', '0');"
                " INSERT INTO journal (last) VALUES (0); INSERT INTO lead"
                " (epoch, holder, address, taken_at, ends_at)"
                " VALUES (0, '', '', to_timestamp(0), to_timestamp(0)); COMMIT"
            )

    def drop(self, url: str) -> None:
        """Remove a database, whoever uses it."""
        name = urlsplit(url).path.removeprefix("/")
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _run(self, program: str, *words: str) -> None:
        found = _program(program)
        assert found is not None
        command = (found, "-D", str(self.folder / "data"), *words)
        how = _as_user()
        if self._within:
            ids = f"--reuid={how.pop('user')}", f"--regid={how.pop('group')}"
            drop = ("setpriv", *ids, "--clear-groups")
            del how["extra_groups"]
            command = (*self._within, *drop, *command)
        # The server must not keep pipes of the tests open.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                command, stdout=said, stderr=said, cwd="/", check=False, **how
            )
            said.seek(0)
            assert done.returncode == 0, said.read().decode()


def everything(url: str) -> str:
    """Return every column of every row of every table of a database as text."""
    with psycopg.connect(url) as db:
        tables = db.execute(
            "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name)"
            " FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            " AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert len(tables) > 20
        rows: list[Any] = []
        for (table,) in tables:
            named = f"SELECT t.*, t::text FROM {table} AS t"
            rows += db.execute(named.encode()).fetchall()
        return repr(rows)


def _as_user() -> dict[str, Any]:
    if os.geteuid():
        return {}
    for name in _USERS:
        with contextlib.suppress(KeyError):
            known = pwd.getpwnam(name)
            ids = {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}
            return {**ids, "umask": 0o077}
    raise AssertionError("no user but root")


class _Sharing:
    """The part of this process in the server that the processes of a run share."""

    server: PostgresServer | None = None
    leaving = contextlib.ExitStack()


def shared_server() -> PostgresServer:
    """Return the server of this run of tests, which the first that asks starts."""
    if _Sharing.server is None:
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        folder = Path(tempfile.gettempdir())
        remove_leftovers(folder)
        joined = _joined(folder / f"{_FOLDER}{run}")
        _Sharing.server = _Sharing.leaving.enter_context(joined)
    return _Sharing.server


def leave_shared_server() -> None:
    """Stop the server of this run, if nobody else uses it any more."""
    _Sharing.server = None
    _Sharing.leaving.close()


def remove_leftovers(folder: Path) -> None:
    """Stop and remove the servers of runs that were killed."""
    for root in folder.glob(f"{_FOLDER}*"):
        _remove_if_left(root)


def _remove_if_left(root: Path) -> None:
    """Stop and remove a server that no run uses.

    A run that has just made its folder may not have locked anything yet.
    """
    with contextlib.suppress(OSError):
        if time.time() - root.stat().st_mtime < _NEW_S:
            return
        with (root / "starting").open() as starting, (root / "users").open() as users:
            fcntl.flock(starting, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            server = PostgresServer(root / "server")
            with contextlib.suppress(AssertionError):
                server.stop()
            shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def _joined(root: Path) -> Iterator[PostgresServer]:
    root.mkdir(exist_ok=True)
    root.chmod(0o755)
    server = PostgresServer(root / "server")
    with (root / "users").open("w") as users, (root / "starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not server.folder.exists():
            server.create()
            server.start()
            server.make_template()
        fcntl.flock(starting, fcntl.LOCK_UN)
        try:
            yield server
        finally:
            fcntl.flock(starting, fcntl.LOCK_EX)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                server.stop()
                shutil.rmtree(root)
