"""What can be asked of the broker.

Each call is a value with its actor; the API makes them from requests, tests and the
simulation make them directly. Reading them never needs the broker's state.
"""

import msgspec

from grass.link.messages import ToBroker
from grass.model.lifecycle import JobState
from grass.model.resources import Capacity, Request


class Settings(msgspec.Struct, frozen=True):
    """How a job is to run, as asked; what is None takes the default."""

    queue: str | None = None
    request: Request | None = None
    priority: int = 0
    project: str = "default"
    name: str | None = None
    cwd: str | None = None
    caller_cwd: str | None = None
    """Where the caller stood; `cwd` and a queue with a prefix override it."""
    env: tuple[tuple[str, str], ...] = ()
    umask: int | None = None
    output: str | None = None
    stderr: str | None = None
    max_output: int | None = None
    raw: bool = False
    pin: bool = False


class NewJob(msgspec.Struct, frozen=True):
    """One job of an enqueue; jobs that share settings share the object."""

    words: tuple[str, ...]
    settings: Settings
    shell: bool | None = None
    """None: one word with spaces is a shell line."""
    name: str | None = None


class Enqueue(msgspec.Struct):
    """Add jobs: all of them, or none."""

    actor: str
    jobs: list[NewJob]
    key: str | None = None
    base_env: dict[str, str] | None = None
    """The caller's environment; None: none travelled."""


class CreateQueue(msgspec.Struct):
    """Add this daemon's view of a queue, making the queue where it is new."""

    actor: str
    name: str
    worker: str
    capacity: Capacity
    prefix: tuple[str, ...] = ()
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    default_request: Request | None = None
    max_running: int | None = None


class DeleteQueue(msgspec.Struct):
    """Remove this daemon's view, and the queue with its last view."""

    actor: str
    name: str
    worker: str


class Cancel(msgspec.Struct):
    """End these jobs; those that ended already are left alone."""

    actor: str
    jobs: list[int]
    grace_s: float | None = None
    signal: int = 15


class SetPaused(msgspec.Struct):
    """Stop or resume starting jobs, of one queue or of all."""

    actor: str
    paused: bool
    queue: str | None = None


class Prune(msgspec.Struct):
    """Forget these ended jobs: records, journal and output."""

    actor: str
    jobs: dict[int, JobState]
    output_bytes: int = 0


class FromWorker(msgspec.Struct):
    """Something a worker said."""

    worker: str
    message: ToBroker


class WorkerGone(msgspec.Struct):
    """A worker's link ended."""

    worker: str


class Tick(msgspec.Struct):
    """Time has passed that a decision waited for."""


Call = (
    Enqueue
    | CreateQueue
    | DeleteQueue
    | Cancel
    | SetPaused
    | Prune
    | FromWorker
    | WorkerGone
    | Tick
)


class Enqueued(msgspec.Struct):
    """The reply to `Enqueue`: the ids, which follow on each other."""

    first: int
    last: int
    hint: str = ""


class Done(msgspec.Struct):
    """The reply to the other verbs: what was touched, and what is worth saying."""

    jobs: list[int] = []
    warnings: list[str] = []
    changed: bool = True
