"""Parts of the protocol: a worker's notes, a runner's task, a search for a process."""

from __future__ import annotations

from typing import NamedTuple

Seconds = float
"""A number from 0 on, neither infinite nor NaN."""


class Notes(NamedTuple):
    """What a worker wants to know after a restart: `meta`, which is returned unread."""

    allocation: dict[str, dict[str, int]]
    output: str | None = None
    stderr: str | None = None
    after: str | None = None
    placed_at: int = 0
    input: bool = False
    """Whether it has a socket for input."""
    usage: str | None = None
    """The history of what it uses, where that is not beside its output."""
    port: int = 0
    """The TCP port that was chosen for it; 0: none."""
    learns: bool = False
    """Whether the broker learns from what it uses of a GPU."""
    enforce: str = ""
    mps: str = ""
    """The GPU of whose MPS it is a client; empty: of none."""
    title: str = ""
    """The name of its job."""


class TaskRun(NamedTuple):
    """A Python function that a runner calls; paths are absolute."""

    key: str
    """Attempts with the same key can be run by the same runner, one after another."""
    function: str
    """The file with the pickled function; one path is always the same function."""
    arguments: str
    """The file with the pickled arguments, or nothing."""
    inline: str
    """The pickled arguments in base64, or nothing."""
    result: str
    """The file for the result."""
    env: dict[str, str]
    """Variables of this attempt alone."""
    python: str = ""
    """The version of Python that pickled the function, as `3.11`."""
    name: str = ""
    """What the function is called, for messages."""
    keep: bool = True
    """Whether its runner may wait for a next attempt; one on a GPU holds memory."""
    most_told: int = 0
    """In bytes: a result up to this size goes with the exit, not into a file."""
    units: dict[str, dict[str, int]] = {}  # noqa: RUF012 -- never changed
    """What the attempt holds, which its function may ask."""


class AdoptVerb(NamedTuple):
    """Find the processes of an attempt of which there is no record, by their marker.

    Answered by `started`, or by `exited` with `lost` if there are none.
    """

    id: str
    output: str
    stderr: str | None = None
    grace: Seconds = 15.0
    time_limit: Seconds | None = None
    """What is left of it."""
    meta: object = None
