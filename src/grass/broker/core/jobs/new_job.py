"""What is wished of a new job: its command, and how it is to run.

As asked, and read but not yet checked against queues and workers: `enqueue` makes a
job's spec of it.
"""

import msgspec

from grass.model.job import DEFAULT_PROJECT
from grass.model.resources import Request
from grass.model.spec import RunOptions


class Settings(RunOptions, frozen=True, kw_only=True):
    """How a job is to run, as asked; what is None takes the default."""

    queue: str | None = None
    request: Request | None = None
    priority: int = 0
    project: str = DEFAULT_PROJECT
    name: str | None = None
    cwd: str | None = None
    caller_cwd: str | None = None
    """Where the caller stood; `cwd` and a queue with a prefix override it."""
    begin_at: int | None = None
    retries: int = 0
    backoff_s: float = 0.0
    retry_on: tuple[str, ...] = ()
    retry_lost: int = 0
    at_most: int | None = None
    max_fails: int | None = None
    after: tuple[str, ...] = ()
    """As asked: `7`, `7:failed`, `3-9:any`, `last`."""
    hold: bool = False
    worker: str | None = None
    """The only worker that may run it, by name or id."""
    labels: tuple[str, ...] = ()
    """What a worker must say of itself to run it."""


class NewJob(msgspec.Struct, frozen=True):
    """One job of an enqueue; jobs that share settings share the object."""

    words: tuple[str, ...]
    settings: Settings
    shell: bool | None = None
    """None: one word with spaces is a shell line."""
    name: str | None = None
    index: int | None = None
    """Its index, as a member of an array. All members are in one call."""
