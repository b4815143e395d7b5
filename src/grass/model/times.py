"""Points in time: int64 microseconds UTC inside, RFC 3339 outside."""

from datetime import UTC, datetime, timedelta

LATEST = 253_402_214_399_999_999
"""A day before the year 9999 ends: no calendar here goes further, in any time zone."""
_EARLIEST = -62_135_510_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(microseconds: int | None) -> str | None:
    """Write a stored time for people and programs."""
    if microseconds is None:
        return None
    # A number that was stored wrongly must not keep the rest from being shown.
    within = min(max(microseconds, _EARLIEST), LATEST)
    moment = _EPOCH + timedelta(microseconds=within)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
