"""Values of settings: how each kind is written, read and checked.

A reader raises TypeError for what is not of its kind, and `UsageError` where there is
more to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.errors import UsageError
from grass.log_lines import FORMATS
from grass.model.durations import LONGEST_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.model.resources import Request

NotifyCommand = str | tuple[str, ...]
"""A line for the shell, or the words of a program."""
NUMBERS = ("number", "count")
"""Kinds that are numbers in a file."""
SQLITE = "sqlite"
"""The store that is a file of the state directory."""

KINDS = {
    "name": ("a name", "use letters, digits, `_`, `.` and `-`"),
    "request": ("a request", "write {gpu = 1}, or JSON5 as text: '{gpu:1}'"),
    "duration": ("a duration", "write 90s, 10m, 2h or 30d"),
    "age": ("a duration", 'write "30d"; leave it out to keep everything'),
    "number": ("a whole number", "write 5, without quotes"),
    "count": ("a count", "write 4, without quotes, or leave it out"),
    "store": ("a database", 'write "sqlite" or "postgresql://USER@HOST/NAME"'),
    "command": ("a command", 'write a shell line, or words: ["prog", "word"]'),
    "size": ("a size", 'write "512M" or "2G"'),
    "share": ("a share", 'write "10%", from 0% to 100%'),
    "program": ("a program", 'write a full path: "/opt/env/bin/python"'),
    "log format": ("a log format", 'write "text" or "json"'),
}
"""The name of each kind, and how to write one."""


def _name(value: object, name: str) -> str:
    from grass.model.resources import check_name

    return check_name(_string(value), name.partition(".")[2])


def _request(value: object, _name: str) -> Request:
    from grass.model.resources import default_request_from

    if not isinstance(value, str | dict):
        raise TypeError
    return default_request_from(value, "JSON5")


def _duration(value: object, _name: str) -> float:
    if isinstance(value, str):
        return _seconds(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not 0 <= value <= LONGEST_S:
        raise UsageError(f"{value:g} seconds are out of range")
    return float(value)


def _seconds(text: str) -> float:
    from grass.model.durations import seconds

    try:
        return seconds(text)
    except UsageError:
        raise TypeError from None


def _age(value: object, name: str) -> float:
    age = _duration(value, name)
    if age == 0:
        raise UsageError("0 would keep nothing at all")
    return age


def _number(value: object, _name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    from grass.model.jobs.commands import LARGEST_PRIORITY

    if abs(value) > LARGEST_PRIORITY:
        raise UsageError(f"{value} is out of range", f"at most {LARGEST_PRIORITY}")
    return value


def _count(value: object, name: str) -> int:
    number = _number(value, name)
    if number < 1:
        raise TypeError
    return number


def _store(value: object, _name: str) -> str:
    return check_store(_string(value))


def check_store(text: str) -> str:
    """Return what names a database; an error never repeats a password."""
    if text == SQLITE:
        return text
    scheme, found, rest = text.partition("://")
    if not found or scheme not in ("postgresql", "postgres"):
        shown = quoted(f"{scheme}://...") if found else quoted(text)
        shown = shown if "@" not in shown else "this"
        raise UsageError(
            f"{shown} is not a database that grass can use", KINDS["store"][1]
        )
    place = rest.partition("/")[0].partition("?")[0]
    others = rest.removeprefix(place)
    user = place.rpartition("@")[0]
    # A password may have `/` and `?` in it: then it ends further on, at the `@`.
    if ":" in user or "@" in others or "password=" in others:
        raise password_given()
    return text


def password_given() -> UsageError:
    """Return the error for a store's URL that others must not read."""
    return UsageError(
        "the store's URL has a password in it, which others could read",
        "leave it out, and put it into ~/.pgpass or the file that PGPASSFILE names;"
        " an @ in a name is written as %40",
    )


def _command(value: object, _name: str) -> NotifyCommand:
    if not isinstance(value, list):
        return _string(value)
    program, *words = value or [None]
    if any(not isinstance(word, str) or "\0" in word for word in words):
        raise TypeError
    return (_string(program), *words)


def _size(value: object, _name: str) -> int:
    from grass.model.amounts import size_bytes

    return size_bytes(_string(value))


def _share(value: object, _name: str) -> int:
    """Return a share in ten-thousandths."""
    text = _string(value).strip().removesuffix("%")
    if not text.isdecimal() or int(text) > 100:
        raise TypeError
    return int(text) * 100


def _program(value: object, _name: str) -> str:
    if not _string(value).startswith("/"):
        raise TypeError
    return str(value)


def _log_format(value: object, _name: str) -> str:
    if value not in FORMATS:
        raise TypeError
    return str(value)


def _string(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise TypeError
    return value


READERS: dict[str, Callable[[object, str], object]] = {
    "name": _name,
    "request": _request,
    "duration": _duration,
    "age": _age,
    "number": _number,
    "count": _count,
    "store": _store,
    "command": _command,
    "size": _size,
    "share": _share,
    "program": _program,
    "log format": _log_format,
}


def quoted(value: object) -> str:
    """Return a value for an error, shortened."""
    text = " ".join(str(value).split())
    return f"`{text[:60]}...`" if len(text) > 60 else f"`{text}`"
