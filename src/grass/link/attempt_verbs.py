"""What a broker asks of an attempt that a worker has: to stop, to go on, to come back.

Older workers ignore those that they do not know.
"""

import msgspec

from grass.link.requests import Message
from grass.model.resources import Allocation


class Stop(Message, tag="stop", omit_defaults=False):
    """End this attempt: signal, grace, then SIGKILL until its tree is empty."""

    attempt: str
    grace_s: float
    signal: int = 15
    reason: str = "cancelled"


class Search(Message, tag="search", omit_defaults=False):
    """Look for the processes of this running attempt, which the hello did not have.

    Answered as any attempt is: by `Started` if there are some, otherwise by `Exited`.
    Sent only to a worker whose `Hello` has `searches`.
    """

    attempt: str
    allocation: Allocation
    placed_at: int = 0
    ran_s: float = 0.0
    """How long it has run, as far as the broker knows."""
    grace_s: float = 15.0
    time_limit_s: float | None = None
    output: str | None = None
    stderr: str | None = None
    usage: str | None = None
    title: str = ""


class Suspend(Message, tag="suspend"):
    """Suspend every process of this attempt."""

    attempt: str


class Continue(Message, tag="continue"):
    """Continue every process of this attempt."""

    attempt: str


class Signal(Message, tag="signal"):
    """Send one signal to the processes of this attempt; older workers ignore it."""

    attempt: str
    signal: int


class GiveBack(Message, tag="give-back"):
    """A guest is done with this attempt, with this exit code; its process goes on."""

    attempt: str
    exit_code: int = 0


class Shrink(Message, tag="shrink", omit_defaults=False):
    """This attempt holds only this from now on; sent before starts on the rest.

    Sent only to a worker whose `Hello` has `shrinks`.
    """

    attempt: str
    allocation: Allocation


class NoteProfile(Message, tag="note-profile"):
    """Tell now what this attempt uses of a GPU: it will need no more."""

    attempt: str


class Recall(Message, tag="recall"):
    """Return these attempts if they have not started: answered by `Returned`."""

    attempts: list[str]
    placed_at: list[int] = msgspec.field(default_factory=list)
    """When each was placed; empty: unknown."""


PassedOn = Stop | Suspend | Continue | Signal | GiveBack
"""What a worker passes on to its keeper."""
