"""The keeper's log: its standard error, written so that a write never fails.

The log lies on the disk that may be full, and whoever has something to say there is in
the middle of what must go on. What cannot be written is dropped.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing import TextIO


class Log(io.TextIOBase):
    """Writes to standard error as far as that goes, and keeps nothing back."""

    def write(self, text: str) -> int:
        """Write the text or lose it."""
        with suppress(OSError):
            os.write(2, text.encode(errors="backslashreplace"))
        return len(text)


def open_log() -> None:
    """Have everything that is written to standard error go to the log."""
    sys.stderr = cast("TextIO", Log())


def log_defect() -> None:
    """Write down the exception that is being handled."""
    sys.excepthook(*sys.exc_info())
