"""One line on a terminal: how many tasks are done, run and wait, and how fast."""

from __future__ import annotations

import sys
import time

import anyio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from grass.tasks.session import Session

_PAUSE_S = 0.5
_ERASE = "\r\x1b[K"


def progress_text(done: int, running: int, waiting: int, rate: float) -> str:
    """Return the line."""
    return f"{done} done, {running} running, {waiting} waiting, {rate:.3g} tasks/s"


async def show_progress(session: Session) -> None:
    """Keep the line up to date until this is cancelled; only on a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return
    began, shown = time.monotonic(), ""
    try:
        while True:
            await anyio.sleep(_PAUSE_S)
            shown = _line(session, time.monotonic() - began)
            _write(stream, _ERASE + shown)
    finally:
        if shown:
            _write(stream, _ERASE)


def _line(session: Session, passed_s: float) -> str:
    done, running, waiting = session.ended, session.running, session.waiting
    if not running and not waiting:
        return ""
    return progress_text(done, running, waiting, done / passed_s)


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
