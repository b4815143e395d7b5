"""Durations, times and sizes, as people read them."""

from datetime import UTC, datetime

from grass.client.json_codec import Document

_SHOWN = (("d", 86400), ("h", 3600), ("m", 60))
_STEP = 1024


def brief(duration_s: float) -> str:
    """Write a duration in at most six characters: `12s`, `3m05s`, `2h10m`, `4d3h`."""
    left = max(0, int(duration_s))
    smaller = {"d": ("h", 3600), "h": ("m", 60), "m": ("s", 1)}
    for unit, size in _SHOWN:
        if left >= size:
            whole, rest = divmod(left, size)
            below, below_size = smaller[unit]
            width = 1 if unit == "d" else 2
            return f"{whole}{unit}{rest // below_size:0{width}d}{below}"
    return f"{left}s"


def lasting(text: str, now: datetime | None = None) -> str:
    """Replace `since` and a time in UTC, in a daemon's text, by a duration."""
    if " since " not in text:
        return text
    import re

    until = datetime.now(UTC) if now is None else now

    def written(found: re.Match[str]) -> str:
        try:
            began = datetime.fromisoformat(found[1])
        except ValueError:
            return found[0]
        return f" for {brief((until - began).total_seconds())}"

    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z"
    return re.sub(f" since ({stamp})", written, text)


def size_text(size: float) -> str:
    """Write a number of bytes: `512 B`, `3.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TiB"


def utc_now() -> datetime:
    """Return the present time, from which ages are counted."""
    return datetime.now(UTC)


def local(text: str | None) -> str:
    """Write a time of the API in the local zone."""
    if not text:
        return ""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def age(text: str | None, now: datetime) -> float:
    """Return the seconds since a time."""
    return (now - datetime.fromisoformat(text)).total_seconds() if text else 0


def between(start: str | None, end: str | None, now: datetime) -> float | None:
    """Return the seconds between two times, or until now; None without a start."""
    return age(start, now) - age(end, now) if start else None


def ran(one: Document, now: datetime) -> float | None:
    """Return how long a job or an attempt ran, or runs; None: it has not begun.

    A broker of the version before has the times only, and no measurement.
    """
    measured: float | None = one.get("ran_s")
    if measured is not None:
        return measured
    return between(one["started_at"], one["finished_at"], now)


def ago(at: str | None, now: datetime) -> str:
    """Write how long ago a time was; 0 s if the clocks disagree."""
    return f"{brief(max(0.0, age(at, now)))} ago" if at else ""


def ahead(at: str | None, now: datetime) -> str:
    """Write in how long a time will come."""
    return f"in {brief(max(0.0, -age(at, now)))}" if at else ""
