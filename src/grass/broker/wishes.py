"""What is wished of a new job: its command, and how it is to run.

As asked, and read but not yet checked against queues and workers: `enqueue` makes a
job's spec of it.
"""

import msgspec

from grass.model.resources import Request


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
    grace_s: float | None = None
    after: tuple[str, ...] = ()
    """As asked: `7`, `7:failed`, `3-9:any`, `last`."""
    begin_at: int | None = None
    hold: bool = False
    time_limit_s: float | None = None
    retries: int = 0
    backoff_s: float = 0.0
    retry_on: tuple[str, ...] = ()
    retry_lost: int = 0
    nice: int = 0
    at_most: int | None = None
    """How many members of an array may run at a time."""
    max_fails: int | None = None
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
