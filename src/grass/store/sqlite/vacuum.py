"""Giving room back to the disk that forgotten jobs have left in the database file.

SQLite keeps free pages for what comes next. With `auto_vacuum=INCREMENTAL` they can be
given back a few at a time. That setting belongs to a file from its first table on; a
file without it is written anew once, when it is opened, if little is in it.
"""

import sqlite3

STEP_PAGES = 64
"""So many are given back at a time: some milliseconds in which no commit can begin."""
KEPT_PAGES = 1024
"""So many stay free for what comes next."""
MOST_REWRITTEN_PAGES = 16 * 1024
"""With more in use a file is not written anew: that would take seconds."""


def prepare(db: sqlite3.Connection) -> None:
    """Let a file give room back if it is new; one with tables stays as it is."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")


def rewrite(db: sqlite3.Connection) -> None:
    """Write a file anew that cannot give room back, if that is quickly done."""
    incremental = 2
    if _number(db, "auto_vacuum") == incremental:
        return
    if _number(db, "page_count") - free_pages(db) <= MOST_REWRITTEN_PAGES:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def release_pages(db: sqlite3.Connection) -> bool:
    """Give some pages back; tell whether more could be."""
    before = free_pages(db)
    if before <= KEPT_PAGES:
        return False
    # A script, because `execute` stops such a statement after its first page.
    db.executescript(f"PRAGMA incremental_vacuum({STEP_PAGES})")
    return free_pages(db) < before


def free_pages(db: sqlite3.Connection) -> int:
    """Count the pages of the file that hold nothing."""
    return _number(db, "freelist_count")


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])
