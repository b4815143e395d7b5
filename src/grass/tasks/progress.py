"""One line on a terminal: how many tasks are done, run and wait, and how fast."""

from __future__ import annotations

import sys
import time

import anyio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from grass.tasks.session import Session

_PAUSE_S = 0.5
_ERASE = "\r\x1b[K"


def progress_text(done: int, running: int, waiting: int, rate: float) -> str:
    """Return the line."""
    return f"{done} done, {running} running, {waiting} waiting, {rate:.3g} tasks/s"


def machines_text(machines: Mapping[str, int | None]) -> str:
    """Say how many tasks run on other machines; None: one is still to come."""
    texts = [
        f"{name} waits" if count is None else f"{count} on {name}"
        for name, count in machines.items()
    ]
    return f" ({', '.join(texts)})" if texts else ""


class Progress:
    """The line of a session; elsewhere than on a terminal nothing is written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stream = sys.stderr
        self._began = time.monotonic()
        self._is_shown = False

    async def show(self) -> None:
        """Keep the line up to date until this is cancelled."""
        if self._stream is None or not self._stream.isatty():
            return
        try:
            while True:
                await anyio.sleep(_PAUSE_S)
                self._draw()
        finally:
            self.erase()

    def erase(self) -> None:
        """Remove the line until it is next drawn: the program may want to print."""
        if self._is_shown:
            self._is_shown = False
            self._write(_ERASE)

    def _draw(self) -> None:
        session = self._session
        running, waiting = session.running, session.waiting
        if not running and not waiting:
            self.erase()
            return
        rate = session.ended / (time.monotonic() - self._began)
        line = progress_text(session.ended, running, waiting, rate)
        self._is_shown = True
        self._write(_ERASE + line + machines_text(session.machines()))

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
