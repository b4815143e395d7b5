"""Times that a daemon tells, as clocks here show them and as ages."""

from __future__ import annotations

from datetime import UTC, datetime

from grass.cli.printing.durations import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document


def utc_now() -> datetime:
    """Return the time that ages are counted from."""
    return datetime.now(UTC)


def local(text: str | None) -> str:
    """Write a time of the API as a clock on the wall here shows it."""
    if not text:
        return ""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def age(text: str | None, now: datetime) -> float:
    """Return how many seconds ago something was."""
    return (now - datetime.fromisoformat(text)).total_seconds() if text else 0


def between(start: str | None, end: str | None, now: datetime) -> float | None:
    """Return how long something took, or takes; None when it has not begun."""
    return age(start, now) - age(end, now) if start else None


def ran(one: Document, now: datetime) -> float | None:
    """Return how long a job or an attempt ran, or runs; None: it has not begun.

    What was measured counts; a broker of the version before tells the times only.
    """
    measured: float | None = one.get("ran_s")
    if measured is not None:
        return measured
    return between(one["started_at"], one["finished_at"], now)


def ago(at: str | None, now: datetime) -> str:
    """Write how long ago something was; a clock that goes wrong makes that nothing."""
    return f"{brief(max(0.0, age(at, now)))} ago" if at else ""


def ahead(at: str | None, now: datetime) -> str:
    """Write in how long something will be."""
    return f"in {brief(max(0.0, -age(at, now)))}" if at else ""
