"""Damage to a database that is found only where it is read."""

import sqlite3
from pathlib import Path

PAGE = 4096


def damage(path: Path) -> bytes:
    """Overwrite the page where the table of jobs begins; return what it had."""
    with sqlite3.connect(path) as db:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'jobs'"
        (page,) = db.execute(query).fetchone()
    db.close()
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    return content
