"""Points in time as people write them, in the zone of the caller."""

from datetime import datetime, time, timedelta

from grass.errors import UsageError
from grass.model.durations import seconds


def moment(text: str, now: datetime | None = None) -> str:
    """Read `22:00`, `2030-11-20T08:00` or `+2h`, and write it as RFC 3339.

    A time of day that has passed already means tomorrow.
    """
    now = datetime.now().astimezone() if now is None else now
    if text.startswith("+"):
        return (now + timedelta(seconds=seconds(text[1:]))).isoformat()
    try:
        found = _time_of_day(text, now) or datetime.fromisoformat(text)
        return (found if found.tzinfo else found.astimezone()).isoformat()
    except (ValueError, TypeError, OverflowError, OSError):
        raise UsageError(
            f"`{text}` is not a time", "write 22:00, 2030-11-20T08:00 or +2h"
        ) from None


def _time_of_day(text: str, now: datetime) -> datetime | None:
    if "-" in text or ":" not in text:
        return None
    asked = datetime.combine(now.date(), time.fromisoformat(text))
    passed = asked <= now.replace(tzinfo=None)
    return asked + timedelta(days=1) if passed else asked
