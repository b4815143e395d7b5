"""A note beside the database: how the last process that had it open left it.

`open`: that process runs, or was killed. Committed data may then be in the write-ahead
log alone, and SQLite would open the database without it and lose that in silence.
`damaged`: SQLite has reported damage, which the next process may come across late, or
never. Without a note the database was closed, and its log copied.

`open` names the file as the last checkpoint has left it. It does not concern another
file in its place, nor one that a program has copied the log into.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

from grass.errors import StorageError

OPEN, DAMAGED = "open", "damaged"


class DatabaseNote:
    """The note of one database."""

    def __init__(self, path: Path) -> None:
        self._database = path
        self._path = f"{path}-note"

    def check_log(self) -> None:
        """Raise if the log is gone without which the database is not complete."""
        log = f"{self._database}-wal"
        has_log = os.path.exists(log) and os.path.getsize(log) > 0
        if has_log or self._read() != (OPEN, self._name()):
            return
        raise StorageError(
            f"{log} is gone, and jobs that were only there with it",
            "put it back, or restore a backup with `grass restore FILE`; to go on"
            f" without what it had, remove {self._path}",
        )

    def damage(self, db: sqlite3.Connection) -> str | None:
        """Return what SQLite finds wrong in a database that was left damaged."""
        if self._read()[0] != DAMAGED:
            return None
        (problem,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        return None if problem == "ok" else str(problem)

    def write(self, state: str) -> None:
        """Note the state of the database; to overwrite a note needs no room."""
        with contextlib.suppress(OSError):
            text = f"{state} {self._name()}\n".encode("ascii")
            note = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                # The old note is there until the new one is, which one write makes.
                os.ftruncate(note, os.pwrite(note, text, 0))
            finally:
                os.close(note)

    def remove(self, state: str) -> None:
        """Remove a note of this state."""
        if self._read()[0] == state:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def _read(self) -> tuple[str, str]:
        """Return the state that was noted, and of which file."""
        text = ""
        with contextlib.suppress(OSError):
            text = Path(self._path).read_text(encoding="ascii", errors="replace")
        # After a crash the end of a longer note may follow.
        state, _, name = text.partition("\n")[0].partition(" ")
        return state, name

    def _name(self) -> str:
        try:
            file = os.stat(self._database)
        except OSError:
            return "none"
        return f"{file.st_ino} {file.st_mtime_ns}"
