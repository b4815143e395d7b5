"""Channels of task hosts on this machine: bytes between the link and a host's socket.

A host listens at a Unix socket in the keeper's folder, as what takes input does. It
outlives this daemon: a channel that ends is opened again by the program, and the two
agree themselves on what was lost on the way. A worker that connects anew has no
channels, whatever it had before.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from grass.link.messages import TaskBytes, TaskBytesTaken
from grass.link.requests import TASK_PIECE, TASK_WINDOW
from grass.worker.shell.job_inputs import RETRY_S, connected_to
from grass.worker.shell.output_ends import CreateTask

PATIENCE_S = 60.0
"""How long a host may take until it listens: its interpreter may be on a slow disk."""
NOT_THERE = "the task host does not listen"
TOO_MUCH = "the broker sends more than there is room for"

SendBytes = Callable[[TaskBytes | TaskBytesTaken], None]


class TaskChannels:
    """The channels that are open."""

    def __init__(
        self,
        folder: str,
        is_running: Callable[[str], bool],
        answer: SendBytes,
        begin: CreateTask,
    ) -> None:
        """`folder` has the sockets."""
        self._folder = folder
        self._is_running = is_running
        self._answer = answer
        self._begin = begin
        self._open: dict[int, _Channel] = {}

    def received(self, message: TaskBytes | TaskBytesTaken) -> None:
        """Open a channel, or pass on what the broker sends on one."""
        channel = self._open.get(message.channel)
        if isinstance(message, TaskBytesTaken):
            if channel is not None:
                channel.has_taken(message.size)
        elif message.attempt and channel is None:
            channel = _Channel(message.channel, self._answer)
            self._open[message.channel] = channel
            self._begin(self._serve(channel, message.attempt))
        elif channel is None:
            self._answer(TaskBytes(message.channel, end=True))
        elif message.end:
            channel.end()
        else:
            channel.arrived(message.data)

    def close_all(self) -> None:
        """End all channels: the broker knows none of them any more."""
        for channel in self._open.values():
            channel.end()
        self._open.clear()

    async def _serve(self, channel: "_Channel", attempt: str) -> None:
        problem = ""
        try:
            async with asyncio.timeout(PATIENCE_S):
                streams = await self._connected(channel, attempt)
            if streams is not None:
                await channel.run(*streams)
        except TimeoutError:
            problem = NOT_THERE
        except OSError as error:
            problem = str(error)
        finally:
            # One that was closed from outside may have a successor by now.
            if self._open.get(channel.number) is channel:
                del self._open[channel.number]
            channel.over(problem)

    async def _connected(
        self, channel: "_Channel", attempt: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect, again while the host does not listen; None: nobody waits for it."""
        while self._is_running(attempt) and not channel.is_over:
            with contextlib.suppress(FileNotFoundError, ConnectionError):
                return await connected_to(self._folder, attempt)
            await asyncio.sleep(RETRY_S)
        return None


class _Channel:
    """One channel: what waits for the host, and how much the broker has room for."""

    def __init__(self, number: int, answer: SendBytes) -> None:
        self.number = number
        self._answer = answer
        self._waiting: deque[bytes] = deque()
        self._unwritten = 0
        self._room = TASK_WINDOW
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_told = False
        self._problem = ""

    @property
    def is_over(self) -> bool:
        """Whether the broker has ended it."""
        return self._ended.is_set()

    def arrived(self, data: bytes) -> None:
        """Keep bytes for the host."""
        self._unwritten += len(data)
        if self._unwritten > TASK_WINDOW:
            self._problem = TOO_MUCH
            self._ended.set()
        else:
            self._waiting.append(data)
            self._arrived.set()

    def has_taken(self, size: int) -> None:
        """Note that the program has taken bytes."""
        self._room = min(TASK_WINDOW, self._room + max(0, size))
        self._has_room.set()

    def end(self) -> None:
        """End it without telling the broker, which knows."""
        self._is_told = True
        self._ended.set()

    def over(self, problem: str) -> None:
        """Tell the broker that it is over, unless that knows."""
        if not self._is_told:
            self._is_told = True
            reason = self._problem or problem
            self._answer(TaskBytes(self.number, end=True, problem=reason))

    async def run(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass bytes on both ways until either side ends it."""
        works = (self._write(writer), self._read(reader), self._ended.wait())
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            writer.close()

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        while True:
            while self._waiting:
                data = self._waiting.popleft()
                writer.write(data)
                await writer.drain()
                self._unwritten -= len(data)
                self._answer(TaskBytesTaken(self.number, len(data)))
            self._arrived.clear()
            await self._arrived.wait()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            while self._room < TASK_PIECE:
                self._has_room.clear()
                await self._has_room.wait()
            data = await reader.read(TASK_PIECE)
            if not data:
                return
            self._room -= len(data)
            self._answer(TaskBytes(self.number, data))
