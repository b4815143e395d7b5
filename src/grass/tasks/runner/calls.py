"""Calling a task: its function and arguments are read, its result is written.

A result is in its file, as a whole or not at all, before the task is answered, or with
the answer where it is small. Every end of a task but that of its process leaves one: an
exception is a result, too. Functions are kept by their paths, which name what is in
them.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
from base64 import b64decode

from grass.tasks import variables
from grass.tasks.children import carried_modules
from grass.tasks.children.made_again import in_words, sendable
from grass.tasks.children.packed_frames import RAISED, VALUE, pack_result, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NamedTuple

    from grass.keeper.runner_line import LineTask
    from grass.tasks.children.packed_frames import Piece
else:
    from typing import NamedTuple

MOST_FUNCTIONS = 64
_INTERRUPTED = 130
_HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


class Outcome(NamedTuple):
    """The exit code of a task, and why it could not be called, if so."""

    code: int
    reason: str | None = None
    told: bytes = b""
    """The result, where it is small enough to be told with the code."""


class CannotCall(Exception):
    """A task that this Python cannot call; one line says why."""


class Calls:
    """Calls tasks, and keeps their functions."""

    def __init__(self) -> None:
        self._functions: dict[
            str, tuple[Callable[..., Any], dict[str, carried_modules.Source]]
        ] = {}
        """By path: a function, and the modules that have come with it."""
        self._pid = os.getpid()

    def call(self, task: LineTask) -> Outcome:
        """Call a task and write its result, unless that is told."""
        try:
            value = self._value(task)
        except BaseException as error:  # noqa: BLE001 -- it is the task's
            pieces, outcome = _failure(task, error)
        else:
            pieces, outcome = _success(task, value)
        if os.getpid() != self._pid:
            # A child that the task has forked: the result is its parent's.
            return outcome
        if sum(memoryview(piece).nbytes for piece in pieces) <= task.most_told:
            return Outcome(outcome.code, outcome.reason, b"".join(pieces))
        return written(task, pieces, outcome)

    def _value(self, task: LineTask) -> Any:  # noqa: ANN401 -- of any type
        try:
            os.chdir(task.cwd)
        except OSError as error:
            raise CannotCall(
                f"could not start: directory `{task.cwd}`: {error.strerror}"
            ) from None
        if task.units is not None:
            variables.held.set((task.units, None))
            variables.of_job.set(task.env.get("GRASS_JOB_ID", ""))
        function, args, kwargs = self._loaded(task)
        return function(*args, **kwargs)

    def _loaded(self, task: LineTask) -> tuple[Callable[..., Any], Any, Any]:
        if task.python and task.python != _HERE:
            raise CannotCall(
                f"`{task.name}` was sent by Python {task.python},"
                f" and {_machine()} runs it with Python {_HERE}"
            )
        what = ""
        try:
            function = self._function(task.function)
            what = "the arguments of "
            args, kwargs = _arguments(task)
        except ModuleNotFoundError:
            raise
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise CannotCall(
                f"{what}`{task.name}` cannot be read by Python {_HERE} on {_machine()}:"
                f" {problem}"
            ) from error
        return function, args, kwargs

    def _function(self, path: str) -> Callable[..., Any]:
        known = self._functions.get(path)
        if known is None:
            carried_modules.came.clear()
            with open(path, "rb") as file:
                loaded = pickle.load(file)  # noqa: S301 -- of the job's owner
            if len(self._functions) >= MOST_FUNCTIONS:
                del self._functions[next(iter(self._functions))]
            known = self._functions[path] = loaded, dict(carried_modules.came)
        function, modules = known
        carried_modules.carried.use(modules)
        return function


def written(task: LineTask, pieces: list[Piece], outcome: Outcome) -> Outcome:
    """Write the result of a task; return how it ended if that is not possible."""
    try:
        write_result(task.result, pieces)
    except OSError as error:
        reason = f"the result of `{task.name}` could not be written: {error}"
        _say(reason)
        return Outcome(outcome.code or 1, outcome.reason or reason)
    return outcome


def _arguments(task: LineTask) -> tuple[Any, Any]:
    if task.arguments:
        with open(task.arguments, "rb") as file:
            # Private: a task may write to its arrays, and the file is of others, too.
            whole = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE)
        args, kwargs = unpack(memoryview(whole))
    elif task.inline:
        args, kwargs = unpack(b64decode(task.inline))
    else:
        args, kwargs = (), {}
    return args, kwargs


def _success(task: LineTask, value: object) -> tuple[list[Piece], Outcome]:
    try:
        return pack_result(value, VALUE), Outcome(0)
    except Exception as error:  # noqa: BLE001 -- whatever a class raises
        kind = type(value).__name__
        text = f"the result of `{task.name}`, a {kind}, cannot be pickled: {error}"
        problem = TypeError(text)
        problem.__cause__ = error
        return _failure(task, problem)


def _failure(task: LineTask, error: BaseException) -> tuple[list[Piece], Outcome]:
    if isinstance(error, SystemExit):
        return _left(task, error)
    reason = _reason(task, error)
    shown = f"{reason}\n" if isinstance(error, CannotCall) else _traceback(error)
    _say(shown.rstrip("\n"))
    code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    if type(error) is ModuleNotFoundError:
        # It is raised on another machine, which may have the module.
        error = ModuleNotFoundError(reason, name=error.name, path=error.path)
    return _raised(error, shown), Outcome(code, reason)


def _left(task: LineTask, error: SystemExit) -> tuple[list[Piece], Outcome]:
    """Return the end of a task that called `sys.exit`."""
    if error.code is None or error.code == 0:
        return pack_result(None, VALUE), Outcome(0)
    if isinstance(error.code, int):
        code = error.code & 0xFF
    else:
        code = 1
        _say(str(error.code))
    left = RuntimeError(f"`{task.name}` left with exit code {code}")
    return _raised(left, _traceback(error)), Outcome(code)


def _reason(task: LineTask, error: BaseException) -> str | None:
    if isinstance(error, CannotCall):
        return str(error)
    if not isinstance(error, ModuleNotFoundError):
        return None
    return (
        f"`{task.name}` needs the module `{error.name}`, which Python {_HERE} on"
        f" {_machine()} does not have; it was sent by Python {task.python or _HERE}"
    )


def _raised(error: BaseException, shown: str) -> list[Piece]:
    """Return an exception as a result; one that cannot be read elsewhere as text."""
    if isinstance(error, CannotCall):
        return pack_result((RuntimeError(str(error)), shown), RAISED)
    sent = sendable(error) or RuntimeError(in_words(error))
    return pack_result((sent, shown), RAISED)


def _traceback(error: BaseException) -> str:
    import traceback

    # Without the frames of this module, which are above those of the task.
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename == __file__:
        found = found.tb_next
    return "".join(traceback.format_exception(type(error), error, found))


def write_result(path: str, pieces: list[Piece]) -> None:
    """Write a file as a whole: under another name first."""
    unfinished = f"{path}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        descriptor = os.open(unfinished, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = os.open(unfinished, flags, 0o600)
    try:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)
    os.rename(unfinished, path)


def _say(text: str) -> None:
    """Write to the log of the task, whatever that has done to `sys.stderr`."""
    data = memoryview(f"{text}\n".encode("utf-8", "backslashreplace"))
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
        while data:
            data = data[os.write(2, data) :]
    except (OSError, ValueError):
        return


def _machine() -> str:
    return os.uname().nodename
