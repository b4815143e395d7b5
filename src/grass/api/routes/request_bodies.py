"""The bodies of requests.

They are read here and turned into the broker's calls by `intake` and `editing`; what
people type as JSON5 is parsed on this side, so that every client gets the same errors.
Where a change may take something away, null does that and an absent field leaves it.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from grass.model.access import DEFAULT_ROLE

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Hours = Annotated[float, msgspec.Meta(gt=0, le=100_000)]
Short = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""The id of a job, or the number of an event."""
Umask = Annotated[int, msgspec.Meta(ge=0, le=0o777)]
Command = list[str] | str
"""Words, or one shell line."""
Amounts = str | dict[str, Any]
"""A request or capacity, as an object or as JSON5."""


class JobBody(msgspec.Struct, forbid_unknown_fields=True):
    """One job as asked for; None takes the default."""

    command: Command | None = None
    queue: str | None = None
    require: Amounts | None = None
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
    array: str | None = None
    """Indices such as `1-100%8`; only where it is the one job of a call."""
    after: list[str] | None = None
    """`7`, `7:failed`, `3-9:any`, `last`."""
    begin_at: str | None = None
    hold: bool | None = None
    time_limit_s: float | None = None
    grace_s: float | None = None
    retries: int | None = None
    backoff_s: float | None = None
    retry_on: list[str | int] | None = None
    """Exit codes, `signal`, `time-limit`, `not-started`; empty: every failure."""
    retry_lost: int | None = None
    nice: int | None = None
    max_fails: int | None = None
    worker: str | None = None
    """The only worker that may run it, by name or id."""
    labels: list[str] | None = None
    """What a worker must say of itself to run it."""


class EnqueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to add: all of them, or none."""

    jobs: list[JobBody]
    defaults: JobBody = msgspec.field(default_factory=JobBody)
    key: str | None = None
    environment: dict[str, str] | None = None
    directory: str | None = None
    umask: Umask | None = None


class SelectBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs by selectors."""

    select: list[str]


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to end."""

    select: list[str]
    grace_s: Seconds | None = None
    signal: int = 15


class RerunBody(msgspec.Struct, forbid_unknown_fields=True):
    """Ended jobs to run again, changed where a field is given."""

    select: list[str]
    hold: bool = False
    command: Command | UnsetType = UNSET
    require: Amounts | UnsetType = UNSET
    require_also: dict[str, Any] | UnsetType = UNSET
    """Kinds to ask another amount of; what else was asked for stays."""
    priority: int | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    time_limit_s: float | UnsetType | None = UNSET
    env: dict[str, str] | UnsetType = UNSET
    cwd: str | UnsetType | None = UNSET
    name: str | UnsetType = UNSET
    worker: str | UnsetType | None = UNSET
    labels: list[str] | UnsetType | None = UNSET


class EditBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs that have not started, changed where a field is given."""

    select: list[str]
    command: Command | UnsetType = UNSET
    require: Amounts | UnsetType = UNSET
    require_also: dict[str, Any] | UnsetType = UNSET
    """Kinds to ask another amount of; what else was asked for stays."""
    priority: int | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    time_limit_s: float | UnsetType | None = UNSET
    env: dict[str, str] | UnsetType = UNSET
    cwd: str | UnsetType | None = UNSET
    name: str | UnsetType = UNSET
    after: list[str] | UnsetType | None = UNSET
    begin_at: str | UnsetType | None = UNSET
    retries: int | UnsetType = UNSET
    worker: str | UnsetType | None = UNSET
    labels: list[str] | UnsetType | None = UNSET


class WaitBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to wait for; without a timeout as long as it takes."""

    select: list[str]
    timeout_s: Seconds | None = None


class WaitAllBody(msgspec.Struct, forbid_unknown_fields=True):
    """Up to which job to wait for all; ends are counted from an event on."""

    up_to: Number
    after: Number
    timeout_s: Seconds | None = None


class PruneBody(msgspec.Struct, forbid_unknown_fields=True):
    """Which ended jobs to forget."""

    older_s: Seconds
    dry_run: bool = False


class QueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """A queue to create, or to add this daemon's view to."""

    capacity: Amounts = "{}"
    command: list[str] = []
    directory: str | None = None
    env: dict[str, str] = {}
    default_require: Amounts | None = None
    max_running: int | None = None
    max_fails: int | None = None


class EditQueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """A queue, changed where a field is given; null takes a limit or default away."""

    capacity: Amounts | UnsetType = UNSET
    command: list[str] | UnsetType = UNSET
    directory: str | UnsetType | None = UNSET
    env: dict[str, str] | UnsetType = UNSET
    default_require: Amounts | UnsetType | None = UNSET
    max_running: int | UnsetType | None = UNSET
    max_fails: int | UnsetType | None = UNSET


class PauseBody(msgspec.Struct, forbid_unknown_fields=True):
    """One queue, or without a name everything."""

    queue: str | None = None


class ResumeBody(msgspec.Struct, forbid_unknown_fields=True):
    """One queue, one drained unit, or without a name everything that is paused."""

    queue: str | None = None
    unit: str | None = None
    worker: str | None = None


class AddCapacityBody(msgspec.Struct, forbid_unknown_fields=True):
    """Units that a worker has besides those found; without a name this daemon's."""

    capacity: Amounts
    worker: str | None = None


class UnitBody(msgspec.Struct, forbid_unknown_fields=True):
    """One unit, such as `gpu:2`, of a worker; without a name this daemon's."""

    unit: str
    worker: str | None = None


class DrainWorkerBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a worker is to start nothing new."""

    on: bool = True


class StopBody(msgspec.Struct, forbid_unknown_fields=True):
    """How to stop the daemon."""

    jobs: bool = False


class NewTokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A token to make, or a code that machines get theirs with."""

    name: str | None = None
    role: str = DEFAULT_ROLE
    code: bool = True
    hours: Hours | None = None
    """How long it counts; without: a code for an hour, a token until revoked."""


class JoinBody(msgspec.Struct, forbid_unknown_fields=True):
    """A machine that joins: its code, its name, and the id of its worker."""

    code: Short
    name: Short
    worker: Short | None = None
    instance: Short | None = None
    """Which of the homes with that id it is: a home may be copied."""
