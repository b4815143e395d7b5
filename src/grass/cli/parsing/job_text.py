"""A job as text that a person edits, and what a changed text means.

The text is TOML: one key for each option that can change the job, and values as the
options take them. A key whose value is not what it was is read as that option, so that
the editor and the command line understand the same; a key that is left out changes
nothing. The variables of a job may be secrets and are not written: those in the text
are enqueued. An error names the line.
"""

from __future__ import annotations

import shlex
import tomllib

from grass.cli.parsing.job_changes import NONE, Clearable
from grass.cli.parsing.job_options import field_of
from grass.cli.parsing.options import Option, Values
from grass.config_file import line_of
from grass.errors import GrassError, NeverFits, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from grass.client.json_codec import Document

_OPERATORS = frozenset("();<>|&")
_ABOUT = {
    "command": "words as in a shell, or with shell = true a line for the shell",
    "priority": "the higher starts earlier",
    "require": "what it needs: {gpu = 0.5, ram = '8G'}",
    "time_limit": "90s, 45m, 2h, 1:30:00 or none",
    "signal": "USR1@60: a signal so long before the time limit; or none",
    "after": "jobs that must have ended: ['7', '9:failed', '3-5:any']",
    "begin": "not before 22:00, 2030-11-20T08:00, +2h; or none",
    "label": "labels that a worker must have",
    "env": "variables to set; those that it has stay, and are not shown",
}
"""What is said of a key; of any other that can be taken away, what its option says."""
_LEFT_OUT = ("type",)
"""Keys that are not written: jobs show a type whether or not they were given one."""


class JobText:
    """The text of one job, and the fields that a changed text asks for."""

    def __init__(self, job: Document, options: Sequence[Option]) -> None:
        """Write what these options can change, given the job as the API's document."""
        keys = [option.key for option in options]
        shown = _shown(job)
        shown |= {key: value for key, value in _plain(job, options) if key not in shown}
        about = {one.key: one.about for one in options if isinstance(one, Clearable)}
        known = [name for name in (*shown, "env") if name in keys]
        self._keys = ["command", "shell", *known]
        lines = [f"# Job {job['id']}, {job['state']}. Save and close to change it."]
        lines += ["# A line that is left as it is, or left out, changes nothing.", ""]
        for key in self._keys:
            lines += _lines(key, shown.get(key), _ABOUT.get(key) or about.get(key))
        self.text = "\n".join(lines) + "\n"
        self._before = tomllib.loads(self.text)

    def changes(self, text: str, read: Callable[[Values], Document]) -> Document:
        """Return the fields that a text changes; `read` reads options as fields."""
        tables = _tables(text)
        fields: Document = {}
        for key in tables:
            if key not in self._keys:
                raise _unknown(key, self._keys, text)
        for key in self.changed(tables):
            with _Line(text, key):
                fields |= self._fields(key, tables, read)
        return fields

    def changed(self, tables: dict[str, Any]) -> list[str]:
        """Return the keys whose value is not what it was."""
        before = self._before
        return [
            key for key in self._keys if tables.get(key, before[key]) != before[key]
        ]

    def place(self, text: str, error: GrassError) -> str:
        """Return the line that a refusal is about, if that can be told."""
        changed = self.changed(_tables(text))
        about = "--require" if isinstance(error, NeverFits) else error.message
        named = [key for key in changed if _option(key) in about] or changed
        line = line_of(text, named[0]) if len(named) == 1 else None
        return "" if line is None else f"line {line}: "

    def _fields(
        self, key: str, tables: dict[str, Any], read: Callable[[Values], Document]
    ) -> Document:
        if key in ("command", "shell"):
            now = {**self._before, **tables}
            return {"command": _command(now["command"], now["shell"])}
        values = Values()
        for value in _values(key, tables[key]):
            values.add(Option(_option(key), "VALUE"), value)
        return read(values)


class _Line:
    """Names the line of a key in the errors of a block."""

    def __init__(self, text: str, key: str) -> None:
        self._line = line_of(text, key)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, UsageError):
            message = error.message.partition("\n")[0]
            raise UsageError(f"line {self._line}: {message}", error.hint) from None


def _shown(job: Document) -> dict[str, Any]:
    """Return a job's values as the text has them."""
    words = job["command"][len(job["prefix"]) :]
    return {
        "command": words[0] if job["shell"] and len(words) == 1 else shlex.join(words),
        "shell": bool(job["shell"]),
        "name": job["name"],
        "queue": job["queue"],
        "priority": job["priority"],
        "require": {kind: _amount(kind, n) for kind, n in job["request"].items()},
        "time_limit": _duration(job["time_limit_s"]),
        "signal": job["limit_signal"] or NONE,
        "after": job["after"],
        "begin": _local(job["begin_at"]),
        "cwd": job["cwd"] or "",
        "retries": job["retries"],
        "worker": job["wanted_worker"] or NONE,
        "label": job["labels"],
    }


def _plain(job: Document, options: Iterable[Option]) -> Iterator[tuple[str, str]]:
    """Return what can be taken away, as the document has it."""
    for option in options:
        if isinstance(option, Clearable) and option.key not in _LEFT_OUT:
            yield option.key, job.get(field_of(option.key)) or NONE


def _lines(key: str, value: object, about: str | None) -> list[str]:
    above = [f"# {about}"] if about else []
    if key == "env":
        return ["", *above, "[env]"]
    return [*above, f"{key} = {_toml(value)}"]


def _toml(value: object) -> str:
    import tomlkit

    if isinstance(value, str) and "'" not in value and value.isprintable():
        return tomlkit.string(value, literal=True).as_string()
    if isinstance(value, str) and "\n" in value and "'''" not in value + "'":
        return tomlkit.string(value, literal=True, multiline=True).as_string()
    if isinstance(value, dict):
        inside = ", ".join(f"{kind} = {_toml(one)}" for kind, one in value.items())
        return f"{{{inside}}}"
    return str(tomlkit.item(value).as_string())


def _amount(kind: str, amount: float | str) -> float | str:
    """Write memory as people do, where that is exact."""
    if kind in ("ram", "vram") and not isinstance(amount, str):
        for unit, count in (("G", amount), ("M", amount * 1024)):
            if count == int(count):
                return f"{int(count)}{unit}"
    return amount


def _duration(value_s: float | None) -> str:
    if value_s is None:
        return NONE
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if value_s >= size and value_s % size == 0:
            return f"{value_s / size:g}{unit}"
    return f"{value_s:g}s"


def _local(at: str | None) -> str:
    if at is None:
        return NONE
    from datetime import datetime

    return datetime.fromisoformat(at).astimezone().isoformat(timespec="seconds")


def _tables(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the text is not TOML: {error}") from None
    except RecursionError:
        raise UsageError("the text is nested too deep") from None


def _unknown(key: str, known: list[str], text: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
    return UsageError(f"line {line_of(text, key)}: there is no `{key}`", hint)


def _command(text: object, shell: object) -> str | list[str]:
    if not isinstance(text, str) or not text.strip():
        raise UsageError("a command is text in quotes", "command = 'python train.py'")
    if shell not in (True, False):
        raise UsageError("shell is true or false")
    if shell:
        return text
    try:
        words = shlex.split(text)
    except ValueError as error:
        reason = str(error).lower()
        raise UsageError(f"the command cannot be split: {reason}") from None
    operator = _operator(text)
    if operator:
        raise UsageError(f"`{operator}` needs a shell", "set shell = true, or quote it")
    return words


def _operator(text: str) -> str | None:
    """Return what only a shell would understand, outside of quotes."""
    words = shlex.shlex(text, posix=False, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    try:
        return next((word for word in words if _OPERATORS.issuperset(word)), None)
    except ValueError:  # of quotes that only the other way of reading understands
        return None


def _values(key: str, value: object) -> list[str]:
    """Return a value as the words that an option takes."""
    if key == "env" and isinstance(value, dict):
        return [f"{name}={one}" for name, one in value.items()]
    if key == "require" and isinstance(value, dict):
        import json

        return [json.dumps(value)]
    if isinstance(value, list):
        return [",".join(map(str, value)) or NONE]
    if isinstance(value, bool | dict):
        raise UsageError(f"{key} cannot be `{value}`")
    return [str(value)]


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"
