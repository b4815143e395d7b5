"""One line on a terminal: how many tasks are done, run and wait, and how fast."""

from __future__ import annotations

import shutil
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


def machines_text(
    machines: Mapping[str, int | None], reasons: Mapping[str, str]
) -> str:
    """Say how many tasks run on other machines, or why one is still to come."""
    texts = []
    for name, count in machines.items():
        why = f": {reasons[name]}" if reasons.get(name) else ""
        texts.append(f"{name} waits{why}" if count is None else f"{count} on {name}")
    return f" ({', '.join(texts)})" if texts else ""


class Progress:
    """The line of a session; elsewhere than on a terminal nothing is written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stream = sys.stderr
        self._began = time.monotonic()
        self._is_shown = False
        self.reasons: dict[str, str] = {}
        """Why machines are still to come, by name."""

    @property
    def is_seen(self) -> bool:
        """Whether somebody looks at the line."""
        return self._stream is not None and self._stream.isatty()

    async def show(self) -> None:
        """Keep the line up to date until this is cancelled."""
        if not self.is_seen:
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
        elsewhere = machines_text(session.machines(), self.reasons)
        self._write(_ERASE + (line + elsewhere)[: shutil.get_terminal_size()[0] - 1])

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
