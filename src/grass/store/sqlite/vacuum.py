"""Releasing pages of the database file that forgotten jobs have left free.

SQLite keeps free pages for later rows. With `auto_vacuum=INCREMENTAL` they can be
released a few at a time. That setting belongs to a file from its first table on; a file
without it is rewritten once, when it is opened, if little is in it.
"""

import sqlite3

STEP_PAGES = 64
"""How many are released at a time: some milliseconds in which no commit can begin."""
KEPT_PAGES = 1024
"""How many stay free for later rows."""
MOST_REWRITTEN_PAGES = 16 * 1024
"""With more in use a file is not rewritten: that would take seconds."""


def prepare(db: sqlite3.Connection) -> None:
    """Turn the setting on for a new file; one with tables stays as it is."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")


def rewrite(db: sqlite3.Connection) -> None:
    """Rewrite a file without the setting, if that is quickly done."""
    incremental = 2
    if _number(db, "auto_vacuum") == incremental:
        return
    if _number(db, "page_count") - free_pages(db) <= MOST_REWRITTEN_PAGES:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def release_pages(db: sqlite3.Connection) -> bool:
    """Release some pages; return whether there are more."""
    before = free_pages(db)
    if before <= KEPT_PAGES:
        return False
    # A script, because `execute` stops such a statement after its first page.
    db.executescript(f"PRAGMA incremental_vacuum({STEP_PAGES})")
    return free_pages(db) < before


def free_pages(db: sqlite3.Connection) -> int:
    """Count the pages of the file that are not in use."""
    return _number(db, "freelist_count")


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])
