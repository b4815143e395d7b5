"""The keeper's log: its standard error, in the form of the daemon's log.

The log lies on the disk that may be full, and the keeper must go on there. A line that
cannot be written is dropped. Exceptions that Python prints become events as well.
"""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from grass.log_lines import LINES, LogEvent

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TextIO


class StderrLog(io.TextIOBase):
    """Writes to standard error without a buffer, and ignores failures."""

    form = "text"

    def write(self, text: str) -> int:
        """Write the text or lose it."""
        with suppress(OSError):
            os.write(2, text.encode(errors="backslashreplace"))
        return len(text)


def open_log(form: str = "text") -> None:
    """Send standard error to the log, and log exceptions that end the process."""
    StderrLog.form = form
    sys.stderr = cast("TextIO", StderrLog())
    sys.excepthook = _log_exception


def write(level: str, event: str, **fields: object) -> None:
    """Log an event."""
    line = LINES[StderrLog.form](time.time(), level, LogEvent(event, fields))
    sys.stderr.write(line + "\n")


def log_defect() -> None:
    """Log the exception that is being handled."""
    sys.excepthook(*sys.exc_info())


def _log_exception(
    _kind: type[BaseException] | None,
    error: BaseException | None,
    _where: TracebackType | None,
) -> None:
    if error is None:
        return
    text = f"{type(error).__name__}: {error}"
    frames = _frames(error.__traceback__)
    write("error", "defect", logger="grass.keeper", error=text, traceback=frames)


def _frames(where: TracebackType | None) -> str:
    """Format a traceback; the module for that would cost every keeper 0.5 MB."""
    lines = []
    while where is not None:
        code = where.tb_frame.f_code
        lines.append(f"{code.co_filename}:{where.tb_lineno} in {code.co_name}")
        where = where.tb_next
    return "\n".join(lines)
