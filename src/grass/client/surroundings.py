"""What a caller has around it: environment, directory, umask.

A job enqueued from inside another job must not take that job's `GRASS_*` variables for
its own, and a daemon keeps nothing of the shell that happened to start it.
"""

from __future__ import annotations

import os

from grass.errors import UsageError
from grass.model.environment import (
    MARKER,
    SECRETS,
    outside_a_job,
    without_job_variables,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def caller_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a job enqueued here shall see."""
    return outside_a_job(environment)


def daemon_environment(
    environment: Mapping[str, str], folder: str, *, asked_for: bool
) -> dict[str, str]:
    """Return what a daemon started here shall see.

    A daemon that was asked for keeps the caller's choice of GPUs; one that is started
    by the way, or from inside a job, does not.
    """
    kept = without_job_variables(environment)
    if not asked_for or MARKER in environment:
        kept.pop("CUDA_VISIBLE_DEVICES", None)
    kept |= {name: environment[name] for name in SECRETS if name in environment}
    kept["GRASS_HOME"] = folder
    return kept


def caller_directory() -> str:
    """Return the current directory."""
    try:
        return os.getcwd()
    except OSError:
        raise UsageError(
            "the current directory does not exist any more", "change to one that does"
        ) from None


def caller_umask() -> int:
    """Return the umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
