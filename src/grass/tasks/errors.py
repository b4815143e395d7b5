"""What can go wrong with a task that is not its function's own exception."""

from __future__ import annotations

import pickle
import signal

from grass.errors import GrassError


class TaskLost(GrassError):
    """The process that ran a task has died."""

    code = "task-lost"


class TaskFailed(GrassError):
    """A task raised what cannot be brought to this process."""

    code = "task-failed"


class ChildTraceback(Exception):
    """Where in another process an exception was raised; it is its cause here."""

    def __init__(self, shown: str) -> None:
        super().__init__(shown)
        self.shown = shown

    def __str__(self) -> str:
        """Return the traceback, as Python prints it."""
        return f'\n"""\n{self.shown}"""'


def raised_error(data: bytes, name: str) -> BaseException:
    """Return the exception that a task raised in a child."""
    exception, text, shown = pickle.loads(data)  # noqa: S301 -- of our own child
    error: BaseException
    try:
        error = pickle.loads(exception)  # noqa: S301 -- the same
        assert isinstance(error, Exception)
    except Exception:  # noqa: BLE001 -- a user's class may do anything
        error = TaskFailed(f"`{name}` raised {text}")
    error.__cause__ = ChildTraceback(shown)
    return error


def death(name: str, exit_code: int, process: str, tries: int) -> TaskLost:
    """Return the error of a task whose process has died."""
    if exit_code < 0:
        how = f"was killed by {_signal_name(-exit_code)}"
    else:
        how = f"has left with exit code {exit_code}"
    again = f" in try {tries}" if tries > 1 else ""
    hint = _KILLED if exit_code == -signal.SIGKILL else ""
    return TaskLost(f"`{name}` is lost{again}: its {process} {how}", hint)


_KILLED = "perhaps for want of memory: then have tasks ask for `Memory`, too"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        # Most real-time signals have no name.
        return f"signal {number}"
