"""Readers of single values of a request: text and numbers to checked values.

Each reader returns the value as the model keeps it, or raises a `UsageError` of one
line that names the option. Which field is read how is in the tables of `spec` and
`queue`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple, cast, get_args, get_type_hints

import msgspec
from msgspec import UnsetType

from grass.errors import About, UsageError
from grass.model import json5
from grass.model.amounts import size_bytes
from grass.model.durations import LONGEST_S
from grass.model.jobs.commands import LARGEST_PRIORITY
from grass.model.resources import (
    AUTO,
    Policy,
    Request,
    check_name,
    default_request_from,
    request_from,
)
from grass.model.selectors import compile_pattern
from grass.model.times import microseconds
from grass.model.usage.enforcement import Enforcement
from grass.model.worker import check_label

MOST_RETRIES = 1000
LOWEST_CPU_PRIORITY = 19
NO_INPUT, PIPE, PTY, CHANNEL = STDIN_KINDS = ("null", "pipe", "pty", "channel")
LARGEST_WINDOW = 65535
LONGEST_PATTERN = 256
LONGEST_JOB_TYPE = 1000
FAILURES = ("signal", "time-limit", "not-started", "out-of-memory")
"""What `--retry-on` takes besides exit codes."""
WrittenAmounts = str | dict[str, Any]
"""A request or capacity, as an object or as JSON5."""
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_LARGEST_EXIT_CODE = 255


class FieldReader(NamedTuple):
    """How a field of a request is read."""

    read: Callable[[Any], Any]
    form: Any = None
    """Its type in a request; None: that of the patch's field."""
    field: str = ""
    """The patch's field, where it has another name."""


FieldReaders = Mapping[str, FieldReader]
"""By a field's name in a request; one that is not listed is kept as it is."""


def read_fields(given: Mapping[str, Any], readers: FieldReaders) -> dict[str, Any]:
    """Read the values that a request gives; return them by the patch's names."""
    fields: dict[str, Any] = {}
    for name, value in given.items():
        reader = readers.get(name)
        if reader is None:
            fields[name] = value
        else:
            with About(name):
                fields[reader.field or name] = reader.read(value)
    return fields


def request_forms(patch: type[msgspec.Struct], readers: FieldReaders) -> dict[str, Any]:
    """Give the type that each field of a patch has in a request, by its name there."""
    names = {one.field: name for name, one in readers.items() if one.field}
    forms: dict[str, Any] = {}
    for field, kind in get_type_hints(patch, include_extras=True).items():
        name = names.get(field, field)
        reader = readers.get(name)
        form = None if reader is None else reader.form
        forms[name] = kind if form is None else form | UnsetType
    return forms


def begin_at(text: str | None) -> int | None:
    """Read a time with its offset from UTC as microseconds."""
    if text is None:
        return None
    try:
        return microseconds(text)
    except UsageError as error:
        raise UsageError(f"--begin {error.message}", error.hint) from None


def path(what: str) -> Callable[[str | None], str | None]:
    """Return a reader of absolute paths: a daemon has no directory of its own."""

    def read(text: str | None) -> str | None:
        if text is not None and (not text.startswith("/") or "\0" in text):
            raise UsageError(
                f"{what} `{text}` is not an absolute path", "begin it with /"
            )
        return text

    return read


def program(what: str) -> Callable[[str | None], str | None]:
    """Return a reader of programs, which are found when a job starts."""

    def read(name: str | None) -> str | None:
        if name is not None and (not name or "\0" in name):
            raise UsageError(f"{what} `{name}` is no program", "give a name or a path")
        return name

    return read


def count(what: str, most: int = MOST_RETRIES) -> Callable[[int], int]:
    """Return a reader of numbers that start from 0."""

    def read(value: int) -> int:
        if not 0 <= value <= most:
            raise UsageError(f"{what} is {value}", f"give a number from 0 to {most}")
        return value

    return read


def at_least_one(what: str, hint: str = "") -> Callable[[int | None], int | None]:
    """Return a reader of limits that would let nothing through below 1."""

    def read(value: int | None) -> int | None:
        if value is not None and not 1 <= value <= 2**31:
            raise UsageError(f"{what} must be at least 1", hint)
        return value

    return read


def seconds(what: str) -> Callable[[float], float]:
    """Return a reader of durations that may be 0."""

    def read(value: float) -> float:
        if not 0 <= value <= LONGEST_S:
            raise UsageError(f"{what} is {value:g} seconds", "give 0 or more")
        return value

    return read


def time_limit(value: float | None) -> float | None:
    """Check a time limit: 0 would let no job run at all."""
    if value is not None and not 0 < value <= LONGEST_S:
        raise UsageError(f"--time-limit is {value:g} seconds", "give more than 0")
    return value


def priority(value: int) -> int:
    """Check the order among jobs of a queue."""
    if abs(value) > LARGEST_PRIORITY:
        raise UsageError(f"priority {value} is out of range")
    return value


def project(name: str) -> str:
    """Check the name of a project."""
    return check_name(name, "project")


def stdin(kind: str) -> str:
    """Check what a job's stdin is."""
    if kind not in STDIN_KINDS:
        raise UsageError(f"stdin `{kind}` is none of {', '.join(STDIN_KINDS)}")
    return kind


def window(size: list[int] | None) -> tuple[int, int] | None:
    """Check the size of a terminal: rows and columns."""
    if size is None:
        return None
    if len(size) != len(("rows", "columns")):
        raise UsageError("a window has rows and columns")
    rows, columns = size
    if not (0 < rows <= LARGEST_WINDOW and 0 < columns <= LARGEST_WINDOW):
        raise UsageError(f"a window of {rows} rows and {columns} columns")
    return rows, columns


def failures(words: Iterable[str | int]) -> tuple[str, ...]:
    """Read which failures are retried: exit codes and a few words."""
    return tuple(dict.fromkeys(_failure(str(word)) for word in words))


def _failure(word: str) -> str:
    if word in FAILURES:
        return word
    if word.isascii() and word.isdecimal() and len(word) <= len("255"):
        code = int(word)
        if code <= _LARGEST_EXIT_CODE:
            return str(code)
    known = ", ".join(FAILURES)
    raise UsageError(
        f"--retry-on `{word}` is no failure",
        f"use exit codes up to {_LARGEST_EXIT_CODE}, {known}",
    )


def request(value: WrittenAmounts) -> Request:
    """Read what a job asks for."""
    return request_from(value, "--require")


def amounts(value: dict[str, Any]) -> dict[str, int]:
    """Read single amounts; 0 takes a kind out of a request."""
    known = dict(request_from(value, "--require"))
    return {kind: known.get(kind, 0) for kind in value}


def without_auto(asked: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bool]]:
    """Take `vram: "auto"` out of what a request asks for; tell whether it was there.

    An amount of vram takes its place, so it is told then that it was not.
    """
    plain, auto = dict(asked), dict[str, bool]()
    for name, what in (("require", "--require"), ("require_also", "--vram")):
        value = plain.get(name)
        if isinstance(value, str) and AUTO in value:
            value = json5.read_object(value, what)
        if isinstance(value, Mapping) and "vram" in value:
            is_auto = value["vram"] == AUTO
            auto["auto_vram"] = is_auto
            plain[name] = {**value, "vram": 0} if is_auto else value
    return plain, auto


def job_type(text: str | None) -> str | None:
    """Read the type that a job is given."""
    if text is None:
        return None
    if not text.strip() or len(text) > LONGEST_JOB_TYPE or not text.isprintable():
        raise UsageError(
            "--type is no name", f"write up to {LONGEST_JOB_TYPE} characters"
        )
    return text


def default_request(value: WrittenAmounts | None) -> Request | None:
    """Read what the jobs of a queue ask for that name nothing themselves."""
    return None if value is None else default_request_from(value)


def size(value: int | str) -> int:
    """Read a number of bytes."""
    return size_bytes(value) if isinstance(value, str) else value


def pairs(env: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Read variables of an environment."""
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise UsageError(f"`{name}` cannot be an environment variable")
    return tuple(env.items())


def labels(words: Iterable[str] | None) -> tuple[str, ...]:
    """Read the labels that a worker must have."""
    return tuple(sorted({check_label(word) for word in words or ()}))


def pool(name: str | None) -> str | None:
    """Read the pool that a job is for; whether there is one is not checked."""
    if name is not None:
        check_name(name, "pool")
    return name


def gpu_model(pattern: str | None) -> str | None:
    """Read a pattern for the names of GPUs."""
    if pattern is None:
        return None
    if not pattern or len(pattern) > LONGEST_PATTERN or not pattern.isprintable():
        raise UsageError(
            "--gpu-model is no pattern", "write a part of the name, or 'A100|H100'"
        )
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise UsageError(f"--gpu-model `{pattern}` is no pattern: {error}") from None
    return pattern


def policy(word: str | None) -> Policy | None:
    """Read how units are chosen."""
    if word is None or word in get_args(Policy):
        return cast("Policy | None", word)
    raise UsageError(f"--policy `{word}` is not known", "use spread or pack")


def enforcement(word: str | None) -> Enforcement | None:
    """Read what happens to a job that uses more than it reserved; `off` is nothing."""
    if word in (None, "off"):
        return None
    if word in get_args(Enforcement):
        return cast("Enforcement", word)
    raise UsageError(f"--enforce `{word}` is not known", "use warn, stop or off")


def texts(words: Iterable[str] | None) -> tuple[str, ...]:
    """Keep texts that are read later; null is none."""
    return tuple(words or ())
