"""Named SQL: statements live in `sql/`, each under a line `-- name: …`."""

import re
from collections.abc import Mapping
from importlib.resources import files

Statements = Mapping[str, str]
"""SQL by name."""

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION = re.compile(r"sqlite_migration_(\d+)\.sql")


def statements(dialect: str) -> Statements:
    """Read every named statement of one database's dialect."""
    text = (files("grass.store") / "sql" / f"{dialect}.sql").read_text()
    _, *parts = _NAME.split(text)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def migrations() -> list[tuple[int, str]]:
    """Read the numbered steps from an empty database to the present schema."""
    folder = files("grass.store") / "sql"
    found = ((_MIGRATION.match(entry.name), entry) for entry in folder.iterdir())
    steps = [(int(name.group(1)), entry.read_text()) for name, entry in found if name]
    return sorted(steps)
