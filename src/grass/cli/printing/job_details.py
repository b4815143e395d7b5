"""All details of one job as text, its attempts included."""

from __future__ import annotations

from grass.cli.printing.quantities import (
    age,
    ago,
    ahead,
    brief,
    local,
    ran,
    size_text,
    utc_now,
)
from grass.cli.printing.streams import safe
from grass.cli.printing.table import render
from grass.cli.printing.wording import TINTS, asked, ending, telling, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from grass.cli.printing.table import Screen
    from grass.client.json_codec import Document

ATTEMPTS = ("ATTEMPT", "STATE", "WORKER", "UNITS", "STARTED", "RAN", "MEMORY", "ENDED")
_LABEL = 12


def text(job: Document, screen: Screen) -> str:
    """Write all details of a job."""
    now = utc_now()
    lines = [f"job {job['id']}: {safe(job['name'])}"]
    parts = (_standing(job, now), _place(job), _conditions(job, now), _times(job, now))
    for label, value in [pair for part in parts for pair in part]:
        if value:
            lines.append(f"{label:<{_LABEL}}{safe(value)}")
    body = "\n".join(lines) + "\n"
    if not job["attempts"]:
        return body
    tried = [_attempt(one, now) for one in job["attempts"]]
    return body + "\n" + render(ATTEMPTS, tried, screen, TINTS)


def _standing(job: Document, now: datetime) -> list[tuple[str, str]]:
    flags = [_lasting(job, flag, now) for flag in telling(job)]
    shown = [*(flags or [job["state"]]), ending(job)]
    return [
        ("state", ", ".join(filter(None, shown))),
        ("reason", job["reason"] or ""),
        ("command", " ".join(job["command"])),
        ("directory", job["cwd"] or ""),
    ]


def _lasting(job: Document, flag: str, now: datetime) -> str:
    since = job.get(f"{flag}_since")
    return f"{flag} for {brief(age(since, now))}" if since else flag


def _place(job: Document) -> list[tuple[str, str]]:
    index, array = job.get("index"), job.get("array")
    return [
        ("queue", job["queue"]),
        ("project", job["project"]),
        ("owner", job["owner"]),
        ("priority", str(job["priority"])),
        ("array", "" if index is None else f"{array}, index {index}"),
        ("needs", asked(job["request"]) or "nothing"),
        ("only on", job.get("wanted_worker") or ""),
        ("labels", ", ".join(job.get("labels") or ())),
        ("units", units(job["allocation"])),
        ("worker", job["worker"] or ""),
        ("pid", str(job["pid"] or "")),
    ]


def _conditions(job: Document, now: datetime) -> list[tuple[str, str]]:
    return [
        ("after", ", ".join(job.get("after") or [])),
        ("begin", _moment(job.get("begin_at"), now)),
        ("retry at", _moment(job.get("not_before"), now)),
        ("time limit", _duration(job.get("time_limit_s"))),
        ("grace", _duration(job.get("grace_s"))),
        ("retries", _retries(job)),
        ("retry lost", str(job.get("retry_lost") or "")),
        ("nice", str(job.get("nice") or "")),
    ]


def _retries(job: Document) -> str:
    if not job.get("retries"):
        return ""
    said = [f"{job.get('retries_left', 0)} of {job['retries']} left"]
    if job.get("backoff_s"):
        said.append(f"back-off {brief(job['backoff_s'])}, doubling")
    if job.get("retry_on"):
        said.append("on " + ", ".join(job["retry_on"]))
    return ", ".join(said)


def _times(job: Document, now: datetime) -> list[tuple[str, str]]:
    took = ran(job, now)
    after = "" if took is None else f", ran {brief(took)}"
    return [
        ("enqueued", _moment(job["created_at"], now)),
        ("started", _moment(job["started_at"], now)),
        ("finished", job["finished_at"] and _moment(job["finished_at"], now) + after),
        ("output", job["output"] or ""),
    ]


def _attempt(one: Document, now: datetime) -> list[str]:
    took = ran(one, now)
    peak = one["max_rss"]
    return [
        str(one["number"]),
        one["state"],
        one["worker"],
        units(one["allocation"]),
        local(one["started_at"]),
        "" if took is None else brief(took),
        "" if peak is None else size_text(peak),
        ": ".join(filter(None, [ending(one), one["reason"]])),
    ]


def _moment(text: str | None, now: datetime) -> str:
    if not text:
        return ""
    distance = ago(text, now) if age(text, now) >= 0 else ahead(text, now)
    return f"{local(text)} ({distance})"


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else brief(seconds)
