"""The write-ahead log: how long it may become, and copying it into the database.

SQLite would copy it by itself after a commit and ignore a sync that failed there: the
next commit would just try again. So the connection that writes copies it with
`PRAGMA wal_checkpoint`, which raises.

SQLite reuses the log's file from the front once all of it was copied. The file has
`LOG_BYTES` from the start, so it is longer only while the log in it is. Then the log is
copied, and with the next commit `journal_size_limit` truncates the file again.
"""

import os
import sqlite3
from pathlib import Path

PAGE_BYTES = 4096
FRAME_BYTES = PAGE_BYTES + 24
LOG_BYTES = 1_100 * FRAME_BYTES
"""A log that is longer is copied before the next commit."""

_NEAR_BYTES = 16 * FRAME_BYTES
"""The size is approached from below: SQLite adds a few pages to the content."""


class WriteAheadLog:
    """The log of one database, as the connection that writes sees it."""

    def __init__(self, path: Path) -> None:
        # SQLite has no lock on this file: it may be closed before the others.
        self._file = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def is_long(self) -> bool:
        """Whether it is time to copy it."""
        return os.fstat(self._file).st_size > LOG_BYTES

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def fill_log_file(db: sqlite3.Connection) -> None:
    """Give the log's file its full size by a transaction that is rolled back.

    While a file grows, every sync has to write its new size as well, which takes twice
    as long.
    """
    db.execute("BEGIN IMMEDIATE")
    db.execute("CREATE TABLE filler (content BLOB)")
    db.execute("INSERT INTO filler VALUES (zeroblob(?))", (LOG_BYTES - _NEAR_BYTES,))
    db.execute("ROLLBACK")


def checkpoint(db: sqlite3.Connection) -> bool:
    """Copy the log into the database, as far as readers do not need the old pages.

    Returns whether all of it was copied.
    """
    try:
        _, pages, copied = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.OperationalError as error:
        # On a full disk commits go on as long as the log has blocks.
        if error.sqlite_errorname != "SQLITE_FULL":
            raise
        return False
    return bool(pages == copied)


def limit_log_file(db: sqlite3.Connection, limit: int | None) -> None:
    """Choose to how many bytes SQLite truncates the file; None: it does not."""
    db.execute(f"PRAGMA journal_size_limit = {-1 if limit is None else limit}")
