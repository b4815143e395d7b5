"""Queues: a name, and for each worker one view on its resources.

A view limits the kinds it names to its units and amounts, and may have a command
prefix with the directory and environment it was created in. Limits and defaults of the
whole queue are on the queue itself.
"""

import msgspec

from grass.model.resources import Capacity, Request


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
    """After so many failures in a row the queue pauses."""
    fails: int = 0
    """Failures in a row that count towards `max_fails`."""
    paused_reason: str | None = None
    """Why the queue paused by itself; None where somebody paused it."""

    @property
    def cwd(self) -> str | None:
        """The directory that goes with the prefix."""
        return next((view.cwd for view in self.views.values() if view.cwd), None)

    @property
    def prefix(self) -> tuple[str, ...]:
        """The command prefix that its workers agree on, or nothing."""
        return next((view.prefix for view in self.views.values() if view.prefix), ())
