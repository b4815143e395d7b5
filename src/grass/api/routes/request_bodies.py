"""The bodies of requests.

Bodies about a job or a queue have the fields of `JobPatch` and `QueuePatch`, with the
types that a request has for them; `job_calls` and `cluster` make the broker's calls of
them. Where a change may take something away, null does that and an absent field leaves
it.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from grass.keeper.input_pieces import LARGEST_PIECE
from grass.model.access import DEFAULT_ROLE
from grass.model.field_readers import (
    LARGEST_WINDOW,
    LONGEST_JOB_TYPE,
    WrittenAmounts,
    request_forms,
)
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import (
    EDITABLE,
    JOB_READERS,
    NOT_IN_A_REQUEST,
    RERUNNABLE,
    JobPatch,
)
from grass.model.pools import PoolOptions
from grass.model.queue import QUEUE_READERS, QueuePatch

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Hours = Annotated[float, msgspec.Meta(gt=0, le=100_000)]
Short = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""The id of a job, or the number of an event."""
Pid = Annotated[int, msgspec.Meta(ge=2, le=2**31 - 1)]
WindowSize = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WINDOW)]
Umask = Annotated[int, msgspec.Meta(ge=0, le=0o777)]
CommandBody = list[str] | str
"""Words, or one shell line."""
_FORMS = {
    "command": CommandBody | UnsetType,
    "array": str | UnsetType,
    "arguments": str | UnsetType,
    **request_forms(JobPatch, JOB_READERS),
}
"""The types of a job's fields, by their names in a request."""
_OF_A_NEW_JOB = [name for name in _FORMS if name not in NOT_IN_A_REQUEST]
OF_A_GUEST = (
    *("require", "require_also", "queue", "priority", "name", "project"),
    *("time_limit_s", "grace_s", "policy", "gpu_model", "job_type"),
)
"""What a guest may give of itself: the rest is about a command."""
Fields = Iterable[tuple[str, Any, Any]]
_SELECT = ("select", list[str], msgspec.NODEFAULT)
_ANY = ("any", bool, False)


def _struct(*fields: Fields) -> type[msgspec.Struct]:
    """Make the base of a body whose fields follow from the model's."""
    return msgspec.defstruct("Fields", chain(*fields), forbid_unknown_fields=True)


def _changes(names: Iterable[str]) -> Fields:
    return [(name, _FORMS[name], UNSET) for name in names]


_NewJob = _struct((name, _FORMS[name] | None, None) for name in _OF_A_NEW_JOB)
_Edit = _struct(
    [_SELECT, _ANY, ("first", bool, False), ("before", int | None, None)],
    _changes(("command", *EDITABLE)),
)
_Rerun = _struct(
    [_SELECT, _ANY, ("hold", bool, False)], _changes(("command", *RERUNNABLE))
)
_Guest = _struct(
    [
        ("ticks", Number, msgspec.NODEFAULT),
        ("pid", Pid | None, None),
        ("key", str | None, None),
    ],
    ((name, _FORMS.get(name, str) | None, None) for name in OF_A_GUEST),
)
_Queue = _struct(
    (name, form, UNSET)
    for name, form in request_forms(QueuePatch, QUEUE_READERS).items()
)


class JobBody(_NewJob):  # type: ignore[misc, valid-type]
    """One job as asked for; null takes the default."""


class ParamsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters: their names, and a row of values for each job."""

    names: list[str]
    rows: list[list[str]]


class EnqueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to add: all of them, or none."""

    jobs: list[JobBody]
    defaults: JobBody = msgspec.field(default_factory=JobBody)
    params: ParamsBody | None = None
    """The one job becomes an array: a member for each row."""
    arguments: list[str] | None = None
    """The same for a task: the arguments of each member."""
    key: str | None = None
    environment: dict[str, str] | None = None
    directory: str | None = None
    umask: Umask | None = None


class SelectBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs by selectors, whose kinds narrow; with `any` a job matches one of them."""

    select: list[str]
    any: bool = False


class SelectedBody(SelectBody):
    """Which jobs to return, of those in some states alone if these are given.

    `dependents` adds those cancelled because of these.
    """

    states: list[JobState] = []
    dependents: bool = False


class CancelBody(SelectBody):
    """Jobs to end."""

    grace_s: Seconds | None = None
    signal: int = 15


class SignalBody(SelectBody, kw_only=True):
    """Running jobs, and the signal for their processes."""

    signal: int


class RerunBody(_Rerun):  # type: ignore[misc, valid-type]
    """Ended jobs to run again, changed where a field is given."""


class EditBody(_Edit):  # type: ignore[misc, valid-type]
    """Jobs that have not started, changed where a field is given.

    `first` gives them a priority above all others that wait in their queues, `before`
    one by which they start right before that job.
    """


class ResultsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs whose results are read together."""

    jobs: list[Number]


class BlobsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Blobs by name."""

    names: list[str]


class ForgetProfilesBody(msgspec.Struct, forbid_unknown_fields=True):
    """Job types to forget."""

    types: list[str]


class ImportProfilesBody(msgspec.Struct, forbid_unknown_fields=True):
    """Profiles as lines of text."""

    text: str


class InputBody(msgspec.Struct, forbid_unknown_fields=True):
    """A piece of input for a job."""

    sender: Short
    """Who counts the offsets; each begins at 0."""
    offset: Number
    data: Annotated[bytes, msgspec.Meta(max_length=LARGEST_PIECE)] = b""
    """As base64."""
    end: bool = False
    """Whether its stdin ends after this."""
    window: tuple[WindowSize, WindowSize] | None = None
    """Rows and columns that its terminal has from now on."""


class GuestBody(_Guest):  # type: ignore[misc, valid-type]
    """The calling process as a job: `ticks` is when it started, since boot.

    Without `require` it asks for one GPU, or for one core where there is no GPU. `pid`
    is read of the daemon of a worker on another machine alone.
    """


class WaitGuestBody(msgspec.Struct, forbid_unknown_fields=True):
    """How long to wait for the start of a guest."""

    timeout_s: Seconds = 60.0
    pid: Pid | None = None


class MeasureGuestBody(msgspec.Struct, forbid_unknown_fields=True):
    """Which process is to be measured, where its machine's daemon says so."""

    pid: Pid | None = None


class InnerTypeBody(msgspec.Struct, forbid_unknown_fields=True):
    """The type of a function that runs inside a job."""

    job_type: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_JOB_TYPE)]


class GiveBackBody(msgspec.Struct, forbid_unknown_fields=True):
    """How the work of a guest ended; null: its process is gone, if it waits still."""

    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = 0
    pid: Pid | None = None


class WaitBody(SelectBody):
    """Jobs to wait for; without a timeout as long as it takes."""

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


class QueueBody(_Queue):  # type: ignore[misc, valid-type]
    """A queue to create, or to add this daemon's view to."""


class EditQueueBody(_Queue):  # type: ignore[misc, valid-type]
    """A queue, changed where a field is given; null takes a limit or default away."""


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

    capacity: WrittenAmounts
    worker: str | None = None


class UnitBody(msgspec.Struct, forbid_unknown_fields=True):
    """One unit, such as `gpu:2`, of a worker; without a name this daemon's."""

    unit: str
    worker: str | None = None


class DrainWorkerBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a worker is to start nothing new."""

    on: bool = True


class ForeignBody(msgspec.Struct, forbid_unknown_fields=True):
    """Foreign attempts of a worker."""

    attempts: list[str]
    """Their names, or `all`: those of this cluster."""


class StopBody(msgspec.Struct, forbid_unknown_fields=True):
    """How to stop the daemon."""

    jobs: bool = False


class WebBody(msgspec.Struct, forbid_unknown_fields=True):
    """Where to listen for browsers, and what the one that logs in may do."""

    host: Short | None = None
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    role: Literal["read", "submit", "operate", "admin"] = "admin"


class NewTokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A token to make, or a code that machines get theirs with."""

    name: str | None = None
    role: str = DEFAULT_ROLE
    code: bool = True
    hours: Hours | None = None
    """How long it counts; without: a code for an hour, a token until revoked."""


class PoolBody(PoolOptions, forbid_unknown_fields=True):
    """A pool to add."""


class PilotsBody(msgspec.Struct, forbid_unknown_fields=True):
    """How many workers to ask a pool's engine for."""

    count: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1


class JoinBody(msgspec.Struct, forbid_unknown_fields=True):
    """A machine that joins: its code, its name, and the id of its worker."""

    code: Short
    name: Short
    worker: Short | None = None
    instance: Short | None = None
    """Which of the homes with that id it is: a home may be copied."""
    standby: bool = False
    """Whether it is to be a broker of the cluster as well."""
