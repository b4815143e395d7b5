"""What `logs -f` says while a job has not started: that it waits, and why.

On a terminal that is one line, which is kept up to date by a thread and disappears when
the job starts; elsewhere it is said once. An error there ends the line alone.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread  # `threading` costs an import

from grass.cli.printing.quantities import in_local_time
from grass.cli.printing.streams import warn
from grass.cli.printing.waits import status_line
from grass.cli.printing.wording import UNSTARTED
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from grass.client.json_codec import Document

_LOOK_S = 2.0


class StartNotice:
    """Says why a job has not started, until it has or the `with` block ends."""

    def __init__(self, client: Client, job: Document) -> None:
        self._client = client
        self._job = job
        self._waiting = allocate_lock()
        self._drawing = allocate_lock()
        self._drawn = False

    def __enter__(self) -> Self:
        """Say it, if the job has not started."""
        self._waiting.acquire()
        if self._job["state"] not in UNSTARTED:
            return self
        if not status_line.is_possible():
            warn(_waits(self._job))
            return self
        self._draw(_waits(self._job))
        with CtrlCForMain():
            start_new_thread(self._keep_up, ())
        return self

    def __exit__(self, *_error: object) -> None:
        """Say no more."""
        self.end()

    def end(self) -> None:
        """Remove the line; called again it does nothing."""
        with self._drawing:
            if self._waiting.locked():
                self._waiting.release()
            if self._drawn:
                status_line.draw("")
                self._drawn = False

    def _keep_up(self) -> None:
        try:
            with self._client.beside(may_start=False) as client:
                while not self._waiting.acquire(timeout=_LOOK_S):
                    job = client.job(self._job["id"])
                    if job["state"] not in UNSTARTED:
                        break
                    self._draw(_waits(job))
            self.end()
        except (GrassError, Broken, OSError):
            self.end()

    def _draw(self, text: str) -> None:
        with self._drawing:
            if self._waiting.locked():
                status_line.draw(status_line.fitted(text))
                self._drawn = True


def _waits(job: Document) -> str:
    why = in_local_time(job["reason"] or "")
    return f"job {job['id']} is {job['state']}{f': {why}' if why else ''}"
