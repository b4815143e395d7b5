"""One child process, as the program sees it: what it was sent, what it answers.

Tasks are sent ahead of their turn, so that a child with short ones need not wait for
the program. Each task sent is allowed by one byte on a pipe. The child takes the byte
before it runs a task, and `recall` takes bytes back: the kernel gives each byte to one
of them, so a task that was recalled never runs. A byte is written after all frames
before it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque

import anyio

from grass.tasks.children.child_record import ChildRecord
from grass.tasks.children.frames import (
    FUNCTION,
    HOLD,
    RECALL,
    TASK,
    Frame,
    FrameReader,
    encoded,
    send_with,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from grass.tasks.children.child_record import StartSoon
    from grass.tasks.task import Task

_PROGRAM = """
import pickle, sys
sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[4]))
from grass.tasks.children.child_main import main
main()
"""
_LEAVING_S = 2.0
"""How long a child may take to leave by itself."""
_JOINED_BYTES = 1 << 16
"""Frames are joined up to about this size: a socket takes little more at once."""


class ChildProcess(ChildRecord):
    """A child, its connection, and the tasks that it has."""

    def __init__(self, variables: Mapping[str, str], key: str) -> None:
        super().__init__(key)
        line, other = socket.socketpair()
        tokens_read, self._tokens = os.pipe()
        # Opened once more: the child waits for bytes, and this end must not.
        path, flags = f"/proc/self/fd/{tokens_read}", os.O_RDONLY | os.O_CLOEXEC
        self._taken_back = os.open(path, flags | os.O_NONBLOCK)
        self._line = line
        line.setblocking(False)
        self._reader = FrameReader(line)
        self._unsent: deque[tuple[bytes | memoryview, int | None]] = deque()
        self._unallowed = 0
        self._is_flushing = False
        """Whether a task waits until the child reads, and sends the rest then."""
        try:
            self._process = _started(other, tokens_read, variables)
        except BaseException:
            self.close()
            raise
        finally:
            other.close()
            os.close(tokens_read)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"process {self._process.pid}"

    def hold(self, data: bytes, descriptor: int | None) -> None:
        """Tell what the tasks that follow hold."""
        self._put(HOLD, 0, data, descriptor)

    def teach(self, number: int, data: bytes) -> None:
        """Send a function, unless the child knows it."""
        if number not in self.functions:
            self.functions.add(number)
            self._put(FUNCTION, number, data, None)

    def send(self, number: int, data: bytes, descriptor: int | None) -> None:
        """Send a task, by its number; one byte allows it."""
        self._put(TASK, number, data, descriptor)
        self._unallowed += 1

    def recall(self) -> list[Task]:
        """Take back tasks that have not begun, the last ones first."""
        taken = min(self._unallowed, len(self.sent) - 1)
        self._unallowed -= taken
        allowed = len(self.sent) - 1 - taken
        if allowed > 0:
            taken += _taken_bytes(self._taken_back, allowed)
        recalled = [self.sent.pop() for _ in range(taken)]
        if recalled:
            self._put(RECALL, len(recalled), b"", None)
        return recalled

    def flush(self, start_soon: StartSoon) -> None:
        """Send frames without waiting; `start_soon` runs the task that sends the rest.

        There is one such task at a time: a socket has one waiter. Frames that are put
        while it waits are sent by it, in their order.
        """
        if self._is_flushing:
            return
        self._send_now()
        if self._unsent:
            self._is_flushing = True
            start_soon(self._send_rest)

    async def _send_rest(self) -> None:
        try:
            while self._unsent:
                await anyio.wait_writable(self._line)
                self._send_now()
        except anyio.ClosedResourceError:
            """The child has ended."""
        finally:
            self._is_flushing = False

    def _send_now(self) -> None:
        """Send what the socket takes; allow the tasks of which everything was sent."""
        try:
            self._send_all()
        except BlockingIOError:
            return
        except OSError:
            # It is dying: the end of its connection tells so.
            self._drop_unsent()
            return
        if self._unallowed:
            with contextlib.suppress(OSError):
                os.write(self._tokens, b"." * self._unallowed)
            self._unallowed = 0

    async def answers(self) -> list[Frame]:
        """Wait for answers; an empty list is the end."""
        while True:
            await anyio.wait_readable(self._line)
            try:
                alive = self._reader.receive()
            except BlockingIOError:
                continue
            except OSError:
                return []
            frames = list(self._reader.frames())
            if frames or not alive:
                return frames

    def kill(self, why: BaseException | None = None) -> None:
        """Kill it with all that it has started."""
        self.is_killed = True
        self.killed_for = self.killed_for or why
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def leave(self) -> None:
        """Have it leave once it has nothing to do."""
        self.is_leaving = True
        self._close_line()

    async def exit_code(self) -> int:
        """Wait for its end; minus a signal's number where one has killed it."""
        try:
            ended = os.pidfd_open(self._process.pid)
        except ProcessLookupError:
            # The program has waited for any child, and got this one.
            self.close()
            return self._process.wait()
        try:
            with anyio.CancelScope(shield=True):
                with anyio.move_on_after(_LEAVING_S):
                    await anyio.wait_readable(ended)
                # Whatever it has started goes with it.
                self.kill()
                await anyio.wait_readable(ended)
        finally:
            os.close(ended)
        code = self._process.wait()
        self.close()
        return code

    def close(self) -> None:
        """Close all descriptors."""
        self.is_gone = True
        self._close_line()
        self._reader.close()
        self._drop_unsent()

    def _drop_unsent(self) -> None:
        while self._unsent:
            _, descriptor = self._unsent.popleft()
            if descriptor is not None:
                os.close(descriptor)

    def _close_line(self) -> None:
        if self._tokens >= 0:
            os.close(self._tokens)
            os.close(self._taken_back)
            self._tokens = self._taken_back = -1
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)
        if self.is_gone and self._line.fileno() >= 0:
            anyio.notify_closing(self._line)
            self._line.close()

    def _put(self, kind: int, number: int, data: bytes, descriptor: int | None) -> None:
        has = descriptor is not None
        frame = encoded(kind, number, data, has_descriptor=has)
        self._unsent.append((frame, descriptor))

    def _send_all(self) -> None:
        while self._unsent:
            frame, descriptor = self._unsent[0]
            if descriptor is not None:
                sent = send_with(self._line, frame, descriptor)
                os.close(descriptor)
            else:
                frame = self._joined()
                sent = self._line.send(frame)
            if sent < len(frame):
                # A view: to copy the rest of a large frame each time takes long.
                self._unsent[0] = (memoryview(frame)[sent:], None)
            else:
                self._unsent.popleft()

    def _joined(self) -> bytes | memoryview:
        """Join small frames ahead that have no descriptor, so that they go at once."""
        joined = [self._unsent.popleft()[0]]
        size = len(joined[0])
        while self._unsent and self._unsent[0][1] is None and size < _JOINED_BYTES:
            joined.append(self._unsent.popleft()[0])
            size += len(joined[-1])
        frame = joined[0] if len(joined) == 1 else b"".join(joined)
        self._unsent.appendleft((frame, None))
        return frame


def _taken_bytes(pipe: int, at_most: int) -> int:
    """Read bytes that are there, without waiting; return how many."""
    try:
        return len(os.read(pipe, at_most))
    except BlockingIOError:
        return 0


def _started(
    line: socket.socket, tokens: int, variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    path = pickle.dumps(sys.path, 5).hex()
    words = [str(line.fileno()), str(tokens), str(os.getpid()), path]
    return subprocess.Popen(
        # What lies in the current directory is not meant, unless the program means it.
        [sys.executable, "-P", "-c", _PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        pass_fds=(line.fileno(), tokens),
        env={**os.environ, **variables},
        # Ctrl-C on the terminal is for the program, and a kill reaches what it started.
        start_new_session=True,
    )
