"""An attempt as its worker knows it, and how it is told to others."""

from typing import Any

import msgspec

from grass.link.messages import Exited, Report, Started
from grass.model.resources import Allocation

Verb = dict[str, Any]


class Held(msgspec.Struct):
    """An attempt this machine answers for."""

    allocation: Allocation
    after: str | None = None
    """Whose units it takes over; until then it holds nothing."""
    verb: Verb | None = None
    """What the keeper was asked, until it says that it started."""
    started: Started | None = None
    stopping: bool = False
    suspended: bool = False
    recalled: bool = False
    placed_at: int = 0
    """As its start said, for the answer should it be given back."""
    exited: Exited | None = None


def meta_of(held: Held, line: Verb) -> Verb:
    """Find what was to be remembered of an attempt: here, or as the keeper tells."""
    meta: Verb = held.verb["meta"] if held.verb is not None else line.get("meta") or {}
    return meta


def cpu_s(usage: Verb) -> float | None:
    """Give how long an attempt computed, where that was measured."""
    if not usage:
        return None
    total: float = usage.get("user_s", 0.0) + usage.get("system_s", 0.0)
    return round(total, 6)


def clean(reason: str | None) -> str | None:
    """Make a reason real text; it may quote a program's name, which need not be."""
    return None if reason is None else reason.encode("utf-8", "replace").decode()


def stop_verb(attempt: str) -> Verb:
    """Ask the keeper to end an attempt at once."""
    reason = "cancelled"
    return {"v": "stop", "id": attempt, "signal": 15, "grace": 0.0, "reason": reason}


def report_of(attempt: str, held: Held) -> Report:
    """Give what a `Hello` tells of an attempt that has not ended."""
    started = held.started
    if started is None:
        return Report(
            attempt,
            held.allocation,
            running=False,
            stopping=held.stopping,
            suspended=held.suspended,
        )
    return Report(
        attempt=attempt,
        allocation=held.allocation,
        running=True,
        pid=started.pid,
        started_at=started.at,
        output=started.output,
        output_offset=started.output_offset,
        stderr=started.stderr,
        stderr_offset=started.stderr_offset,
        stopping=held.stopping,
        suspended=held.suspended,
    )
