"""What the failures of a PostgreSQL database mean to a user."""

import os
import stat

import psycopg
from psycopg import errors

from grass.errors import DiskFull, NoDatabase, StorageError
from grass.store.bodies import CorruptRow
from grass.store.postgres.address import DatabaseAddress

FAILURES = (psycopg.Error, OSError, UnicodeError, OverflowError, CorruptRow)
"""Binding a value that the database cannot hold raises the third or the fourth."""
_AGAIN = "a daemon that runs tries it again by itself"
_NOT_THERE = "is the server running, and does the URL name it?"
_FOR_PASSWORDS = (
    "put the password into ~/.pgpass, or into the file that PGPASSFILE names"
)
_FOR_SERVICES = "services are looked for in ~/.pg_service.conf, or PGSERVICEFILE"
_HINTS = (
    ("password", _FOR_PASSWORDS),
    ("authentication", _FOR_PASSWORDS),
    ("definition of service", _FOR_SERVICES),
    ("service file", _FOR_SERVICES),
    ("pg_hba.conf", "the server's pg_hba.conf must let this host and user in"),
    ("SSL", "`?sslmode=` in the URL says whether the connection is to be encrypted"),
    ("does not exist", "create it: `createdb NAME`, `createuser NAME`"),
)
"""The next step, by a word of what the server or the driver says."""
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
        return NoDatabase(f"{where} does not answer: {said}", _AGAIN)
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
    hint = _hint(said)
    problem = NoDatabase(f"the database {address.shown} cannot be opened: {said}", hint)
    problem.may_return = hint == _NOT_THERE
    return problem


def gone(error: NoDatabase, address: DatabaseAddress) -> NoDatabase:
    """Return the error for a database that was open before, and is not found again."""
    said = error.message.partition(" cannot be opened: ")[2] or error.message
    where = f"the database {address.shown}"
    return NoDatabase(f"{where} does not answer: {said}", _AGAIN)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _hint(said: str) -> str:
    if "no password supplied" in said and _is_ignored(passwords := _password_file()):
        return f"`chmod 600 {passwords}`: it is not used while others may read it"
    for word, hint in _HINTS:
        if word in said:
            return hint
    return _NOT_THERE


def _password_file() -> str:
    return os.environ.get("PGPASSFILE") or os.path.expanduser("~/.pgpass")


def _is_ignored(path: str) -> bool:
    """Tell whether the driver does not use a file of passwords, for its mode."""
    try:
        return bool(stat.S_IMODE(os.stat(path).st_mode) & 0o077)
    except OSError:
        return False
