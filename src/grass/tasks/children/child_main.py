"""The program of a child: run the functions that come, one after the other.

A byte on the token pipe allows one task: the child takes it before it runs one, and the
program takes bytes back to recall tasks that have not begun (see `child`). The child is
killed by the kernel when the program dies, and leaves when the pipe ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque

from grass.errors import UsageError
from grass.tasks import variables
from grass.tasks.children import payloads
from grass.tasks.children.frames import (
    ERROR,
    FUNCTION,
    HOLD,
    READY,
    RECALL,
    RESULT,
    TASK,
    Frame,
    FrameReader,
    encoded,
    send_with,
)
from grass.tasks.children.made_again import in_words, sendable
from grass.tasks.task import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PR_SET_PDEATHSIG = 1


class Child:
    """What the child knows: its functions, what it holds, and tasks to come."""

    def __init__(self, line: socket.socket, tokens: int) -> None:
        self._line = line
        self._tokens = tokens
        self._reader = FrameReader(line)
        self._functions: dict[int, Callable[..., Any] | BaseException] = {}
        self._coming: deque[Frame] = deque()
        self._cores: set[int] = set()

    def serve(self) -> None:
        """Run tasks until the program closes the pipe."""
        self._send(READY, 0, b"", None, 0.0)
        ready = select.poll()
        ready.register(self._tokens, select.POLLIN)
        ready.register(self._line, select.POLLIN)
        while True:
            # Frames are read as they come: a byte follows when all of them are sent.
            found = dict(ready.poll())
            if self._tokens not in found:
                if not self._read():
                    ready.unregister(self._line)
            elif not os.read(self._tokens, 1) or not self._collect():
                return
            else:
                self._run(self._coming.popleft())

    def _collect(self) -> bool:
        """Read what was sent before a byte, which has a task; False: the end."""
        with contextlib.suppress(BlockingIOError):
            while self._read():
                pass
        return bool(self._coming)

    def _read(self) -> bool:
        self._line.setblocking(False)
        try:
            alive = self._reader.receive()
        finally:
            self._line.setblocking(True)
        for frame in self._reader.frames():
            if frame.kind == TASK:
                self._coming.append(frame)
            elif frame.kind == RECALL:
                for _ in range(frame.number):
                    dropped = self._coming.pop()
                    if dropped.descriptor is not None:
                        os.close(dropped.descriptor)
            elif frame.kind == FUNCTION:
                self._functions[frame.number] = loaded(frame.data)
            else:
                assert frame.kind == HOLD
                # Tasks before it in the line have run: it is sent to an idle child.
                self._hold(frame)
        return alive

    def _hold(self, frame: Frame) -> None:
        allocation, own = payloads.load(frame.data, frame.descriptor)
        variables.held.set((allocation, own))
        cores = {int(core) for core in allocation.get("cpu", ()) if core.isdecimal()}
        if cores and cores != self._cores:
            self._cores = cores
            # Cores that were declared and do not exist are only counted.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, cores)

    def _run(self, frame: Frame) -> None:
        began = time.perf_counter()
        try:
            number, args, more = payloads.load(frame.data, frame.descriptor)
            if number < 0:
                function, *args = args
            else:
                function = self._functions[number]
            if isinstance(function, BaseException):
                raise function
            data, descriptor = _dumped(function, function(*args, **dict(more)))
            kind = RESULT
        except BaseException as error:  # noqa: BLE001 -- it is the task's, and sent back
            kind, data, descriptor = ERROR, dumped_error(error), None
        # The function may have closed it.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stdout.flush()
        self._send(kind, frame.number, data, descriptor, time.perf_counter() - began)

    def _send(
        self, kind: int, task: int, data: bytes, descriptor: int | None, seconds: float
    ) -> None:
        has = descriptor is not None
        frame = encoded(kind, task, data, seconds=seconds, has_descriptor=has)
        if descriptor is not None:
            sent = send_with(self._line, frame, descriptor)
            os.close(descriptor)
            frame = frame[sent:]
        self._line.sendall(frame)


def loaded(data: bytes) -> Callable[..., Any] | BaseException:
    """Return a function, or what went wrong as it was loaded."""
    try:
        function: Callable[..., Any] = pickle.loads(data)  # noqa: S301 -- our parent's
    except BaseException as error:  # noqa: BLE001 -- told by the tasks that call it
        return error
    return function


def _dumped(function: Callable[..., Any], value: object) -> tuple[bytes, int | None]:
    try:
        return payloads.dump(value)
    except Exception as error:
        name, kind = name_of(function), type(value).__name__
        text = f"the result of `{name}`, a {kind}, cannot be pickled: {error}"
        raise UsageError(text, "return what it can be made of") from error


def dumped_error(error: BaseException) -> bytes:
    """Return an exception with its traceback as text; or text alone."""
    # Without the frames of this module, which are above those of the function.
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename == __file__:
        found = found.tb_next
    shown = "".join(traceback.format_exception(type(error), error, found))
    exception = b""
    sent = sendable(error)
    if sent is not None:
        import cloudpickle

        exception = cloudpickle.dumps(sent, 5)
    return pickle.dumps((exception, in_words(error), shown), 5)


def main() -> None:
    """Serve the program at the other end of the descriptors that are given."""
    line_number, tokens, parent = map(int, sys.argv[1:4])
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    sys.argv[:] = sys.argv[:1]
    variables.in_child.set(True)
    child = Child(socket.socket(fileno=line_number), tokens)
    # What ends the program ends its children; Ctrl-C is for the program to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        child.serve()
