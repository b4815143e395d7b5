"""The messages between a broker and a worker.

They are the same within one daemon and between machines. Every connection begins with
the worker's `Hello`, which reports all attempts it knows; the broker answers `Welcome`
and both settle the difference. Unknown fields are ignored, so that neighbouring
versions understand each other; `VERSION` counts changes that this does not cover.

An exit is reported again after every `Hello` until the broker has committed it and says
`Forget`. A `Start` may be sent twice; the attempt's identity makes the second harmless.

Clocks of different machines are not compared. A worker says how long something took, by
a clock that cannot jump, and the broker's own clock tells when it was. What a worker's
wall clock showed is said for people, and for brokers of the version before.

A broker whose database came back from a backup gives out numbers that were used. So a
start tells when it was placed, and so does all that is said of the attempt: another
time is another attempt, and 0, which older workers say, is believed.
"""

import msgspec

from grass.model.resources import Allocation, Capacity
from grass.model.spec import RunOptions
from grass.model.worker import Found

VERSION = 1
"""Of neighbouring versions each understands the other; all else is refused."""
UNSAID_VERSION = 1
"""What a peer speaks that does not say it, as 0.1 never did; not to be changed."""

RECALLED = "recalled"
"""The reason of a `Returned` that was asked for."""
CUT_OFF = "cut off from the broker"
"""The reason of an `Exited` whose attempt was ended because a lease ran out."""


class Message(msgspec.Struct, tag_field="type", omit_defaults=True):
    """Root of all messages; the wire names the type.

    A default that is left out on the wire is filled in by the receiver, from its own
    version. So it is the zero of its type, which no version changes; a message with any
    other default writes all its fields.
    """


class Report(Message, tag="report"):
    """What a worker knows of one attempt."""

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
    """For how long it runs, when this is said."""


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
    """Where it wrote: the batch with the report of its start may have been dropped."""
    stderr: str | None = None
    placed_at: int = 0
    ran_s: float | None = None
    """For how long it ran; None: unknown."""


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
    """For how long it has run, when this is said."""


class Hello(Message, tag="hello", omit_defaults=False):
    """A worker introduces itself and reports everything it knows."""

    worker: str
    name: str
    boot: str
    found: Found
    running: list[Report]
    exited: list[Exited]
    started: list[Started] = []
    """How those that exited began, should that news have been missed."""
    version: int = UNSAID_VERSION
    labels: tuple[str, ...] = ()
    lease_s: float | None = None
    """Cut off for so long, the worker's keeper ends its attempts; None: never."""
    at: float = 0.0
    """When this was said, by the worker's own clock; see `Welcome`."""
    instance: str = ""
    """Which of the homes this is that have the worker's id: a home may be copied."""
    wall_at: int = 0
    """What the worker's wall clock shows; 0: it does not say."""
    confirms_removals: bool = False
    """Whether it answers `RemoveOutput`; a worker of version 0.1 does not."""
    unable: str = ""
    """Why it cannot start jobs now, as in `Readiness`."""


class Returned(Message, tag="returned"):
    """The worker never started this attempt and will not; place the job anew."""

    attempt: str
    reason: str
    placed_at: int = 0
    """As the start or the recall said that this answers; 0: it did not say."""


class Readiness(Message, tag="readiness"):
    """Whether the worker can start jobs; until it can, it gives back what is not begun.

    Said only to a broker whose `Welcome` tells that it heeds it.
    """

    unable: str = ""
    """Why it cannot, in few words; empty: it can."""


class Heartbeat(Message, tag="heartbeat"):
    """The worker is there; answered at once by `Heard` with the same time."""

    at: float
    wall_at: int = 0
    """What the worker's wall clock shows; 0: it does not say."""


class OutputData(Message, tag="output-data"):
    """The answer to `ReadOutput`."""

    stream: int
    data: bytes
    missing: bool = False


class Removed(Message, tag="removed"):
    """The answer to `RemoveOutput`: the files are gone, but for those that are left."""

    number: int
    left: int = 0
    reason: str = ""
    """Why a file could not be removed."""


class Welcome(Message, tag="welcome", omit_defaults=False):
    """The broker took the `Hello`; what it does not list as unknown, it knows."""

    cluster: str
    version: int = UNSAID_VERSION
    at: float = 0.0
    """The time of the hello, or of a later heartbeat: the lease counts from then."""
    heeds_readiness: bool = False
    """Whether nothing is placed on a worker that says that it cannot start jobs."""


class Heard(Message, tag="heard"):
    """The answer to `Heartbeat`: from that time on the lease counts anew."""

    at: float


class Units(Message, tag="units"):
    """What the worker has, declared units included; starts are checked against it."""

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
    after: str | None = None
    """Run it the moment this attempt is gone, on the units that one had."""
    placed_at: int = 0
    """Tells it from another one of its number, given back or of a lost database."""


class Stop(Message, tag="stop", omit_defaults=False):
    """End this attempt: the signal, the grace, then SIGKILL until nothing is left."""

    attempt: str
    grace_s: float
    signal: int = 15
    reason: str = "cancelled"


class Suspend(Message, tag="suspend"):
    """Stop every process of this attempt where it is."""

    attempt: str


class Continue(Message, tag="continue"):
    """Let every process of this attempt go on."""

    attempt: str


class Recall(Message, tag="recall"):
    """Give these attempts back if they have not started: answered by `Returned`."""

    attempts: list[str]
    placed_at: list[int] = []
    """When each was placed; empty: unknown."""


class Forget(Message, tag="forget"):
    """These exits are committed; the worker need not report them again.

    A broker says so of its own cluster's attempts only, and is not heard otherwise.
    """

    attempts: list[str]


class Resync(Message, tag="resync"):
    """The broker rebuilt its state and asks for a new `Hello`."""


class ReadOutput(Message, tag="read-output"):
    """Send a piece of a file that an attempt wrote; `wait` for more at its end."""

    stream: int
    path: str
    offset: int
    length: int
    wait: bool = False


class CloseOutput(Message, tag="close-output"):
    """Nobody waits for this stream any more."""

    stream: int


class RemoveOutput(Message, tag="remove-output"):
    """Delete the output of pruned attempts, within the worker's own folder."""

    paths: list[str]
    number: int = 0
    """Repeated by `Removed`."""


ToBroker = (
    Hello
    | Report
    | Exited
    | Started
    | Returned
    | Readiness
    | Heartbeat
    | OutputData
    | Removed
)
ToWorker = (
    Welcome
    | Heard
    | Units
    | Start
    | Stop
    | Suspend
    | Continue
    | Recall
    | Forget
    | Resync
    | ReadOutput
    | CloseOutput
    | RemoveOutput
)


def version_problem(theirs: int, here: str, there: str) -> str | None:
    """Say in one line why two sides cannot speak, if their versions are apart."""
    if abs(theirs - VERSION) <= 1:
        return None
    return (
        f"this {here} speaks version {VERSION} of the link, the {there} version"
        f" {theirs}: install the same grass on both"
    )
