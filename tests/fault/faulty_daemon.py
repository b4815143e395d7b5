"""A real daemon whose disk fails when the test says so.

`python -m tests.fault.faulty_daemon HOME` serves in the foreground. While the file
`HOME/fault` exists, the next commit fails with the error of SQLite that it names; the
file is taken away, so that it fails once. `before` in it: nothing is on the disk;
`after`: all of it is, and yet the commit failed.
"""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import grass.daemon.database.open_store
import grass.daemon.run_daemon
from grass.config import Home
from grass.daemon.hosting import Hosting
from grass.store.sqlite.sqlite_store import SqliteStore


class FailingConnection:
    """A connection of SQLite that may fail to commit."""

    def __init__(self, db: sqlite3.Connection, fault: Path) -> None:
        self._db = db
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement != "COMMIT" or not self._fault.exists():
            return self._db.execute(statement, *values)
        name, when = self._fault.read_text().split()
        self._fault.unlink()
        if when == "after":
            self._db.execute("COMMIT")
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = name
        raise error


class FaultyStore(SqliteStore):
    """The store that ships, on a connection that may fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        failing: Any = FailingConnection(self._writer, path.with_name("fault"))
        self._writer = failing


def main(folder: str) -> int:
    """Serve like `grass daemon`."""

    def store(home: Home) -> SqliteStore:
        return FaultyStore(Path(home.database))

    grass.daemon.database.open_store._in_file = store
    home = Home(folder)
    return grass.daemon.run_daemon.run_daemon(
        home, Hosting(), ready=None, foreground=True
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
