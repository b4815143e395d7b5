"""Durations and sizes, as people read them."""

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


def size_text(size: float) -> str:
    """Write a number of bytes: `512 B`, `3.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TiB"
