"""Detects a home whose database was lost, as opposed to a new home.

SQLite would silently make a new database, and delete a write-ahead log that may still
hold committed data. So each home has the id of its cluster in a file beside the
database. A missing database is not made anew where that file or such a log exists.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

from grass.client.private_files import read_file, replace_private
from grass.config import Home
from grass.errors import GrassError, Refused
from grass.store.sqlite.database_file import open_reader
from grass.store.sqlite.dialect import SqliteDialect

MOVED = ".moved"
"""What is added to the name of a database that is in PostgreSQL by now."""
_LEFTOVERS = ("-wal", "-shm")


def refuse_lost_database(home: Home) -> None:
    """Raise if this home had a database that is missing now."""
    if not is_lost(home):
        return
    how = "is empty" if os.path.exists(home.database) else "is gone"
    known = written_cluster(home)
    whose = f" of cluster {known}" if known else ""
    raise Refused(f"the database{whose} {home.database} {how}", _remedy(home))


def refuse_other_database(home: Home) -> None:
    """Raise if the file is not the one that this home had, but that of another home."""
    known, cluster = written_cluster(home), own_cluster(home)
    if None not in (known, cluster) and known != cluster:
        raise Refused(
            f"{home.database} has the queue of cluster {cluster}, and this home had"
            f" that of {known}",
            f"put its own database back, or remove {home.cluster} to use this one",
        )


def _remedy(home: Home) -> str:
    moved = home.database + MOVED
    if os.path.exists(moved):
        return (
            f"{moved} was moved to PostgreSQL: `grass start --store URL` uses it there"
        )
    return (
        "restore it from a backup, or `grass start --new-database` begins without the"
        " jobs that it had"
    )


def is_lost(home: Home) -> bool:
    """Return whether this home had a database that is missing now."""
    if _size(home.database):
        return False
    return bool(written_cluster(home)) or bool(_size(home.database + "-wal"))


def begin_anew(home: Home) -> None:
    """Let the next start make a database; leftovers of the last one are renamed."""
    if not is_lost(home):
        raise Refused(
            f"the database {home.database} is not lost",
            "move it away first, if you do not want it any more",
        )
    for end in _LEFTOVERS:
        with contextlib.suppress(FileNotFoundError):
            os.rename(home.database + end, f"{home.database}{end}.old")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(home.cluster)


def write_cluster(home: Home, cluster: str) -> None:
    """Write the cluster's id beside the database, if the disk has room."""
    if written_cluster(home) != cluster:
        with contextlib.suppress(GrassError):
            replace_private(home.cluster, cluster + "\n")


def written_cluster(home: Home) -> str | None:
    """Return the cluster of the database, also of a lost one; None: unknown."""
    remedy = "remove it: the next start takes the id from the database"
    return read_file(home.cluster, _parsed_cluster, remedy) or None


def _parsed_cluster(data: bytes) -> str:
    text = data.decode("ascii").strip()
    if text and not text.isalnum():
        raise ValueError("this is no id")
    return text


def own_cluster(home: Home) -> str | None:
    """Return the cluster of this home's own queue; None: it never had one."""
    try:
        return cluster_of(Path(home.database))
    except sqlite3.Error:
        # SQLite cannot open it on a full disk.
        return written_cluster(home)


def cluster_of(path: Path) -> str | None:
    """Return the cluster of a database; None: it has none yet."""
    with contextlib.closing(open_reader(path)) as db:
        meta: dict[str, str] = dict(db.execute(SqliteDialect()["load_meta"]))
    return meta.get("cluster")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
