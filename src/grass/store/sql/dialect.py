"""Named SQL: the statements of all databases, and what each database says otherwise.

Statements live in `.sql` files beside this module, each under a line `-- name: …`:
those that any database takes in `shared.sql`, the others in the file of a dialect. In
both `@list` is a parameter with a JSON array as a table with the column `value`, and
`@by_index(name)` the index to read a table by. Parameters are `?`, in order.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, ClassVar, Protocol

from grass.store.changes import Env

Row = tuple[Any, ...]
Condition = tuple[str, list[object]]
"""SQL, and its values."""

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MACRO = re.compile(r"@(\w+)(?:\((\w+)\))?")


class Cursor(Protocol):
    """The rows that a statement has found."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed."""

    def fetchone(self) -> Any:  # noqa: ANN401 -- a row is what its statement selects
        """Return the next row; None: there is none."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""

    def close(self) -> None:
        """Drop the rows that were not read."""

    def __iter__(self) -> Iterator[Any]:
        """Yield all rows."""


class Connection(Protocol):
    """What statements need of a connection to a database."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor:
        """Execute a statement."""

    def executemany(self, statement: str, rows: Iterable[Row], /) -> object:
        """Execute a statement for each of these rows."""


class Dialect(ABC):
    """The statements of one database by name, and its words for parts of them."""

    name: ClassVar[str]
    listed: ClassVar[str]
    """A parameter with a JSON array, as a table."""
    in_ranges: ClassVar[str]
    """Whether the id of a job `j` is in a JSON array of ranges."""
    started: ClassVar[str]
    """When a job `j` has started."""
    unindexed: ClassVar[str]
    """Stands before a column that is not to be looked up in an index."""

    def __init__(self) -> None:
        """Read the statements."""
        known = _statements("shared") | _statements(self.name)
        self._statements = {name: self.of(text) for name, text in known.items()}

    def __getitem__(self, name: str) -> str:
        """Return a statement."""
        return self._statements[name]

    def names(self) -> list[str]:
        """Name all statements."""
        return list(self._statements)

    def of(self, text: str) -> str:
        """Return SQL with this database's words for what stands behind an `@`."""
        return _MACRO.sub(self._word, text)

    def _word(self, macro: "re.Match[str]") -> str:
        word, index = macro.groups()
        return self.by_index(index) if word == "by_index" else self.listed

    @abstractmethod
    def by_index(self, index: str) -> str:
        """Return what makes a table be read by an index; empty: nothing does."""

    def sealed(self, env: Env) -> Env:
        """Return an environment as this database has it."""
        return env

    def opened(self, env: Env) -> Env:
        """Return an environment that this database has; `CorruptRow`: it cannot be."""
        return env

    def prefix_of(self, text: str) -> str:
        """Return what an index has of a text that may be long."""
        return text

    @abstractmethod
    def number_in(self, column: str, field: str) -> str:
        """Return the number that a JSON object in a column has in a field."""

    @abstractmethod
    def is_named(self, db: Connection, name: str) -> Condition:
        """Return the condition that a job `j` has this name once it is filled."""

    @abstractmethod
    def has_name_like(self, db: Connection, pattern: str) -> Condition:
        """Return the condition that a pattern is found in the name of a job `j`."""


def _statements(file: str) -> dict[str, str]:
    text = (files("grass.store") / "sql" / f"{file}.sql").read_text()
    _, *parts = _NAME.split(text)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def migrations(dialect: str) -> list[tuple[int, str]]:
    """Read the numbered steps from an empty database to the present schema."""
    name = re.compile(rf"{dialect}_migration_(\d+)\.sql")
    folder = files("grass.store") / "sql"
    found = ((name.match(entry.name), entry) for entry in folder.iterdir())
    steps = [
        (int(known.group(1)), entry.read_text()) for known, entry in found if known
    ]
    return sorted(steps)
