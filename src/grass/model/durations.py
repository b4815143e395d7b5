"""Durations, as people write them."""

import math

from grass.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LONGEST_WRITTEN_S = 100 * 365 * 86400
_SIXTY = 60
LONGEST_S = 1e9
"""The longest duration of a request or a setting."""
SHORTEST_LEASE_S = 4.0
"""The shortest lease of a worker: some heartbeats must fit into it."""


def seconds(text: str) -> float:
    """Parse `90`, `90s`, `10m`, `1.5h`, `2h30m`, `30d`, `1:30:00` or `1-02:00:00`."""
    try:
        value = _with_days(text) if "-" in text else _clock_or_sum(text)
    except ValueError:
        value = -1
    if not 0 <= value <= _LONGEST_WRITTEN_S:
        raise UsageError(f"`{text}` is not a duration", "write 90s, 10m, 2h or 30d")
    return value


def duration_text(duration_s: float) -> str:
    """Write a duration in whole seconds, as `seconds` reads it: `1h30m`."""
    left, parts = round(duration_s), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def rounded_up(duration_s: float) -> float:
    """Return three digits of a duration, so that there are not too many of them."""
    if duration_s <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(duration_s)) - 2)
    return math.ceil(round(duration_s / step, 6)) * step


def _with_days(text: str) -> float:
    """Parse days before hours, which minutes and seconds may follow."""
    days, _, clock = text.partition("-")
    parts = clock.split(":")
    whole = _clock(":".join([*parts, *["00"] * (3 - len(parts))]))
    if not days.isdecimal() or whole >= _UNITS["d"]:
        raise ValueError(text)
    return _number(days) * _UNITS["d"] + whole


def _clock_or_sum(text: str) -> float:
    return _clock(text) if ":" in text else _sum(text)


def _clock(text: str) -> float:
    """Parse hours, minutes and seconds; two parts are ambiguous and refused."""
    hours, minutes, rest = (_number(part) for part in text.split(":"))
    if not (hours.is_integer() and minutes < _SIXTY and rest < _SIXTY):
        raise ValueError(text)
    return 3600 * hours + 60 * minutes + rest


def _sum(text: str) -> float:
    if text[-1:] not in _UNITS:
        return _number(text)
    total, digits = 0.0, ""
    for letter in text:
        if letter in _UNITS:
            total += _number(digits) * _UNITS[letter]
            digits = ""
        else:
            digits += letter
    return total


def _number(text: str) -> float:
    if not text.isascii() or not text.replace(".", "", 1).isdecimal():
        raise ValueError(text)
    return float(text)
