"""How a job runs: the one record of it, from a request to the worker.

`RunOptions` is what a worker acts on; the link's `Start` has the same fields. `Spec`
adds what only the broker needs, and is stored once for all jobs that share it.
"""

from operator import attrgetter
from typing import Any

import msgspec

from grass.model.dependencies import After
from grass.model.resources import Request

DEFAULT_MAX_OUTPUT = 10 * 2**30
DEFAULT_GRACE_S = 15.0


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a worker acts on.

    A spec is stored without its defaults, so a default must not change, or jobs in an
    older database would change with it.
    """

    env: tuple[tuple[str, str], ...] = ()
    umask: int | None = None
    output: str | None = None
    stderr: str | None = None
    raw: bool = False
    """Whether placeholders are left alone."""
    pin: bool = False
    max_output: int = DEFAULT_MAX_OUTPUT
    grace_s: float = DEFAULT_GRACE_S
    time_limit_s: float | None = None
    nice: int = 0


_OPTIONS = RunOptions.__struct_fields__
_option_values = attrgetter(*_OPTIONS)


def run_options(options: RunOptions) -> dict[str, Any]:
    """Give what a worker acts on, by name."""
    return dict(zip(_OPTIONS, _option_values(options), strict=True))


class Spec(RunOptions, frozen=True, kw_only=True):
    """How to run: shared by every job of an array or a bulk call."""

    request: Request
    prefix: tuple[str, ...] = ()
    """The queue's part of the command, as it was when the last attempt started."""
    cwd: str | None = None
    queue_cwd: str | None = None
    """The queue's directory, for jobs that named none themselves."""
    base_env: int | None = None
    """The stored environment of the caller; None: the worker's own."""
    after: tuple[After, ...] = ()
    """The jobs that must have ended, and how, before this one may start."""
    begin_at: int | None = None
    retries: int = 0
    """How many failures are followed by another attempt."""
    backoff_s: float = 0.0
    """The pause before the first retry; every further one is twice as long."""
    retry_on: tuple[str, ...] = ()
    """The failures that are retried; empty: all."""
    retry_lost: int = 0
    """How many losses are followed by another attempt."""
    worker: str | None = None
    """The id of the only worker that may run it; None: any."""
    labels: tuple[str, ...] = ()
    """What a worker must say of itself to run it; sorted."""
    at_most: int | None = None
    """How many members of its array may run at a time."""
    max_fails: int | None = None
    """After so many failed members of its array the queue pauses."""
