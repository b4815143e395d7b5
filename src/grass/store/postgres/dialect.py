"""How PostgreSQL says what other databases say otherwise.

It takes no functions of ours and its patterns are others, so names are matched outside
of it: each different name once, and of names with placeholders each job's own.
"""

import json
import time
from collections.abc import Callable, Iterator

from grass.model import selectors
from grass.store.changes import Env
from grass.store.postgres.sealing import Sealing
from grass.store.sql import rows
from grass.store.sql.dialect import Condition, Connection, Dialect
from grass.store.sql.sql_reads import PATTERN_S, took_too_long

NAMES_UNTIMED = 256
"""How many names are matched between two looks at the clock."""
_AMONG = """(j.name IN (SELECT value FROM @list)
    OR j.id IN (SELECT CAST(value AS BIGINT) FROM @list))"""


class PostgresDialect(Dialect):
    """PostgreSQL chooses indexes by itself."""

    name = "postgres"
    listed = "json_array_elements_text(CAST(? AS JSON))"
    in_ranges = """j.id IN (
    SELECT k.id FROM json_array_elements(CAST(? AS JSON)) AS r INNER JOIN jobs AS k
    ON k.id BETWEEN CAST(r.value ->> 0 AS BIGINT) AND CAST(r.value ->> 1 AS BIGINT)
)"""
    started = "j.started_at"
    unindexed = ""

    def __init__(self, sealing: Sealing) -> None:
        """Read the statements; environments are written and read sealed."""
        super().__init__()
        self._sealing = sealing

    def sealed(self, env: Env) -> Env:
        """Return an environment as this database has it."""
        return self._sealing.sealed(env)

    def opened(self, env: Env) -> Env:
        """Return an environment that this database has; `CorruptRow`: it cannot be."""
        return self._sealing.opened(env)

    def by_index(self, index: str) -> str:
        """Return nothing: no statement can name an index."""
        return ""

    def prefix_of(self, text: str) -> str:
        """Return what the index of names has of a name."""
        return f"left({text}, 500)"

    def number_in(self, column: str, field: str) -> str:
        """Return the number that a JSON object in a column has in a field."""
        return f"CAST(CAST({column} AS JSON) ->> '{field}' AS BIGINT)"

    def is_named(self, db: Connection, name: str) -> Condition:
        """Return the condition that a job `j` has this name once it is filled."""
        matching = _Matching(self, db, lambda text: text == name)
        plain = [] if "{" in name else [name]
        return self.of(_AMONG), [
            json.dumps(plain),
            json.dumps(list(matching.ids("names_to_fill"))),
        ]

    def has_name_like(self, db: Connection, pattern: str) -> Condition:
        """Return the condition that a pattern is found in the name of a job `j`."""
        matching = _Matching(self, db, lambda text: selectors.matches(pattern, text))
        return self.of(_AMONG), [
            json.dumps(list(matching.names())),
            json.dumps(list(matching.ids("names_to_fill"))),
        ]


class _Matching:
    """The names that match, looked for within a limited time."""

    def __init__(
        self, sql: Dialect, db: Connection, matches: Callable[[str], bool]
    ) -> None:
        self._sql, self._db, self._matches = sql, db, matches
        self._deadline = time.monotonic() + PATTERN_S
        self._looked = 0

    def names(self) -> Iterator[str]:
        """Yield names without placeholders that match."""
        for (name,) in self._db.execute(self._sql["distinct_names"]):
            self._look_at_the_clock()
            if "{" not in name and self._matches(name):
                yield name

    def ids(self, names: str) -> Iterator[int]:
        """Yield jobs whose names, once filled, match."""
        for (name,) in self._db.execute(self._sql[names]).fetchall():
            found = self._db.execute(self._sql["jobs_with_name"], (name, name))
            for id, name_, index, body in found:
                self._look_at_the_clock()
                if self._matches(rows.filled_name_of(name_, id, index, body)):
                    yield id

    def _look_at_the_clock(self) -> None:
        self._looked += 1
        if self._looked % NAMES_UNTIMED == 0 and time.monotonic() > self._deadline:
            raise took_too_long()
