"""The texts of `explain`: why a job waits, in numbers, or how it ended."""

from __future__ import annotations

from grass.cli.printing.quantities import (
    age,
    brief,
    clock,
    in_local_time,
    size_text,
    utc_now,
)
from grass.cli.printing.streams import counted, safe
from grass.cli.printing.table import Screen, render
from grass.cli.printing.usage_text import usage_lines
from grass.cli.printing.wording import ENDS, TINTS, number, units
from grass.model.jobs.endings import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.client.json_codec import Document

CONSTRAINTS = ("WHAT", "NEEDS", "HAS", "OF", "STATUS", "NOTE")
HOLDERS = ("HELD BY", "NAME", "UNITS", "FOR")
WORKERS = ("WORKER", "WHY IT DOES NOT START THERE")
MOST_WORKERS = 8
"""With more workers than this, the reasons are counted."""
_TIMES = ("begin", "back-off")
_TINTS = {**TINTS, "ok": "green", "short": "red"}
_IN_SHORT = {
    "free": "room for it",
    "kept": "units kept for another job",
    "busy": "all units busy",
    "drained": "drained",
    "not-ready": "not ready yet",
    "unable": "cannot start jobs",
    "unreachable": "unreachable",
    "off": "off",
    "avoided": "something of it is missing there",
    "too-small": "too small",
    "label": "label does not match",
    "pinned": "it may run on another one alone",
}
"""Why a job does not start on workers, in a few words, the shortest wait first."""


def explained(document: Document, screen: Screen) -> str:
    """Write an explanation: one line with the reason, then the numbers."""
    parts = [_headline(document)]
    if document.get("constraints"):
        shown = [_constraint(one) for one in document["constraints"]]
        parts.append(render(CONSTRAINTS, shown, screen, _TINTS))
    if document.get("holders"):
        parts.append(render(HOLDERS, _holders(document), screen))
    if len(document.get("workers") or ()) > 1:
        parts.append(render(WORKERS, prospects(document["workers"]), screen))
    used = usage_lines(document, screen)
    told = (_turn(document), _learned(document), _measured(document, used))
    parts += [_lines(part) for part in told if part]
    if used:
        # A table is escaped already, and has its colours.
        parts.append("".join(f"{line}\n" for line in used))
    if document.get("last_lines"):
        parts.append(_lines([_last_lines(document), *_indented(document)]))
    return "\n".join(parts)


def _headline(document: Document) -> str:
    why = in_local_time(document.get("why") or "")
    state = document["state"]
    stands = ENDS.get(state, f"is {state}")
    return safe(f"job {document['id']} {stands}: {why}".rstrip(": ")) + "\n"


def _constraint(one: Document) -> list[str]:
    return [
        str(one["what"]),
        *(_amount(one, field) for field in ("need", "have", "of")),
        "ok" if one["ok"] else "short",
        in_local_time(one.get("note") or ""),
    ]


def _amount(one: Document, field: str) -> str:
    value = one.get(field)
    if value and one["what"] in _TIMES:
        return in_local_time(value) if field == "need" else clock(value)
    try:
        return "" if value is None else number(float(value), one["what"])
    except ValueError:
        return str(value)


def prospects(workers: Sequence[Document]) -> list[list[str]]:
    """Return a row for each worker, or for each reason if there are many workers."""
    if len(workers) <= MOST_WORKERS:
        return [[one["worker"], in_local_time(one["why"])] for one in workers]
    named: dict[str, list[str]] = {reason: [] for reason in _IN_SHORT}
    for one in workers:
        named.setdefault(one["reason"], []).append(one["worker"])
    return [
        [names[0] if len(names) == 1 else counted(len(names), "worker"), _short(reason)]
        for reason, names in named.items()
        if names
    ]


def _short(reason: str) -> str:
    return _IN_SHORT.get(reason, reason)


def _holders(document: Document) -> list[list[str]]:
    now = utc_now()
    return [
        [
            str(one["job"] or ""),
            one["name"],
            units(one["units"]),
            brief(age(one["since"], now)) if one.get("since") else "",
        ]
        for one in document["holders"]
    ]


def _learned(document: Document) -> list[str]:
    """Say what is known of its type, if its memory is looked up."""
    return [f"vram auto: {safe(line)}" for line in document.get("learned") or ()]


def _turn(document: Document) -> list[str]:
    """Write its place in the queue and its estimated start, where known."""
    said = []
    if document.get("position"):
        said.append(f"place in its queue: {document['position']}")
    if document.get("overtaken"):
        said.append(f"overtaken: {document['overtaken']} times")
    if document.get("estimated_start_at"):
        at = document["estimated_start_at"]
        source = document.get("estimate_from")
        past = age(at, utc_now()) > 0
        start = "starts soon" if past else f"starts about {in_local_time(at)}"
        said.append(start + (f" ({source})" if source else ""))
    return said


def _measured(document: Document, used: list[str]) -> list[str]:
    """Write the measurements of the last attempt, but for those in a table below."""
    facts = (
        ("exit code", "exit_code", str),
        ("signal", "signal", signal_name),
        ("ran for", "took_s", brief),
        ("processor time", "cpu_s", brief),
        ("most memory", "max_rss", size_text),
        ("attempts", "attempts", str),
    )
    return [
        f"{label}: {text(document[field])}"
        for label, field, text in facts
        if document.get(field) is not None
        and (document[field] or field != "attempts")
        and not (used and field == "max_rss")
    ]


def _last_lines(document: Document) -> str:
    frames = document.get("frames_left_out") or 0
    left_out = f" ({frames:,} earlier frames left out)" if frames else ""
    return f"last lines of its output{left_out}:"


def _indented(document: Document) -> list[str]:
    return [f"  {line}" for line in document["last_lines"]]


def _lines(texts: list[str]) -> str:
    return "".join(safe(text) + "\n" for text in texts)
