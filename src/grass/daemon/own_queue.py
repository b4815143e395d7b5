"""This machine's own queue, while the daemon works for another's.

The database stays where it is, and its jobs under the keeper go on. Here it is only
looked at, whether a daemon has it open or not.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from grass.config import Home
from grass.daemon.lost_database import noted_cluster
from grass.store.sqlite.database_file import opened_for_reading
from grass.store.sqlite.statements import statements


def own_cluster(home: Home) -> str | None:
    """Tell by which cluster its jobs are known; None: there has been no queue here."""
    try:
        with closing(opened_for_reading(Path(home.database))) as db:
            told = dict(db.execute(statements("sqlite")["load_meta"]))
    except sqlite3.Error:
        # On a full disk it cannot be opened beside the daemon.
        return noted_cluster(home)
    return told.get("cluster")
