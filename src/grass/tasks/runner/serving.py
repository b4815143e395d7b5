"""A runner's life: a task comes on the line, is called, and is answered.

It exits with the code of its last task, in place of an answer, when the line has ended
(its keeper died, or lets it go) and when the process is not as it was before the task:
threads, children or descriptors are left, or it grew. So the keeper need not know why.
It never waits for anything but the next task.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from array import array
from base64 import b64encode
from contextlib import suppress

from grass.keeper.runner_line import (
    DESCRIPTOR,
    MOST_OUTPUTS,
    TAKEN,
    Answer,
    LineTask,
    encoded,
    read_task,
)
from grass.tasks.runner.calls import Calls, Outcome, written
from grass.tasks.runner.process_state import ProcessState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_CHUNK = 1 << 17
_SPACE = socket.CMSG_SPACE(MOST_OUTPUTS * array("i").itemsize)
_NOTHING = 0, 0
_TOO_OLD = b"the keeper is of an older version: grass restart when its jobs are done\n"
_NO_TASK = 1
"""The exit code of a runner that never had a task."""


class AnswerTaken(Exception):
    """The keeper has on record what was answered last."""


class Line:
    """The runner's end of the line."""

    def __init__(self) -> None:
        self._channel = socket.socket(fileno=DESCRIPTOR)
        os.set_inheritable(DESCRIPTOR, False)
        self._identity = _identity()

    def next_task(self) -> tuple[LineTask, list[int]] | None:
        """Wait for a task, and the descriptors of its output; None at the end.

        Raises `AnswerTaken` if the end is near and the last answer was taken.
        """
        received, outputs = b"", list[int]()
        while not received.endswith(b"\n"):
            data, rights, _flags, _address = self._channel.recvmsg(_CHUNK, _SPACE)
            if not data:
                return None
            for _level, _kind, content in rights:
                outputs += array("i", content[: len(content) // 4 * 4])
            received += data
        if received == TAKEN:
            raise AnswerTaken
        return read_task(received), outputs

    @property
    def is_whole(self) -> bool:
        """Whether this is still the line: a task may close any descriptor."""
        return _identity() == self._identity

    def answer(self, answer: Answer) -> None:
        """Tell how a task has ended; raises OSError if nobody listens."""
        self._channel.sendall(encoded(answer))


def _identity() -> tuple[int, int]:
    try:
        found = os.fstat(DESCRIPTOR)
    except OSError:
        return _NOTHING
    return found.st_dev, found.st_ino


class Runner:
    """One runner: its line, the functions it knows, and what its process was like."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._line = Line()
        self._calls = Calls()
        self._state = ProcessState()
        self._code = _NO_TASK
        self._told: tuple[LineTask, Outcome] | None = None
        """The last task, if its result was told and may not have been taken."""

    def serve(self) -> NoReturn:
        """Run tasks until there are no more."""
        while (found := self._next()) is not None:
            self._told = None
            self._run(*found)
        if self._told is not None:
            # Nobody says whether the answer was read, so the result may be needed.
            self._code = _written(*self._told).code
        os._exit(self._code)

    def _next(self) -> tuple[LineTask, list[int]] | None:
        try:
            return self._line.next_task()
        except AnswerTaken:
            self._told = None
            return None
        except OSError:
            return None

    def _run(self, task: LineTask, outputs: list[int]) -> None:
        state = self._state
        state.enter(task, outputs)
        outcome = self._calls.call(task)
        if os.getpid() != self._pid:
            # The task has forked, and this is the child: its parent goes on here, too.
            state.flush()
            os._exit(outcome.code)
        self._code = outcome.code
        try:
            used = state.leave()
            answered = state.is_clean() and self._line.is_whole
            if answered:
                result = b64encode(outcome.told).decode()
                ended = *used, outcome.reason, result
                self._line.answer(Answer(task.id, outcome.code, *ended))
        except Exception:  # noqa: BLE001 -- a task may have done anything to this process
            answered = False
        if not answered:
            os._exit(_written(task, outcome).code)
        self._told = (task, outcome) if outcome.told else None


def _written(task: LineTask, outcome: Outcome) -> Outcome:
    """Write a result that was to be told."""
    return written(task, [outcome.told], outcome) if outcome.told else outcome


def main() -> None:
    """Serve the keeper at the other end of the line."""
    # What is needed later is there before the first task, is not counted as its, and
    # cannot be a module of its directory.
    import traceback  # noqa: F401

    import cloudpickle  # noqa: F401

    sys.argv[:] = sys.argv[:1]
    if _identity() == _NOTHING:
        os.write(2, _TOO_OLD)
        os._exit(_NO_TASK)
    runner = Runner()
    _find_modules_here()
    gc.freeze()
    runner.serve()


def _find_modules_here() -> None:
    """Let tasks import what is in their directory, as `python -m` does."""
    if not os.environ.get("PYTHONSAFEPATH"):
        with suppress(OSError):
            sys.path.insert(0, os.getcwd())
