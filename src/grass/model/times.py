"""Times: int64 microseconds UTC in the store, RFC 3339 in the API."""

from datetime import UTC, datetime, timedelta

from grass.errors import UsageError

LATEST = 253_402_214_399_999_999
"""A day before the end of year 9999: `datetime` goes no further, in any time zone."""
_EARLIEST = -62_135_510_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(microseconds: int | None) -> str | None:
    """Return a stored time as RFC 3339 in UTC."""
    if microseconds is None:
        return None
    # A wrong number in the store must not break the whole reply.
    within = min(max(microseconds, _EARLIEST), LATEST)
    moment = _EPOCH + timedelta(microseconds=within)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(at: int) -> str:
    """Return a stored time as RFC 3339 in UTC, to the second."""
    return (rfc3339(at - at % 1_000_000) or "").replace(".000Z", "Z")


def microseconds(text: str) -> int:
    """Read a time with its offset from UTC as it is stored."""
    try:
        at = datetime.fromisoformat(text)
        # In UTC it must still be within the years that can be written.
        since = at.astimezone(UTC) - _EPOCH if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        since = None
    if since is None:
        raise UsageError(
            f"`{text}` is not a time with an offset", "write 2030-01-31T08:00:00+01:00"
        )
    return since // timedelta(microseconds=1)
