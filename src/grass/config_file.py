"""Reads `config.toml`: its tables, and the lines of its keys.

A missing file is an empty one. A file that cannot be read, or is not TOML, is an error
of one line. `settings` interprets the tables.
"""

from __future__ import annotations

from typing import Any

from grass.errors import UsageError


class ConfigFile:
    """The contents of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._text = _text(path)
        self.tables: dict[str, Any] = _tables(self._text, path) if self._text else {}

    def place(self, name: str) -> str:
        """Return the file, and the line of a table or setting if known."""
        line = line_of(self._text, name)
        return self.path if line is None else f"{self.path}, line {line}"


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


def _tables(text: str, path: str) -> dict[str, Any]:
    # Only here, so that nothing pays for TOML where there is no file.
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}", "mend it there") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deep", "write plain tables") from None
