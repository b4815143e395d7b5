"""Durations and sizes, as people read them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

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
    """Write `since` and a time, in what a daemon says, as how long that is.

    A daemon says when something began in the time of Greenwich, for programs too.
    """
    if " since " not in text:
        return text
    import re
    from datetime import UTC, datetime

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
