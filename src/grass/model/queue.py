"""Queues: a name, and for each worker one view on its resources.

A view limits the kinds it names to its units and amounts, and may have a command
prefix with the directory and environment it was created in. Limits and defaults of the
whole queue are on the queue itself. A `QueuePatch` is what a request gives of both.
"""

import msgspec
from msgspec import UNSET, UnsetType

from grass.model import field_readers as read
from grass.model.field_readers import FieldReader
from grass.model.resources import Capacity, Request, capacity_from
from grass.model.usage.enforcement import Enforcement


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    """A queue's share of one worker, and how its jobs run there."""

    capacity: Capacity
    prefix: tuple[str, ...] = ()
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()


class Queue(msgspec.Struct):
    """A named queue of jobs, with its views."""

    name: str
    created_at: int
    paused: bool = False
    default_request: Request | None = None
    max_running: int | None = None
    views: dict[str, View] = {}
    max_fails: int | None = None
    """After this many failures in a row the queue pauses."""
    fails: int = 0
    """Failures in a row that count towards `max_fails`."""
    paused_reason: str | None = None
    """Why the broker paused the queue; None: a person paused it."""
    enforce: Enforcement | None = None
    """Whether its jobs are held to their requests, if they do not say."""

    @property
    def cwd(self) -> str | None:
        """The directory that goes with the prefix."""
        return next((view.cwd for view in self.views.values() if view.cwd), None)

    @property
    def prefix(self) -> tuple[str, ...]:
        """The command prefix that its workers agree on, or nothing."""
        return next((view.prefix for view in self.views.values() if view.prefix), ())


class QueuePatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is given of a queue and of one view; an unset field leaves what there is.

    None takes something away.
    """

    capacity: Capacity | UnsetType = UNSET
    prefix: tuple[str, ...] | UnsetType = UNSET
    cwd: str | UnsetType | None = UNSET
    env: tuple[tuple[str, str], ...] | UnsetType = UNSET
    default_request: Request | UnsetType | None = UNSET
    max_running: int | UnsetType | None = UNSET
    max_fails: int | UnsetType | None = UNSET
    enforce: Enforcement | UnsetType | None = UNSET


QUEUE_READERS = {
    "capacity": FieldReader(capacity_from, read.WrittenAmounts),
    "command": FieldReader(tuple, list[str], "prefix"),
    "directory": FieldReader(read.path("--cwd"), str | None, "cwd"),
    "env": FieldReader(read.pairs, dict[str, str]),
    "default_require": FieldReader(
        read.default_request, read.WrittenAmounts | None, "default_request"
    ),
    "max_running": FieldReader(
        read.at_least_one("--max-running", "use `grass pause` for 0")
    ),
    "max_fails": FieldReader(read.at_least_one("--max-fails")),
    "enforce": FieldReader(read.enforcement, str | None),
}
"""By a field's name in a request: how it is read and checked."""
