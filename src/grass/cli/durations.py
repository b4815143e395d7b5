"""Durations and sizes, as people write and read them."""

from grass.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SHOWN = (("d", 86400), ("h", 3600), ("m", 60))
_LONGEST_S = 100 * 365 * 86400
_STEP = 1024


def seconds(text: str) -> float:
    """Read `90`, `90s`, `10m`, `1.5h` or `30d`."""
    unit = text[-1:] if text[-1:] in _UNITS else ""
    try:
        value = float(text.removesuffix(unit)) * _UNITS.get(unit, 1)
    except ValueError:
        value = -1
    if not 0 <= value <= _LONGEST_S:
        raise UsageError(f"`{text}` is not a duration", "write 90s, 10m, 2h or 30d")
    return value


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


def size_text(size: float) -> str:
    """Write a number of bytes: `512 B`, `3.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TiB"
