"""`config.toml` as text: its tables, the lines of its keys, and changes to it.

A missing file is an empty one. A file that cannot be read, or is not TOML, is an error
of one line. A change keeps everything else as it was written, comments included; that
is the work of tomlkit, and every result is read back before it is returned. `settings`
interprets the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grass.errors import GrassError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tomlkit import TOMLDocument

Tables = dict[str, Any]


class ConfigFile:
    """The contents of one file, or the text that it is to have."""

    def __init__(self, path: str, text: str | None = None) -> None:
        self.path = path
        self.text = _text(path) if text is None else text
        self.tables: Tables = _tables(self.text, path) if self.text else {}

    def place(self, name: str) -> str:
        """Return the file, and the line of a table or setting if known."""
        line = line_of(self.text, name)
        return self.path if line is None else f"{self.path}, line {line}"

    def has(self, name: str) -> bool:
        """Tell whether the file sets a value."""
        table, _, key = name.partition(".")
        found = self.tables.get(table)
        return isinstance(found, dict) and key in found

    def with_value(self, name: str, value: str | int) -> ConfigFile:
        """Return the file with one value set."""
        table, _, key = name.partition(".")
        known = self.tables.get(table, {})
        if not isinstance(known, dict):
            where = self.place(table)
            raise UsageError(f"{where}: {table} is not a table", "edit it yourself")
        wanted = {**self.tables, table: {**known, key: value}}
        return self._changed(wanted, lambda text: _with_value(text, table, key, value))

    def without_value(self, name: str) -> ConfigFile:
        """Return the file without one value, which it has."""
        table, _, key = name.partition(".")
        left = {one: v for one, v in self.tables[table].items() if one != key}
        wanted = {**self.tables, table: left}
        return self._changed(wanted, lambda text: _without_value(text, table, key))

    def _changed(self, wanted: Tables, change: Callable[[str], str]) -> ConfigFile:
        """Return the file with a changed text, which must say what is wanted."""
        try:
            changed = ConfigFile(self.path, change(self.text))
        except (ValueError, KeyError, TypeError, UsageError):
            changed = None
        if changed is None or _filled(changed.tables) != _filled(wanted):
            raise GrassError(f"{self.path} cannot be changed here", "edit it yourself")
        return changed


def _filled(tables: Tables) -> Tables:
    """Leave out tables without keys, which say nothing."""
    return {name: keys for name, keys in tables.items() if keys != {}}


def _with_value(text: str, table: str, key: str, value: str | int) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    if table not in document:
        if document.body:
            document.add(tomlkit.nl())
        document.add(table, tomlkit.table())
    is_new = key not in document[table]
    document[table][key] = value
    if is_new:
        _move_up(document, table)
    return tomlkit.dumps(document)


def _move_up(document: TOMLDocument, table: str) -> None:
    """Put a new key, which is the last, right behind those that were there.

    Comments at the end of a table are often about the next one.
    """
    from tomlkit.items import Table

    found = document.item(table)
    if isinstance(found, Table):
        body = found.value.body
        new = body.pop()
        known = [at for at, (key, _) in enumerate(body) if key is not None]
        body.insert(known[-1] + 1 if known else 0, new)


def _without_value(text: str, table: str, key: str) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    del document[table][key]
    return tomlkit.dumps(document)


def line_of(text: str, name: str) -> int | None:
    """Find the line of TOML that sets a table or a key.

    The parser does not report lines, so this searches the text. It is only for
    messages.
    """
    wanted = name.split(".")
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _parts(stripped.strip("[").partition("]")[0])
            found = table
        else:
            key, equals, _ = stripped.partition("=")
            found = table + _parts(key) if equals else []
        if found[: len(wanted)] == wanted:
            return number
    return None


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        reason, hint = "it is not UTF-8", "save it as UTF-8"
    except OSError as error:
        reason, hint = str(error.strerror), "correct that, or move the file"
    raise UsageError(f"{path} cannot be read: {reason}", hint)


def _tables(text: str, path: str) -> Tables:
    # Only here, so that nothing pays for TOML where there is no file.
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}", "mend it there") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deep", "write plain tables") from None
