"""Channels between the link and the socket of a task host, with a real socket."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from grass.link.messages import TaskBytes, TaskBytesTaken
from grass.link.requests import TASK_PIECE, TASK_WINDOW
from grass.worker.core.prepare import input_socket
from grass.worker.shell import task_channels
from grass.worker.shell.task_channels import TaskChannels
from tests.support.patience import PATIENCE_S

ATTEMPT = "cluster.1.1"


class Host:
    """A host's socket, and the channels of a worker that connect to it."""

    def __init__(self, folder: Path, group: asyncio.TaskGroup) -> None:
        self.path = input_socket(str(folder), ATTEMPT)
        self.running = {ATTEMPT}
        self.answers: list[TaskBytes | TaskBytesTaken] = []
        self.news = asyncio.Event()
        self.channels = TaskChannels(
            str(folder), self.running.__contains__, self._answer, group.create_task
        )
        self.connected: asyncio.Queue[Any] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []

    def _answer(self, message: TaskBytes | TaskBytesTaken) -> None:
        self.answers.append(message)
        self.news.set()

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._connect, self.path)

    def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writers.append(writer)
        self.connected.put_nowait((reader, writer))

    def close(self) -> None:
        self.channels.close_all()
        for writer in self._writers:
            writer.transport.abort()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.news.clear()
            await self.news.wait()

    def received(self) -> bytes:
        """Return what the broker was sent."""
        return b"".join(m.data for m in self.answers if isinstance(m, TaskBytes))

    def taken(self) -> int:
        return sum(m.size for m in self.answers if isinstance(m, TaskBytesTaken))

    def ends(self) -> list[TaskBytes]:
        return [m for m in self.answers if isinstance(m, TaskBytes) and m.end]


Story = Callable[[Host], Coroutine[Any, Any, None]]


def play(folder: Path, story: Story) -> None:
    async def whole() -> None:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            host = Host(folder, group)
            await story(host)
            host.close()

    asyncio.run(whole())


def test_bytes_go_both_ways_once_the_host_listens(tmp_path: Path) -> None:
    async def story(host: Host) -> None:
        host.channels.received(TaskBytes(1, attempt=ATTEMPT))
        host.channels.received(TaskBytes(1, b"hello"))
        server = await host.listen()
        reader, writer = await host.connected.get()
        assert await reader.readexactly(5) == b"hello"
        await host.until(lambda: host.taken() == 5)
        writer.write(b"welcome")
        await host.until(lambda: host.received() == b"welcome")
        writer.close()
        await host.until(lambda: bool(host.ends()))
        assert host.ends() == [TaskBytes(1, end=True)]
        server.close()

    play(tmp_path, story)


def test_no_more_is_read_of_a_host_than_the_program_takes(tmp_path: Path) -> None:
    async def story(host: Host) -> None:
        server = await host.listen()
        host.channels.received(TaskBytes(1, attempt=ATTEMPT))
        _, writer = await host.connected.get()
        writer.write(bytes(4 * TASK_WINDOW))
        await host.until(lambda: len(host.received()) > TASK_WINDOW - TASK_PIECE)
        assert len(host.received()) <= TASK_WINDOW
        host.channels.received(TaskBytesTaken(1, TASK_WINDOW))
        await host.until(lambda: len(host.received()) > TASK_WINDOW)
        host.channels.received(TaskBytes(1, end=True))
        server.close()

    play(tmp_path, story)


def test_a_host_that_does_not_read_takes_no_more_memory_than_the_window(
    tmp_path: Path,
) -> None:
    async def story(host: Host) -> None:
        server = await host.listen()
        host.channels.received(TaskBytes(1, attempt=ATTEMPT))
        await host.connected.get()
        for _ in range(4 * TASK_WINDOW // TASK_PIECE):
            # More than was taken: this broker breaks the rule.
            host.channels.received(TaskBytes(1, bytes(TASK_PIECE)))
        await host.until(lambda: bool(host.ends()))
        assert host.ends()[0].problem == task_channels.TOO_MUCH
        server.close()

    play(tmp_path, story)


def test_a_channel_to_an_attempt_that_has_ended_is_over_at_once(tmp_path: Path) -> None:
    async def story(host: Host) -> None:
        host.running.clear()
        host.channels.received(TaskBytes(1, attempt=ATTEMPT))
        await host.until(lambda: host.ends() == [TaskBytes(1, end=True)])
        host.channels.received(TaskBytes(2, b"to nobody"))
        assert host.ends()[1:] == [TaskBytes(2, end=True)]
        host.channels.received(TaskBytesTaken(2, 1))

    play(tmp_path, story)


def test_a_worker_that_connects_anew_has_no_channels(tmp_path: Path) -> None:
    async def story(host: Host) -> None:
        server = await host.listen()
        host.channels.received(TaskBytes(1, attempt=ATTEMPT))
        reader, _ = await host.connected.get()
        host.channels.close_all()
        assert await reader.read() == b""
        host.channels.received(TaskBytes(1, attempt=ATTEMPT))
        reader, _ = await host.connected.get()
        assert not host.ends()
        server.close()

    play(tmp_path, story)
