"""A home whose database is gone: told from a home that never had one.

SQLite would make a new one without a word, and delete a log that may still hold what
was committed. So each home notes the id of its cluster beside the database, and without
a database none is made where there is that note, or such a log.
"""

import contextlib
import os

from grass.client.private_files import replace_private
from grass.config import Home
from grass.errors import GrassError, Refused

_LEFT = ("-wal", "-shm")


def refuse_lost_database(home: Home) -> None:
    """Refuse to begin anew where there has been a database."""
    if not is_lost(home):
        return
    how = "is empty" if os.path.exists(home.database) else "is gone"
    known = noted_cluster(home)
    whose = f" of cluster {known}" if known else ""
    raise Refused(
        f"the database{whose} {home.database} {how}",
        "restore it from a backup, or `grass start --new-database` begins without the"
        " jobs that it had",
    )


def is_lost(home: Home) -> bool:
    """Tell whether this home had a database that is not there any more."""
    if _size(home.database):
        return False
    return bool(noted_cluster(home)) or bool(_size(home.database + "-wal"))


def begin_anew(home: Home) -> None:
    """Have the next start make a database; what is left of the last one is kept."""
    if not is_lost(home):
        raise Refused(
            f"the database {home.database} is not lost",
            "move it away first, if you do not want it any more",
        )
    for end in _LEFT:
        with contextlib.suppress(FileNotFoundError):
            os.rename(home.database + end, f"{home.database}{end}.old")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(home.cluster)


def note_cluster(home: Home, cluster: str) -> None:
    """Note that there is a database, if the disk has room for that."""
    if noted_cluster(home) != cluster:
        with contextlib.suppress(GrassError):
            replace_private(home.cluster, cluster + "\n")


def noted_cluster(home: Home) -> str | None:
    """Tell of which cluster the database here is or was; None: that is not known."""
    try:
        with open(home.cluster, encoding="ascii", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
