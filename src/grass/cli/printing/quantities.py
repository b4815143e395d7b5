"""Durations, times and sizes, as people read them."""

from datetime import UTC, datetime

from grass.client.json_codec import Document

_SHOWN = (("d", 86400), ("h", 3600), ("m", 60))
_STEP = 1024
_SOON_S = 600
_DAYS_IN_WEEK = 7
_PRECISION = ((172_800, 86_400), (36_000, 3600), (600, 60))
"""To how many seconds a duration is rounded, and from which length on."""
_STAMP = len("2026-01-02T03:04:55Z")


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


def rough(duration_s: float) -> str:
    """Write a duration to the digit that matters: `42s`, `3m05s`, `2h10m`, `23h`."""
    for from_s, size in _PRECISION:
        if duration_s >= from_s:
            duration_s = round(duration_s / size) * size
            break
    text = brief(round(duration_s))
    for nothing in ("m00s", "h00m", "d0h"):
        if text.endswith(nothing):
            return text.removesuffix(nothing[1:])
    return text


def in_local_time(text: str, now: datetime | None = None) -> str:
    """Write the times in UTC of a daemon's text for the reader: `for 5m05s` since one.

    A time that something waits for is told with its distance: `05:00 tomorrow, in 23h`.
    """
    if "Z" not in text:
        return text
    present = datetime.now(UTC) if now is None else now
    written = list[str]()
    for word in text.split(" "):
        stamp = word.rstrip(",;:.)")
        at = _instant(stamp)
        if at is None:
            written.append(word)
            continue
        rest = word[len(stamp) :]
        if written and written[-1] == "since":
            written[-1] = "for"
            written.append(brief((present - at).total_seconds()) + rest)
        else:
            written.append(moment(at, present) + rest)
    return " ".join(written)


def moment(at: datetime, now: datetime) -> str:
    """Write a time in the local zone and its distance: `05:00 tomorrow, in 23h`."""
    here, today = at.astimezone(), now.astimezone()
    left_s = (at - now).total_seconds()
    seconds = ":%S" if abs(left_s) < _SOON_S else ""
    clock = here.strftime(f"%H:%M{seconds}")
    days = (here.date() - today.date()).days
    named = {0: clock, 1: f"{clock} tomorrow", -1: f"{clock} yesterday"}.get(days)
    if named is None:
        is_near = 0 < days < _DAYS_IN_WEEK
        named = here.strftime("%H:%M on %A" if is_near else "%Y-%m-%d %H:%M")
    distance = f"in {rough(left_s)}" if left_s >= 0 else f"{rough(-left_s)} ago"
    return f"{named}, {distance}"


def _instant(word: str) -> datetime | None:
    """Read a time as a daemon writes it; None: it is another word."""
    if len(word) < _STAMP or not (word.endswith("Z") and word[10] == "T"):
        return None
    try:
        return datetime.fromisoformat(word)
    except ValueError:
        return None


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


def clock(text: str) -> str:
    """Write the time of day of a time of the API, in the local zone."""
    return datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S")


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
