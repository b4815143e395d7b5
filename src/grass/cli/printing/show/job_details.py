"""All details of one job as text, its attempts included."""

from __future__ import annotations

from grass.cli.printing.command_text import command_text
from grass.cli.printing.quantities import (
    age,
    ago,
    ahead,
    brief,
    in_local_time,
    local,
    ran,
    size_text,
    utc_now,
)
from grass.cli.printing.streams import safe
from grass.cli.printing.table import Fit, lines
from grass.cli.printing.usage_text import usage_lines
from grass.cli.printing.wording import (
    TINTS,
    asked,
    ending,
    owner,
    state,
    telling,
    units,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any

    from grass.cli.printing.table import Screen
    from grass.client.json_codec import Document

ATTEMPTS = ("ATTEMPT", "STATE", "WORKER", "UNITS", "STARTED", "RAN", "MEMORY", "ENDED")
_LABEL = 12


def text(job: Document, screen: Screen) -> str:
    """Write all details of a job."""
    told = [screen.paint(f"job {job['id']}: {safe(job['name'])}", "bold")]
    composed = {**job, **_composed(job, screen)}
    for field, label, write in _LINES:
        value = safe(write(composed.get(field)))
        if value:
            shown = screen.paint(value, _tint(job)) if field == "state" else value
            told.append(screen.paint(f"{label:<{_LABEL}}", "dim") + shown)
    used = usage_lines(job, screen)
    told += ["", *used] if used else []
    if not job["attempts"]:
        return "".join(line + "\n" for line in told)
    now = utc_now()
    tried = [_attempt(one, now) for one in job["attempts"]]
    table = lines(ATTEMPTS, tried, screen, TINTS, Fit(firm=(0, 1, 4)))
    return "".join(line + "\n" for line in (*told, "", *table))


def _tint(job: Document) -> str:
    return TINTS.get(next(iter(telling(job)), job["state"]), "")


def _composed(job: Document, screen: Screen) -> Document:
    """Return the fields whose lines also need other fields of the job."""
    return {
        "state": screen.signs.of(state(job)) + _state(job),
        "command": command_text(job),
        "array": _array(job),
        "retries": _retries(job),
        "finished_at": _finished(job),
    }


def _state(job: Document) -> str:
    now = utc_now()
    flags = [_lasting(job, flag, now) for flag in telling(job)]
    return ", ".join(filter(None, [*(flags or [job["state"]]), ending(job)]))


def _lasting(job: Document, flag: str, now: datetime) -> str:
    since = job.get(f"{flag}_since")
    return f"{flag} for {brief(age(since, now))}" if since else flag


def _array(job: Document) -> str:
    index = job.get("index")
    return "" if index is None else f"{job.get('array')}, index {index}"


def _retries(job: Document) -> str:
    if not job.get("retries"):
        return ""
    said = [f"{job.get('retries_left', 0)} of {job['retries']} left"]
    if job.get("backoff_s"):
        said.append(f"back-off {brief(job['backoff_s'])}, doubling")
    if job.get("retry_on"):
        said.append("on " + ", ".join(job["retry_on"]))
    return ", ".join(said)


def _finished(job: Document) -> str:
    if not job["finished_at"]:
        return ""
    took = ran(job, utc_now())
    after = "" if took is None else f", ran {brief(took)}"
    return _moment(job["finished_at"]) + after


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


def _moment(text: str | None) -> str:
    if not text:
        return ""
    now = utc_now()
    distance = ago(text, now) if age(text, now) >= 0 else ahead(text, now)
    return f"{local(text)} ({distance})"


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else brief(seconds)


def _limit_signal(text: str | None) -> str:
    name, _, before_s = (text or "").partition("@")
    return f"{name} {brief(float(before_s))} before the time limit" if name else ""


def _given(value: object) -> str:
    return str(value or "")


def _reason(text: str | None) -> str:
    return in_local_time(text or "")


def _owner(actor: str | None) -> str:
    return owner(actor or "")


def _listed(values: list[str] | None) -> str:
    return ", ".join(values or ())


def _pairs(values: Document | None) -> str:
    from shlex import quote

    return " ".join(f"{name}={quote(text)}" for name, text in (values or {}).items())


def _input(kind: str | None) -> str:
    """Write what a job reads from; nothing for most."""
    return {"pipe": "a pipe", "pty": "a terminal"}.get(kind or "", "")


def _needs(request: Document) -> str:
    return asked(request) or "nothing"


_LINES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("state", "state", _given),
    ("reason", "reason", _reason),
    ("command", "command", _given),
    ("guest", "guest", lambda pid: f"process {pid}" if pid else ""),
    ("params", "parameters", _pairs),
    ("variables", "variables", _listed),
    ("shell_program", "shell", _given),
    ("stdin", "stdin", _input),
    ("cwd", "directory", _given),
    ("queue", "queue", _given),
    ("project", "project", _given),
    ("owner", "owner", _owner),
    ("priority", "priority", str),
    ("array", "array", _given),
    ("max_fails", "max fails", _given),
    ("request", "needs", _needs),
    ("gpu_model", "GPU model", _given),
    ("policy", "policy", _given),
    ("job_type", "type", _given),
    ("learned", "learned", _listed),
    ("enforce", "enforced", _given),
    ("wanted_worker", "only on", _given),
    ("labels", "labels", _listed),
    ("pool", "pool", _given),
    ("allocation", "units", units),
    ("worker", "worker", _given),
    ("pid", "pid", _given),
    ("after", "after", _listed),
    ("begin_at", "begin", _moment),
    ("not_before", "retry at", _moment),
    ("time_limit_s", "time limit", _duration),
    ("limit_signal", "signal", _limit_signal),
    ("grace_s", "grace", _duration),
    ("retries", "retries", _given),
    ("retry_lost", "retry lost", _given),
    ("nice", "nice", _given),
    ("created_at", "enqueued", _moment),
    ("started_at", "started", _moment),
    ("finished_at", "finished", _given),
    ("output", "output", _given),
)
"""The lines of a job: the field, its label, and how its value is written."""
