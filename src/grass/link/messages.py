"""The messages between a broker and a worker.

They are the same within one daemon and between machines. Every connection begins with
the worker's `Hello`, which reports all attempts it knows; the broker answers `Welcome`
and both reconcile. Unknown fields are ignored, so that neighbouring versions understand
each other; `LINK_VERSION` counts changes that this does not cover.

An exit is reported again after every `Hello` until the broker has committed it and
sends `Forget`. A `Start` may be sent twice; the attempt's id makes the second harmless.

Clocks of different machines are not compared. A worker reports durations, measured by a
monotonic clock, and the broker computes times by its own clock. A worker's wall clock
is reported for people, and for brokers of the version before.

A broker whose database was restored from a backup reuses attempt numbers. So `Start`
and all messages about the attempt carry `placed_at`, when it was placed: another time
is another attempt, and 0, which older workers send, matches any.
"""

import msgspec

from grass.link.attempt_verbs import (
    Continue,
    GiveBack,
    NoteProfile,
    Recall,
    Search,
    Shrink,
    Signal,
    Stop,
    Suspend,
)
from grass.link.measurements import Overran, ProfileNoted, Withheld
from grass.link.requests import (
    BlobData,
    CloseOutput,
    Devices,
    InputTaken,
    Message,
    OutputData,
    ReadBlob,
    ReadDevices,
    ReadOutput,
    ReadUsage,
    Removed,
    RemoveOutput,
    TaskBytes,
    TaskBytesTaken,
    UsageData,
    WriteInput,
)
from grass.link.versions import LINK_VERSION, UNSAID_VERSION
from grass.model.jobs.spec import RunOptions
from grass.model.resources import Allocation, Capacity
from grass.model.usage.attempt_usage import ResourceUse
from grass.model.worker import FoundUnits

__all__ = [
    "LINK_VERSION",
    "RECALLED",
    "BlobData",
    "CloseOutput",
    "Continue",
    "Devices",
    "Exited",
    "Forget",
    "GiveBack",
    "Heard",
    "Heartbeat",
    "Hello",
    "InputTaken",
    "KnownUnits",
    "Message",
    "NoteProfile",
    "OutputData",
    "Overran",
    "ProfileNoted",
    "ReadBlob",
    "ReadDevices",
    "ReadOutput",
    "ReadUsage",
    "Readiness",
    "Recall",
    "RemoveOutput",
    "Removed",
    "Report",
    "Resync",
    "Returned",
    "Search",
    "Shrink",
    "Signal",
    "Start",
    "Started",
    "Stop",
    "Suspend",
    "TaskBytes",
    "TaskBytesTaken",
    "ToBroker",
    "ToWorker",
    "UsageData",
    "Welcome",
    "Withheld",
    "WriteInput",
]

RECALLED = "recalled"
"""The reason of a `Returned` that answers a `Recall`."""


class Report(Message, tag="report"):
    """What a worker knows of one attempt that has not exited."""

    attempt: str
    allocation: Allocation
    running: bool
    pid: int | None = None
    started_at: int | None = None
    output: str | None = None
    output_offset: int = 0
    stderr: str | None = None
    stopping: bool = False
    stderr_offset: int = 0
    suspended: bool = False
    placed_at: int = 0
    ran_s: float = 0.0
    """How long it has run at the time of sending."""
    usage: str | None = None
    """As in `Exited`."""
    title: str = ""
    """The name of its job."""


class Exited(Message, tag="exited"):
    """An attempt ended and its whole process tree is gone."""

    attempt: str
    at: int
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    lost: bool = False
    output_bytes: int = 0
    max_rss: int | None = None
    cpu_s: float | None = None
    output: str | None = None
    """The path of its output: the `Started` with it may have been dropped."""
    stderr: str | None = None
    placed_at: int = 0
    ran_s: float | None = None
    """How long it ran; None: unknown."""
    peak: ResourceUse | None = None
    """The most that it used; None: it was not measured."""
    usage: str | None = None
    """The file with the history of what it used, unless that is beside its output."""
    cause: str = ""
    """Why it failed, as a word that a broker acts on; empty: for none of these."""
    blamed: str = ""
    """The attempt whose fault the failure is; empty: its own, or of none."""
    to_peak_s: float | None = None
    """When its GPU memory last grew; None: it was not followed from its beginning."""
    marks: tuple[int, ...] = ()
    """The most GPU memory that it had used 1, 2, 4, 8 and so on seconds after."""
    result: bytes = b""
    """What a task returned or raised, as its file would have it; empty: see there."""


class Started(Message, tag="started"):
    """An attempt's process exists."""

    attempt: str
    pid: int
    at: int
    output: str | None = None
    output_offset: int = 0
    stderr: str | None = None
    stderr_offset: int = 0
    placed_at: int = 0
    ran_s: float = 0.0
    """How long it has run at the time of sending."""
    usage: str | None = None
    """As in `Exited`."""


class Hello(Message, tag="hello", omit_defaults=False):
    """A worker introduces itself and reports everything it knows."""

    worker: str
    name: str
    boot: str
    found: FoundUnits
    running: list[Report]
    exited: list[Exited]
    started: list[Started] = msgspec.field(default_factory=list)
    """The starts of those that exited, as the broker may have missed them."""
    version: int = UNSAID_VERSION
    labels: tuple[str, ...] = ()
    lease_s: float | None = None
    """After this time without the broker the keeper ends attempts; None: never."""
    at: float = 0.0
    """When this was sent, by the worker's monotonic clock; see `Welcome`."""
    instance: str = ""
    """Tells homes apart that have the same worker id: a home may be copied."""
    wall_at: int = 0
    """The worker's wall clock; 0: not sent."""
    confirms_removals: bool = False
    """Whether it answers `RemoveOutput`; a worker of version 0.1 does not."""
    unable: str = ""
    """Why it cannot start jobs now, as in `Readiness`."""
    withheld: Withheld | None = None
    """None: it has not looked, or it does not look."""
    enforces: tuple[str, ...] = ()
    """What of a request it can enforce: features of `model.enforcement`."""
    shrinks: bool = False
    """Whether it understands `Shrink`."""
    runs_tasks: bool = False
    """Whether it runs a `Start` with a `task`, and fetches blobs."""
    time_left_s: float | None = None
    """How long an engine lets it run; None: it was started by no engine."""
    searches: bool = False
    """Whether it understands `Search`."""


class Returned(Message, tag="returned"):
    """The worker never started this attempt and will not: place the job again."""

    attempt: str
    reason: str
    placed_at: int = 0
    """As in the `Start` or `Recall` that this answers; 0: it had none."""
    missing: str = ""
    """The directory, program or script that is missing there, as the job names it."""


class Readiness(Message, tag="readiness"):
    """Whether the worker can start jobs; while it cannot, it returns new attempts.

    Sent only to a broker whose `Welcome` has `heeds_readiness`.
    """

    unable: str = ""
    """Why it cannot, in a few words; empty: it can."""


class Heartbeat(Message, tag="heartbeat"):
    """The worker is alive; answered at once by `Heard` with the same time."""

    at: float
    wall_at: int = 0
    """The worker's wall clock; 0: not sent."""


class Welcome(Message, tag="welcome", omit_defaults=False):
    """The broker accepted the `Hello`."""

    cluster: str
    version: int = UNSAID_VERSION
    at: float = 0.0
    """The time of the hello, or of a later heartbeat: the lease counts from it."""
    heeds_readiness: bool = False
    """Whether the broker places nothing on a worker that cannot start jobs."""
    heeds_withheld: bool = False
    """Whether the broker offers nothing of what is `Withheld`."""
    brokers: tuple[str, ...] = ()
    """The addresses of the cluster's brokers, where it has several."""


class Heard(Message, tag="heard"):
    """The answer to `Heartbeat`: the lease counts from its time."""

    at: float
    brokers: tuple[str, ...] = ()
    """The addresses of the cluster's brokers, where it has several."""


class KnownUnits(Message, tag="units"):
    """The worker's units, declared ones included; starts are checked against them."""

    capacity: Capacity


class Start(Message, RunOptions, tag="start", omit_defaults=False):  # type: ignore[misc]
    """Run this attempt; sent only after it was committed."""

    attempt: str
    job: int
    number: int
    name: str
    project: str
    words: tuple[str, ...]
    shell: bool
    allocation: Allocation
    prefix: tuple[str, ...] = ()
    cwd: str | None = None
    base_env: dict[str, str] | None = None
    """None: the worker's own environment."""
    queue_env: tuple[tuple[str, str], ...] = ()
    index: int | None = None
    params: dict[str, str] = msgspec.field(default_factory=dict)
    """What it is given of its own, by name."""
    after: str | None = None
    """Run it the moment this attempt is gone, on the units that one had."""
    placed_at: int = 0
    """Tells it from another one of its number, given back or of a lost database."""
    learns: bool = False
    """Whether to tell what it uses of a GPU: see `ProfileNoted`."""
    arguments: bytes = b""
    """The pickled arguments of a task, unless they are a blob."""
    arguments_blob: str = ""
    """The blob with the pickled arguments of a task."""
    owner: str = ""
    """Who has enqueued it; empty: the broker is of an older version."""
    most_told: int = 0
    """In bytes: a result of a task up to this size may come with its exit."""
    may_return: bool = False
    """Whether it is returned where its directory, program or script is missing."""
    queue: str = ""
    """Empty: the broker is of an older version."""
    array: int | None = None
    """The first job of the array it belongs to."""


class Forget(Message, tag="forget"):
    """These exits are committed; the worker need not report them again.

    Sent for attempts of the broker's own cluster; the worker ignores any other.
    """

    attempts: list[str]


class Resync(Message, tag="resync"):
    """The broker rebuilt its state and asks for a new `Hello`."""


ToBroker = (
    Hello
    | Report
    | Exited
    | Started
    | Returned
    | Readiness
    | ProfileNoted
    | Withheld
    | Overran
    | Heartbeat
    | OutputData
    | UsageData
    | InputTaken
    | TaskBytes
    | TaskBytesTaken
    | ReadBlob
    | Devices
    | Removed
)
ToWorker = (
    Welcome
    | Heard
    | KnownUnits
    | Start
    | Stop
    | Suspend
    | Continue
    | Signal
    | GiveBack
    | Shrink
    | NoteProfile
    | Recall
    | Search
    | Forget
    | Resync
    | ReadOutput
    | ReadUsage
    | CloseOutput
    | WriteInput
    | TaskBytes
    | TaskBytesTaken
    | BlobData
    | ReadDevices
    | RemoveOutput
)
