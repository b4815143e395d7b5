"""What the keeper's lines say of an attempt, as the worker keeps and tells it.

Pure. A keeper that took over from a killed one may not know how an attempt ended; what
the kernel still knows of it is filled in here, before anybody acts on the line.
"""

import os
from collections.abc import Callable
from typing import Any

from grass.link.messages import Exited, Started
from grass.worker.core.held_attempt import Held

Line = dict[str, Any]

OWN_DEATH = "the keeper was killed"
"""How the reason begins of an exit that is lost for no other cause."""
OF_A_START = "`start`"
"""How an error begins that answers a start; others may speak of the same attempt."""


def tell_exits(line: Line, status_of: Callable[[str], int | None]) -> None:
    """Fill in the exits that a killed keeper took along, where the kernel knows."""
    for entry in line["attempts"] if line.get("e") == "hello" else [line]:
        status = status_of(entry["id"]) if entry.get("lost") else None
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            entry["code"] = code if code >= 0 else None
            entry["signal"] = -code if code < 0 else None
            entry["lost"], entry["reason"] = False, _lasting(entry.get("reason"))


def _lasting(reason: str | None) -> str | None:
    """Give a reason that holds although the exit is known after all.

    Why the attempt was stopped does: a time limit is none the less reached.
    """
    gone = reason is None or reason.startswith(OWN_DEATH)
    return None if gone else reason


def held_of(line: Line) -> Held:
    """Make an attempt of which only the keeper knows."""
    meta, after = line["meta"], None
    if line["state"] == "waiting":
        # Whom it follows now; the one it was started behind may have left.
        after = line.get("after") or meta.get("after")
    begun = bool(line.get("begun", True))
    return Held(meta["allocation"], after, placed_at=placed_at(line), begun=begun)


def placed_at(line: Line) -> int:
    """Tell when the attempt was placed that the keeper lists; 0: unknown."""
    return line["meta"].get("placed_at") or 0


def started_of(held: Held, line: Line) -> Started:
    """Read that an attempt's program runs."""
    meta = _meta(held, line)
    return Started(
        line["id"],
        line["pid"],
        line["at"],
        meta.get("output"),
        line.get("offset") or 0,
        meta.get("stderr"),
        line.get("stderr_offset") or 0,
        held.placed_at,
    )


def exited_of(held: Held, line: Line) -> Exited:
    """Read how an attempt ended."""
    usage = line.get("rusage") or {}
    output, stderr = _paths(held, line)
    return Exited(
        line["id"],
        line["at"],
        line.get("code"),
        line.get("signal"),
        _clean(line.get("reason")),
        bool(line.get("lost")),
        line.get("output_bytes") or 0,
        usage.get("max_rss"),
        _cpu_s(usage),
        output,
        stderr,
        held.placed_at,
        line.get("ran_s"),
    )


def _paths(held: Held, line: Line) -> tuple[str | None, str | None]:
    """Give where an attempt wrote, or may have written if its start is unknown."""
    if held.started is not None:
        return held.started.output, held.started.stderr
    meta = _meta(held, line) if line.get("lost") else {}
    return meta.get("output"), meta.get("stderr")


def refusal_of(line: Line) -> str | None:
    """Tell why the keeper will not start an attempt, if that is what an error says.

    That it knows no such attempt is no refusal: a stop may have crossed the answer to
    a recall, and the attempt may have been placed anew by now.
    """
    message = line.get("message")
    if not isinstance(message, str) or not message.startswith(OF_A_START):
        return None
    return message.removeprefix(OF_A_START).removeprefix(":").strip()


def _meta(held: Held, line: Line) -> Line:
    """Find what was to be remembered of an attempt: here, or as the keeper tells."""
    meta: Line = held.verb["meta"] if held.verb is not None else line.get("meta") or {}
    return meta


def _cpu_s(usage: Line) -> float | None:
    """Give how long an attempt computed, where that was measured."""
    if not usage:
        return None
    total: float = usage.get("user_s", 0.0) + usage.get("system_s", 0.0)
    return round(total, 6)


def _clean(reason: str | None) -> str | None:
    """Make a reason real text; it may quote a program's name, which need not be."""
    return None if reason is None else reason.encode("utf-8", "replace").decode()
