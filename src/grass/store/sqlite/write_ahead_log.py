"""The write-ahead log: how long it is, and copying it into the database.

SQLite would copy it by itself after a commit, and keep to itself that a sync failed
there: the next commit would just try again. So the connection that writes does it by
hand, where an error is seen.

How long the log is, SQLite does not say without copying it. Its file tells: it begins
with two random numbers that every frame repeats, and that change when SQLite starts it
anew from the front. The format is documented and stays as it is.
"""

import os
import sqlite3
from pathlib import Path

LOG_PAGES = 1_000
"""After so many the log is copied, and then started anew."""
LOG_BYTES = (LOG_PAGES + 100) * 4096
"""A little more than that: what is committed with the last of them fits in, too."""

_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_SALT_BYTES, _SALT_IN_HEADER, _SALT_IN_FRAME = 8, 16, 8


class Log:
    """The log of one database, as the connection that writes sees it."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        (page,) = db.execute("PRAGMA page_size").fetchone()
        last = _HEADER_BYTES + (LOG_PAGES - 1) * (_FRAME_HEADER_BYTES + page)
        self._last_salt = last + _SALT_IN_FRAME
        # No lock of SQLite's is on this file: it may be closed before the others.
        self._file = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def is_long(self) -> bool:
        """Tell whether it is time to copy it."""
        salt = os.pread(self._file, _SALT_BYTES, _SALT_IN_HEADER)
        return len(salt) == _SALT_BYTES and salt == self._salt_of_last()

    def _salt_of_last(self) -> bytes:
        return os.pread(self._file, _SALT_BYTES, self._last_salt)

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def copy_log(db: sqlite3.Connection) -> None:
    """Copy what is in the log into the database, as far as no reader is in the way."""
    try:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        # With a full disk the log goes on for as long as it has room.
        if error.sqlite_errorname != "SQLITE_FULL":
            raise
