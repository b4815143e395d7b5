"""Points in time: int64 microseconds UTC inside, RFC 3339 outside."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(microseconds: int | None) -> str | None:
    """Write a stored time for people and programs."""
    if microseconds is None:
        return None
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
