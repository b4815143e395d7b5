"""How SQLite says what other databases say otherwise."""

import re
import sqlite3

from grass.model import selectors
from grass.store.sql import rows
from grass.store.sql.dialect import Condition, Connection, Dialect

_NAME = """CASE WHEN instr(j.name, '{') = 0 THEN j.name
    ELSE filled_name(j.name, j.id, j.array_index, j.body) END"""
"""A job's own name; the column has the one that members of its array share."""
_PLAIN = re.compile(r"[\w @:/=,-]+\Z", re.ASCII)
"""A pattern that is a text to find, which the database does by itself."""


def add_functions(db: sqlite3.Connection) -> None:
    """Add the functions that selectors need to a connection."""
    db.create_function("regexp", 2, selectors.matches, deterministic=True)
    db.create_function("filled_name", 4, rows.filled_name_of, deterministic=True)


class SqliteDialect(Dialect):
    """SQLite takes indexes by name, and functions of ours."""

    name = "sqlite"
    listed = "json_each(?)"
    in_ranges = """j.id IN (
    SELECT k.id FROM json_each(?) AS r INNER JOIN jobs AS k
    ON k.id BETWEEN json_extract(r.value, '$[0]') AND json_extract(r.value, '$[1]')
)"""
    # As the indexes have it, which are used only where this is said.
    started = (
        "CASE WHEN JSON_VALID(j.body) THEN JSON_EXTRACT(j.body, '$.started_at') END"
    )
    unindexed = "+"

    def by_index(self, index: str) -> str:
        """Return what makes a table be read by an index, which is exact."""
        return f"INDEXED BY {index}"

    def number_in(self, column: str, field: str) -> str:
        """Return the number that a JSON object in a column has in a field."""
        return f"JSON_EXTRACT({column}, '$.{field}')"

    def is_named(self, db: Connection, name: str) -> Condition:
        """Return the condition that a job `j` has this name."""
        return f"{_NAME} = ?", [name]

    def has_name_like(self, db: Connection, pattern: str) -> Condition:
        """Return the condition that a pattern is found in the name of a job `j`."""
        if _PLAIN.match(pattern):
            return f"INSTR({_NAME}, ?) > 0", [pattern]
        return f"{_NAME} REGEXP ?", [pattern]
