"""The file that a command leaves when it fails by a defect of Grass.

It holds the traceback and the versions, and neither the words of the command nor its
environment, which may have secrets. The state directory has one, of the last defect.
"""

from __future__ import annotations

import os
import platform
import sys
import traceback
from datetime import UTC, datetime

from grass import __version__
from grass.client.connection import last_answer
from grass.client.private_files import replace_private
from grass.config import home
from grass.errors import GrassError

_MAX_LENGTH = 300


def one_line(error: Exception) -> str:
    """Return an exception's class and message as one line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."


def write_crash_report(error: Exception, command: str) -> str | None:
    """Write the file, and return its path.

    Where it cannot be written the report goes to stderr, and there is no path.
    """
    report = _report(error, command)
    path = home().crash_report
    try:
        os.makedirs(home().folder, mode=0o700, exist_ok=True)
        replace_private(path, report)
    except (OSError, GrassError):
        sys.stderr.write(report)
        return None
    return path


def _report(error: Exception, command: str) -> str:
    answer = f"{last_answer.peer} {last_answer.version}" if last_answer.peer else "none"
    return (
        f"time: {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n"
        f"command: grass {command}\n"
        f"version: grass {__version__}, Python {platform.python_version()}\n"
        f"last answer: {answer}\n\n" + "".join(traceback.format_exception(error))
    )
