"""A child process that answers questions by lines, and that can be given up.

It has one socket, as its standard input and output, and leaves when that is closed. One
that does not answer in time is killed. A process inside a call of a faulty driver may
not even die then; nothing waits for it.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

_GRACE_S = 1.0
"""How much longer than the child itself its answer is waited for."""
_LONGEST_LINE = 16 << 20
_LEAVE_S = 1.0
_PAUSE_S = 0.01


class ChildSilent(Exception):
    """The child is gone, or has not answered in time."""


class MonitorProcess:
    """One child, and the questions that it is asked one after another."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """See `start`."""
        self._process = process
        self._reader = reader
        self._writer = writer

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether it has not ended yet; one that was killed may hang."""
        return self._process.poll() is None

    @classmethod
    async def start(
        cls, program: str, words: Sequence[str], environment: Mapping[str, str]
    ) -> "MonitorProcess":
        """Start a file of this package with Python; raises OSError."""
        own, its = socket.socketpair()
        command = [sys.executable, "-I", program, *words]
        thread = asyncio.to_thread(_spawn, command, environment, its)
        spawning = asyncio.create_task(thread)
        try:
            process = await asyncio.shield(spawning)
        except BaseException:
            own.close()
            await _give_up(spawning)
            raise
        finally:
            its.close()
        own.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=own, limit=_LONGEST_LINE)
        return cls(process, reader, writer)

    async def ask(self, limit_s: float) -> bytes:
        """Return the answer to a question that may take so long; raises ChildSilent."""
        try:
            async with asyncio.timeout(limit_s + _GRACE_S):
                self._writer.write(b"%.3f\n" % limit_s)
                line = await self._reader.readline()
        except (OSError, TimeoutError, ValueError) as error:
            raise ChildSilent from error
        if not line.endswith(b"\n"):
            raise ChildSilent
        return line

    async def end(self) -> None:
        """Kill it, and wait a moment for its end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                while self.alive:  # noqa: ASYNC110
                    await asyncio.sleep(_PAUSE_S)


async def _give_up(spawning: "asyncio.Task[subprocess.Popen[bytes]]") -> None:
    """End what a start that was cancelled starts all the same, in its thread."""
    with contextlib.suppress(OSError), await spawning as process:
        process.kill()


def _spawn(
    command: list[str], environment: Mapping[str, str], channel: socket.socket
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        stdin=channel.fileno(),
        stdout=channel.fileno(),
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,
    )


def file_beside(name: str) -> str:
    """Return the path of a module of this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
