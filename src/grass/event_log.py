"""The daemon's log: one line for each event, in one form for all loggers.

A module of grass logs with an `EventLog`: the name of an event, which is in the
reference page, and fields. No field holds a secret: no token, code, join line, value of
an environment variable. Loggers of libraries write the event `library.message`.
"""

import logging
import sys
import traceback
from typing import Any

from grass.log_lines import LINES, LogEvent


class EventLog:
    """Logs events under the name of a module."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, **fields: object) -> None:
        """Log a change that is expected."""
        self._logger.info(LogEvent(event, fields))

    def warning(self, event: str, **fields: object) -> None:
        """Log a problem that the daemon coped with."""
        self._logger.warning(LogEvent(event, fields))

    def error(self, event: str, **fields: object) -> None:
        """Log a problem that a person has to solve."""
        self._logger.error(LogEvent(event, fields))

    def defect(self, error: BaseException, **fields: object) -> None:
        """Log an exception that only a mistake in grass explains."""
        event = LogEvent("defect", {"logger": self._logger.name, **fields})
        self._logger.error(event, exc_info=error)

    def write(self, event: LogEvent) -> None:
        """Log an event that a core without I/O has made: a problem it coped with."""
        self._logger.warning(event)


class LineFormatter(logging.Formatter):
    """Writes every record as one line of the chosen format."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._line = LINES[form]

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with what was raised as fields."""
        event = _event(record)
        if record.exc_info and record.exc_info[1] is not None:
            event = LogEvent(event.name, event.fields | _raised(record.exc_info[1]))
        return self._line(record.created, record.levelname.lower(), event)


def _event(record: logging.LogRecord) -> LogEvent:
    said: Any = record.msg
    if isinstance(said, LogEvent):
        return said
    fields: dict[str, object] = {"logger": record.name, "message": record.getMessage()}
    return LogEvent("library.message", fields)


def _raised(error: BaseException) -> dict[str, object]:
    lines = traceback.format_exception(error)
    text = f"{type(error).__name__}: {error}"
    return {"error": text, "traceback": "".join(lines).rstrip()}


def set_up(form: str) -> None:
    """Write the log to standard error in this format from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(form))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.captureWarnings(True)
    for name in ("uvicorn", "websockets"):
        logging.getLogger(name).setLevel(logging.WARNING)
