"""The one line of `wait` without a terminal: that only paused queues are left.

Such a wait lasts until a person acts. A thread looks for it, less and less often; an
error there ends the looking, never the waiting.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread  # `threading` costs an import

from grass.cli.printing.streams import warn
from grass.cli.printing.wording import UNFINISHED_STATES
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

_FIRST_LOOK_S = 0.5
_LONGEST_LOOK_S = 30.0
_MOST_LOOKED_AT = 200
_PAUSED = " is paused"


class PauseNotice:
    """Says once, beside a wait, that paused queues hold all that is left."""

    def __init__(self, client: Client, select: Sequence[str]) -> None:
        self._client = client
        self._select = select
        self._waiting = allocate_lock()

    def __enter__(self) -> Self:
        """Begin to look, in a thread."""
        self._waiting.acquire()
        with CtrlCForMain():
            start_new_thread(self._run, ())
        return self

    def __exit__(self, *_error: object) -> None:
        """Look no more."""
        self._waiting.release()

    def interject(self, text: str) -> None:
        """Print a warning."""
        warn(text)

    def _run(self) -> None:
        look_s = _FIRST_LOOK_S
        try:
            with self._client.beside(may_start=False) as client:
                while not self._waiting.acquire(timeout=look_s):
                    look_s = min(_LONGEST_LOOK_S, 2 * look_s)
                    reason = self._pause(client)
                    if reason and self._waiting.locked():
                        warn(f"still waiting: {reason}")
                        return
        except (GrassError, Broken, OSError):
            return

    def _pause(self, client: Client) -> str:
        for _ in client.jobs(states=["running"], select=self._select):
            return ""
        left = client.jobs(states=UNFINISHED_STATES, select=self._select)
        looked_at = (job for job, _ in zip(left, range(_MOST_LOOKED_AT), strict=False))
        return common_pause(job["reason"] or "" for job in looked_at)


def common_pause(reasons: Iterable[str]) -> str:
    """Return the first reason if all are paused queues or other jobs, else nothing."""
    first = ""
    for reason in reasons:
        if reason.endswith(_PAUSED):
            first = first or reason
        elif not reason.startswith("waits for job"):
            return ""
    return first
