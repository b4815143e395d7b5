"""Single values of a request: read, or refused in one line that names the option."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from grass.errors import UsageError
from grass.model import dependencies
from grass.model.amounts import size_bytes
from grass.model.resources import Request, request_from
from grass.model.worker import check_label

MOST_RETRIES = 1000
NICEST = 19
LONGEST_S = 1e9
FAILURES = ("signal", "time-limit", "not-started")
"""What `--retry-on` takes besides exit codes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_EXIT_CODE = 255


def begin_at(text: str | None) -> int | None:
    """Read a time with its offset from UTC as microseconds."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        # In UTC it must still be within the years that can be written.
        since = at.astimezone(UTC) - _EPOCH if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        since = None
    if since is None:
        raise UsageError(
            f"--begin `{text}` is not a time with an offset",
            "write 2030-01-31T08:00:00+01:00",
        )
    return since // timedelta(microseconds=1)


def path(text: str | None, what: str) -> str | None:
    """Check a path, which must be absolute: a daemon stands nowhere in particular."""
    if text is None:
        return None
    if not text.startswith("/") or "\0" in text:
        raise UsageError(f"{what} `{text}` is not an absolute path")
    return text


def count(value: int, what: str, most: int = MOST_RETRIES) -> int:
    """Check a number that starts from 0."""
    if not 0 <= value <= most:
        raise UsageError(f"{what} is {value}", f"give a number from 0 to {most}")
    return value


def at_least_one(value: int | None, what: str, hint: str = "") -> int | None:
    """Check a limit that would let nothing through below 1."""
    if value is not None and not 1 <= value <= 2**31:
        raise UsageError(f"{what} must be at least 1", hint)
    return value


def seconds(value: float, what: str) -> float:
    """Check a duration that may be nothing."""
    if not 0 <= value <= LONGEST_S:
        raise UsageError(f"{what} is {value:g} seconds", "give 0 or more")
    return value


def time_limit(value: float | None) -> float | None:
    """Check a time limit: a job that may not run at all is a slip."""
    if value is not None and not 0 < value <= LONGEST_S:
        raise UsageError(f"--time-limit is {value:g} seconds", "give more than 0")
    return value


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


def request(value: str | dict[str, Any]) -> Request:
    """Read what a job asks for."""
    return request_from(value, "--require")


def amounts(value: dict[str, Any]) -> dict[str, int]:
    """Read single amounts; 0 takes a kind out of a request."""
    known = dict(request_from(value, "--require"))
    return {kind: known.get(kind, 0) for kind in value}


def size(value: int | str | None) -> int | None:
    """Read a number of bytes."""
    return size_bytes(value) if isinstance(value, str) else value


def pairs(env: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Read variables of an environment."""
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise UsageError(f"`{name}` cannot be an environment variable")
    return tuple(env.items())


def labels(words: Iterable[str] | None) -> tuple[str, ...]:
    """Read what a worker must say of itself."""
    return tuple(check_label(word) for word in words or ())


def after(texts: Iterable[str], last_job: int) -> tuple[tuple[str, ...], list[int]]:
    """Give dependencies as asked, with `last` spelled out, and the jobs they name.

    Spelled out here, because by the time the broker looks another job may be the last.
    """
    parts = [part.strip() for text in texts for part in text.split(",")]
    asked = tuple(_spelled_out(part, last_job) for part in parts)
    named = dict.fromkeys(one.job for one in dependencies.read(asked, last_job))
    return asked, list(named)


def _spelled_out(part: str, last_job: int) -> str:
    which, colon, need = part.partition(":")
    if which != "last":
        return part
    if not last_job:
        raise UsageError("--after `last`: there is no job yet", "name one by its id")
    return f"{last_job}{colon}{need}"
