"""Events of the log, and the line that each of them becomes.

`LogEvent` is a plain value, so that a core without I/O can have one logged. The text
form is for people, the JSON form for programs; both are one line, whatever the fields
hold. The keeper writes the same lines: standard library only, and no `logging`, whose
import would make every keeper larger.
"""

from __future__ import annotations

import json
import time
from typing import NamedTuple

FORMATS = ("text", "json")
_ESCAPED = ('"', "=", "\\")
"""Printable characters that a value without quotes cannot have."""


class LogEvent(NamedTuple):
    """One thing to log: its documented name and its fields; None is left out."""

    name: str
    fields: dict[str, object]

    def __str__(self) -> str:
        """Return the text form, without time and level."""
        items = self.fields.items()
        pairs = [f"{key}={_text(one)}" for key, one in items if one is not None]
        return " ".join([self.name, *pairs])


def log_event(name: str, **fields: object) -> LogEvent:
    """Make an event of keyword arguments."""
    return LogEvent(name, fields)


def text_line(at_s: float, level: str, event: LogEvent) -> str:
    """Return `2026-11-16T17:00:00.123Z info daemon.ready pid=7`."""
    return f"{_time(at_s)} {level} {event}"


def json_line(at_s: float, level: str, event: LogEvent) -> str:
    """Return one JSON object with `ts`, `level`, `event` and the fields."""
    head = {"ts": _time(at_s), "level": level, "event": event.name}
    items = event.fields.items()
    fields = {key: _plain(one) for key, one in items if one is not None}
    return json.dumps(head | fields | head)


LINES = dict(zip(FORMATS, (text_line, json_line), strict=True))


def _time(at_s: float) -> str:
    milliseconds = int(at_s * 1000)
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{day}.{milliseconds % 1000:03d}Z"


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float) else str(value)


def _text(value: object) -> str:
    """Write a value so that it can neither end its line nor act on a terminal."""
    plain = _plain(value)
    text = plain if isinstance(plain, str) else json.dumps(plain)
    if _is_bare(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else _code(one) for one in quoted)


def _code(letter: str) -> str:
    return json.dumps(letter)[1:-1]


def _is_bare(value: str) -> bool:
    is_word = bool(value) and value.isprintable() and " " not in value
    return is_word and not any(one in value for one in _ESCAPED)


def logged_error(line: str) -> str:
    """Return the `error` field of a line; of a line without one, the line."""
    if line.startswith("{"):
        try:
            return str(json.loads(line).get("error", line))
        except ValueError:
            return line
    _, found, rest = line.partition(" error=")
    if not found:
        return line
    if not rest.startswith('"'):
        return rest.partition(" ")[0]
    try:
        return str(json.JSONDecoder().raw_decode(rest)[0])
    except ValueError:
        return line
