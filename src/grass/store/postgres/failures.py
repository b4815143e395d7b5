"""What the failures of a PostgreSQL database mean to a user."""

import psycopg
from psycopg import errors

from grass.errors import DiskFull, NoDatabase, StorageError
from grass.store.bodies import CorruptRow
from grass.store.postgres.address import DatabaseAddress

FAILURES = (psycopg.Error, OSError, UnicodeError, OverflowError, CorruptRow)
"""Binding a value that the database cannot hold raises the third or the fourth."""
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, OSError)


def storage_error(error: Exception, address: DatabaseAddress) -> StorageError:
    """Return the error of the database as one line with a hint."""
    where = f"the database {address.shown}"
    if isinstance(error, errors.DiskFull):
        return DiskFull(
            f"the disk of {where} is full; nothing was changed",
            "free some space, for example with `grass prune`, and try again",
        )
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StorageError(
            f"{where} is read-only; nothing was changed",
            "a replica cannot be written: name the primary server",
        )
    said = _one_line(error)
    if is_away(error):
        return NoDatabase(f"{where} does not answer: {said}", "it is tried again")
    return StorageError(f"{where} failed: {said}", "see the daemon's log")


def is_away(error: Exception) -> bool:
    """Tell whether the connection is lost, or the server stops or starts."""
    if isinstance(
        error, errors.DiskFull | errors.QueryCanceled | errors.LockNotAvailable
    ):
        return False
    state = getattr(error, "sqlstate", None)
    if isinstance(error, psycopg.Error) and state is not None:
        return str(state).startswith(("08", "57P", "25P03"))
    return isinstance(error, _AWAY)


def cannot_open(error: Exception, address: DatabaseAddress) -> NoDatabase:
    """Return the error for a database that cannot be opened at all."""
    said = _one_line(error)
    said = said.removeprefix("connection failed: ")
    return NoDatabase(
        f"the database {address.shown} cannot be opened: {said}", _hint(said)
    )


def gone(error: NoDatabase, address: DatabaseAddress) -> NoDatabase:
    """Return the error for a database that was open before, and is not found again."""
    said = error.message.partition(" cannot be opened: ")[2] or error.message
    where = f"the database {address.shown}"
    return NoDatabase(f"{where} does not answer: {said}", "it is tried again")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _hint(said: str) -> str:
    if "password" in said or "authentication" in said:
        return "put the password into ~/.pgpass, or into the file that PGPASSFILE names"
    if "does not exist" in said:
        return "create it: `createdb NAME`, `createuser NAME`"
    return "is the server running, and does the URL name it?"
