"""The one table of what can be done to jobs: labels, keys, rights, and whom it fits.

Menus, keys and help are made of it. An action is an endpoint of the API and a command
of the command line, by the same name; what the caller may not do is not offered.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from grass.cli.printing.wording import ENDED_STATES, UNFINISHED_STATES, UNSTARTED
from grass.client.client import Client
from grass.client.json_codec import Document

EVERYTHING = frozenset({"read", "submit", "operate", "admin"})
_WAITING = ("waiting", "queued")


class Access(NamedTuple):
    """What the person at the screen may do."""

    actor: str = ""
    rights: frozenset[str] = EVERYTHING

    def may_change(self, job: Document) -> bool:
        """Tell whether a verb on this job is allowed."""
        own = "submit" in self.rights and job.get("owner") == self.actor
        return "operate" in self.rights or own

    @property
    def may_operate(self) -> bool:
        """Whether queues, units and workers may be changed."""
        return "operate" in self.rights

    @property
    def may_enqueue(self) -> bool:
        """Whether jobs may be enqueued."""
        return "submit" in self.rights


READ_ONLY = Access(rights=frozenset({"read"}))


class Action(NamedTuple):
    """Something that is done to jobs."""

    id: str
    label: str
    past: str
    """How it is told that it was done."""
    key: str
    """Its letter in an open menu."""
    shortcut: str
    """Its key without a menu."""
    endpoint: str
    command: str
    applies: Callable[[Document], bool]
    send: Callable[[Client, list[str]], Document]
    asks: bool = False
    """Whether one job is reason enough to ask first; of several it always is."""

    def fits(self, job: Document, access: Access) -> bool:
        """Tell whether it can be done to a job, by this person."""
        return self.applies(job) and access.may_change(job)


def _in(*states: str) -> Callable[[Document], bool]:
    """Return a test for jobs in some states; of an array one member is enough."""

    def applies(job: Document) -> bool:
        members = job.get("members") or {job["state"]: 1}
        return any(members.get(state) for state in states)

    return applies


def _is_suspended(job: Document) -> bool:
    return "suspended" in job["flags"] or bool(_in("running")(job) and "members" in job)


def _may_suspend(job: Document) -> bool:
    return _in("running")(job) and "suspended" not in job["flags"]


def _signal(number: signal.Signals) -> Callable[[Client, list[str]], Document]:
    return lambda client, select: client.signal(select, int(number))


def _kill(client: Client, select: list[str]) -> Document:
    return client.cancel(select, grace_s=0.0, signal=int(signal.SIGKILL))


def _to_front(client: Client, select: list[str]) -> Document:
    return client.edit(select, first=True)


# fmt: off
ACTIONS: Sequence[Action] = (
    Action("cancel", "Cancel", "cancelled", "c", "c", "POST /jobs/cancel", "cancel", _in(*UNFINISHED_STATES), Client.cancel, True),  # noqa: E501
    Action("rerun", "Rerun", "rerun", "r", "r", "POST /jobs/rerun", "rerun", _in(*ENDED_STATES), Client.rerun),  # noqa: E501
    Action("hold", "Hold", "held", "h", "h", "POST /jobs/hold", "hold", _in(*_WAITING), Client.hold),  # noqa: E501
    Action("release", "Release", "released", "e", "u", "POST /jobs/release", "release", _in("held"), Client.release),  # noqa: E501
    Action("first", "Move to the front", "moved to the front", "f", "f", "POST /jobs/edit", "edit", _in(*UNSTARTED), _to_front),  # noqa: E501
    Action("suspend", "Suspend", "suspended", "s", "z", "POST /jobs/suspend", "suspend", _may_suspend, Client.suspend),  # noqa: E501
    Action("continue", "Continue", "continued", "o", "v", "POST /jobs/continue", "continue", _is_suspended, Client.continue_),  # noqa: E501
    Action("interrupt", "Send SIGINT", "sent SIGINT", "i", "I", "POST /jobs/signal", "signal", _in("running"), _signal(signal.SIGINT), True),  # noqa: E501
    Action("terminate", "Send SIGTERM", "sent SIGTERM", "t", "T", "POST /jobs/signal", "signal", _in("running"), _signal(signal.SIGTERM), True),  # noqa: E501
    Action("kill", "Kill now", "killed", "k", "K", "POST /jobs/cancel", "cancel", _in("running"), _kill, True),  # noqa: E501
    Action("remove", "Remove, with its output", "removed", "d", "D", "POST /jobs/remove", "remove", _in(*ENDED_STATES), Client.remove, True),  # noqa: E501
)
# fmt: on


def of_shortcut(key: str) -> Action | None:
    """Return the action of a key without a menu."""
    return next((one for one in ACTIONS if one.shortcut == key), None)


def offered(jobs: Sequence[Document], access: Access) -> list[Action]:
    """Return what can be done to at least one of these jobs."""
    return [one for one in ACTIONS if any(one.fits(job, access) for job in jobs)]


def selectors(jobs: Iterable[Document]) -> list[str]:
    """Return the selectors of jobs and arrays."""
    return [str(job["id"]) for job in jobs]


def count(jobs: Iterable[Document]) -> int:
    """Return how many jobs rows stand for."""
    return sum(sum((job.get("members") or {"": 1}).values()) for job in jobs)


def count_running(jobs: Iterable[Document]) -> int:
    """Return how many of the jobs that rows stand for run."""
    members = (job.get("members") or {job["state"]: 1} for job in jobs)
    return sum(one.get("running", 0) for one in members)
