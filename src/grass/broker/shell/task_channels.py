"""Channels between programs and their task hosts: bytes that nobody here looks at.

Each way at most `TASK_WINDOW` bytes of a channel are under way: more is sent when the
other end has taken some. So a host or a program that does not read holds up its own
channel alone, and takes no more memory here than that.
"""

import asyncio
from collections import deque
from itertools import count
from secrets import randbits

from grass.broker.shell.links import LinkOf
from grass.link.channel import Link
from grass.link.messages import TaskBytes, TaskBytesTaken, ToBroker, ToWorker
from grass.link.requests import TASK_PIECE, TASK_WINDOW

AWAY = "the worker of the task host is unreachable"
TOO_MUCH = "the worker sends more than there is room for"
LONGEST_PROBLEM = 200


class TaskChannels:
    """The channels that are open."""

    def __init__(self, link_of: LinkOf) -> None:
        """`link_of` finds a worker's link, if it is connected."""
        self._link_of = link_of
        # A worker may still have a channel of the broker before this one.
        self._numbers = count(randbits(48))
        self._open: dict[int, TaskChannel] = {}

    def open(self, worker: str, attempt: str) -> "TaskChannel":
        """Have a worker connect to an attempt that runs there."""
        link = self._link_of(worker)
        channel = TaskChannel(self, next(self._numbers), worker, link)
        if link is None:
            channel.end(AWAY)
        else:
            self._open[channel.number] = channel
            link.send(TaskBytes(channel.number, attempt=attempt))
        return channel

    def received(self, worker: str, message: TaskBytes | TaskBytesTaken) -> None:
        """Pass on what a worker sends; it is dropped if the program has left."""
        channel = self._open.get(message.channel)
        if channel is None or channel.worker != worker:
            return
        if isinstance(message, TaskBytesTaken):
            channel.has_taken(message.size)
            return
        channel.arrived(message.data)
        if message.end:
            channel.end(message.problem[:LONGEST_PROBLEM])

    def gone(self, worker: str) -> None:
        """End the channels to a worker."""
        for channel in list(self._open.values()):
            if channel.worker == worker:
                channel.end(AWAY)

    def forget(self, number: int) -> None:
        """Pass on nothing more of a channel."""
        self._open.pop(number, None)


class TaskChannel:
    """One channel; it is read by one task and written by one."""

    def __init__(
        self,
        channels: TaskChannels,
        number: int,
        worker: str,
        link: Link[ToWorker, ToBroker] | None,
    ) -> None:
        self.number = number
        self.worker = worker
        self._channels = channels
        self._link = link
        self._room = TASK_WINDOW
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self.is_over = False
        self.problem = ""
        """Why it is over, if not because either side has ended it."""

    async def send(self, data: bytes) -> None:
        """Send bytes to the host, as fast as it takes them; nothing once it is over."""
        for at in range(0, len(data), TASK_PIECE):
            piece = data[at : at + TASK_PIECE]
            while self._room < len(piece) and not self.is_over:
                self._has_room.clear()
                await self._has_room.wait()
            if self.is_over or self._link is None:
                return
            self._room -= len(piece)
            self._link.send(TaskBytes(self.number, piece))

    async def receive(self) -> bytes:
        """Return the next bytes of the host; nothing at the end."""
        while not self._pieces and not self.is_over:
            self._changed.clear()
            await self._changed.wait()
        return self._pieces.popleft() if self._pieces else b""

    def passed_on(self, size: int) -> None:
        """Note that the program has taken bytes, so that more may come."""
        self._unread -= size
        if self._link is not None and not self.is_over:
            self._link.send(TaskBytesTaken(self.number, size))

    def close(self) -> None:
        """End the channel; may be called twice."""
        if not self.is_over and self._link is not None:
            self._link.send(TaskBytes(self.number, end=True))
        self.end("")

    def arrived(self, data: bytes) -> None:
        """Keep bytes until the program takes them."""
        self._unread += len(data)
        if self._unread > TASK_WINDOW:
            self.close()
            self.problem = TOO_MUCH
        elif data:
            self._pieces.append(data)
            self._changed.set()

    def has_taken(self, size: int) -> None:
        """Note that the host has taken bytes."""
        self._room = min(TASK_WINDOW, self._room + max(0, size))
        self._has_room.set()

    def end(self, problem: str) -> None:
        """Note that the channel is over; the first reason is kept."""
        if not self.is_over:
            self.is_over, self.problem = True, problem
            self._channels.forget(self.number)
        self._changed.set()
        self._has_room.set()
