"""Jobs and attempts as the broker keeps them.

A `Spec` is what all jobs of one call share and is stored once; a `Job` adds what is its
own. Neither knows how it is stored or placed. States change only through `lifecycle`.
"""

import msgspec

from grass.model.lifecycle import AttemptState, JobState
from grass.model.resources import Allocation, Request

DEFAULT_PROJECT = "default"
DEFAULT_QUEUE = "default"
DEFAULT_MAX_OUTPUT = 10 * 2**30
DEFAULT_GRACE_S = 15.0


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to run: shared by every job of an array or a bulk call."""

    request: Request
    cwd: str | None = None
    base_env: int | None = None
    """The stored environment of the caller; None: the worker's own."""
    env: tuple[tuple[str, str], ...] = ()
    umask: int | None = None
    output: str | None = None
    stderr: str | None = None
    max_output: int = DEFAULT_MAX_OUTPUT
    raw: bool = False
    pin: bool = False
    grace_s: float = DEFAULT_GRACE_S


class Job(msgspec.Struct, gc=False):
    """One job, with one id for life."""

    id: int
    spec: int
    words: tuple[str, ...]
    """What was asked to run; one shell line where `shell` is set."""
    shell: bool
    name: str
    project: str
    owner: str
    queue: str
    priority: int
    state: JobState
    created_at: int
    started_at: int | None = None
    finished_at: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    attempts: int = 0
    stopping_since: int | None = None
    """When a cancel was accepted; from then on no attempt starts."""


class Attempt(msgspec.Struct, gc=False):
    """One try to run a job on one worker."""

    job: int
    number: int
    worker: str
    boot: str
    state: AttemptState
    allocation: Allocation
    started_at: int
    finished_at: int | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    output: str | None = None
    output_offset: int = 0
    output_bytes: int = 0
    stderr: str | None = None
    max_rss: int | None = None
    cpu_s: float | None = None
    after: int | None = None
    """The job whose units it takes over when that one ends; None: it has them."""
