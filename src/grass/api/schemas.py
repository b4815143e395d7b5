"""The bodies of requests and replies.

Requests are read here into the broker's calls; what people type as JSON5 is parsed on
this side, so that every client gets the same errors. Text may hold bytes that are not
UTF-8, escaped as lone surrogates, which msgspec's own decoder refuses: then the
standard library reads the JSON and msgspec only checks it.
"""

import json
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from grass.errors import UsageError

T = TypeVar("T")

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Umask = Annotated[int, msgspec.Meta(ge=0, le=0o777)]


class JobBody(msgspec.Struct, forbid_unknown_fields=True):
    """One job as asked for; None takes the default."""

    command: list[str] | str | None = None
    """Words, or one shell line."""
    queue: str | None = None
    require: str | dict[str, Any] | None = None
    priority: int | None = None
    name: str | None = None
    project: str | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    output: str | None = None
    stderr: str | None = None
    max_output: Bytes | str | None = None
    raw: bool | None = None
    pin: bool | None = None


class EnqueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to add: all of them, or none."""

    jobs: list[JobBody]
    defaults: JobBody = msgspec.field(default_factory=JobBody)
    key: str | None = None
    environment: dict[str, str] | None = None
    directory: str | None = None
    umask: Umask | None = None


class EnqueuedReply(msgspec.Struct):
    """Ids follow on each other."""

    first: int
    last: int
    hint: str = ""


class QueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """A queue to create, or to add this daemon's view to."""

    capacity: str | dict[str, Any] = "{}"
    command: list[str] = []
    directory: str | None = None
    env: dict[str, str] = {}
    default_require: str | dict[str, Any] | None = None
    max_running: int | None = None


class DoneReply(msgspec.Struct):
    """What a verb touched, and what is worth saying."""

    jobs: list[int] = []
    warnings: list[str] = []
    changed: bool = True


class SelectBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs by selectors."""

    select: list[str]


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to end."""

    select: list[str]
    grace_s: Seconds | None = None
    signal: int = 15


class WaitBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to wait for; without a timeout as long as it takes."""

    select: list[str]
    timeout_s: Seconds | None = None


class PauseBody(msgspec.Struct, forbid_unknown_fields=True):
    """One queue, or without a name everything."""

    queue: str | None = None


class StopBody(msgspec.Struct, forbid_unknown_fields=True):
    """How to stop the daemon."""

    jobs: bool = False


class PruneBody(msgspec.Struct, forbid_unknown_fields=True):
    """Which ended jobs to forget."""

    older_s: Seconds
    dry_run: bool = False


class PrunedReply(msgspec.Struct):
    """What was forgotten."""

    jobs: int
    output_bytes: int


class QueueReply(msgspec.Struct):
    """What a command line needs to know of a queue to read its own words."""

    name: str
    prefix: list[str]
    paused: bool


def read_body(data: bytes, body: type[T]) -> T:
    """Read a request's body, or say which field is wrong."""
    try:
        return msgspec.json.decode(data or b"{}", type=body)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request is not understood: {error}") from None
    except msgspec.DecodeError:
        pass
    try:
        return msgspec.convert(json.loads(data, parse_constant=_refuse), body)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request is not understood: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the request is not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def json_bytes(value: object) -> bytes:
    """Write a reply, surrogates escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()
