"""What `wait` tells besides counts: when jobs may have ended, or why none runs."""

from __future__ import annotations

import time
from datetime import datetime

from grass.cli.printing.quantities import in_local_time, rough, utc_now
from grass.client.client import Client
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FRESH_S = 5.0
"""How long an estimate or a reason is told before it is read again."""


class Outlook:
    """When jobs may have ended, or why none of them runs; read now and then."""

    def __init__(self, client: Client, select: Sequence[str]) -> None:
        self._client = client
        self._select = select
        self._read_at = 0.0
        self._ran = False
        self._ends: datetime | None = None
        self._reason = ""

    def text(self, first: int | None, *, runs: bool) -> str:
        """Write what is to be expected; `first` is the first unfinished job."""
        now = time.monotonic()
        if now - self._read_at > _FRESH_S or runs != self._ran:
            self._read_at, self._ran = now, runs
            if runs:
                self._ends = self._estimated()
            else:
                self._reason = self._why(first)
        if not runs:
            return f": {self._reason}" if self._reason else ""
        left_s = 0.0
        if self._ends is not None:
            left_s = (self._ends - utc_now()).total_seconds()
        return f", about {rough(left_s)} left" if left_s >= 1 else ""

    def _estimated(self) -> datetime | None:
        try:
            at = self._client.estimate(self._select)["ends_at"]
        except GrassError:
            # A daemon of an earlier version.
            return None
        return datetime.fromisoformat(at) if at else None

    def _why(self, first: int | None) -> str:
        if first is None:
            return ""
        job = self._client.job(first)
        return in_local_time(job["reason"] or "")
