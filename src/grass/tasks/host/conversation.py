"""What a program and its task host say to each other, over one connection or several.

A connection may break while daemons are restarted or the network is away, and is made
again. Each side counts the frames that it has received, keeps those that it has sent
until the other has counted them, and sends the rest again on the next connection. So a
frame arrives once and in order, or the conversation is over. A side that says nothing
for a while is taken to be cut off: both say something every few seconds. Only time in
which its event loop could read counts: that of a program may be busy for long, and what
has arrived meanwhile is read first. Then another thread says something for it.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

import anyio

from grass.errors import ProtocolError
from grass.tasks.host.host_frames import (
    ACK,
    HELLO,
    PIECE,
    UNCOUNTED,
    Chunks,
    FrameAssembler,
    HostFrame,
    as_chunk,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BEAT_S = 5.0
SILENCE_S = 20.0
_STEPS = 4
"""The silence is waited for in steps: a busy event loop is late for one of them."""
_ACK_FRAMES = 32
_ACK_BYTES = 1 << 20


class Transport(Protocol):
    """A connection to the other side; OSError when it is broken."""

    async def send(self, data: bytes) -> None:
        """Send bytes, as they are taken."""

    async def receive(self) -> bytes:
        """Return the next bytes; nothing at the end."""


class Conversation:
    """One side of it."""

    def __init__(
        self,
        greeting: bytes,
        greeted: Callable[[bytes], None],
        taken: Callable[[list[HostFrame]], None],
    ) -> None:
        """`greeted` gets the other side's greeting, `taken` the frames that arrive."""
        self._greeting = greeting
        self._greeted = greeted
        self._taken = taken
        self._unacked: deque[HostFrame] = deque()
        self._acked = self._sent = self._received = 0
        self._owed_frames = self._owed_bytes = 0
        self._wanted = anyio.Event()
        self._is_greeted = False
        self.heard_at = time.monotonic()
        """When something last arrived."""

    def put(self, frame: HostFrame) -> None:
        """Send a frame, now or on the next connection; its descriptor is closed."""
        self._unacked.append(frame)
        self._wanted.set()

    @property
    def is_empty(self) -> bool:
        """Whether the other side has everything."""
        return not self._unacked

    async def run(self, transport: Transport) -> None:
        """Use a connection until it ends, breaks or is silent.

        Raises `ProtocolError` when the other side is not who was there before.
        """
        self._is_greeted = False
        assembler, problem = FrameAssembler(), None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._write, transport)
                group.start_soon(self._beat)
                try:
                    await self._read(transport, assembler)
                except ProtocolError as error:
                    problem = error
                group.cancel_scope.cancel()
        finally:
            assembler.close()
        if problem is not None:
            raise problem

    def close(self) -> None:
        """Forget what was not sent."""
        while self._unacked:
            self._unacked.popleft().close()

    async def _read(self, transport: Transport, assembler: FrameAssembler) -> None:
        chunks = Chunks()
        while piece := await _received(transport):
            self.heard_at = time.monotonic()
            whole = assembler.take(chunks.take(piece))
            frames = [one for one in whole if self._counts(one)]
            if frames:
                self._taken(frames)

    def _counts(self, frame: HostFrame) -> bool:
        """Note a frame; tell whether it is for the owner."""
        if frame.kind in UNCOUNTED:
            if frame.kind == HELLO:
                self._go_on(frame)
            elif frame.kind == ACK:
                self._forget(frame.number)
            return False
        self._received += 1
        self._owed_frames += 1
        self._owed_bytes += frame.size
        if self._owed_frames >= _ACK_FRAMES or self._owed_bytes >= _ACK_BYTES:
            self._wanted.set()
        return True

    def _go_on(self, hello: HostFrame) -> None:
        """Send from where the other side has received everything."""
        if not self._acked <= hello.number <= self._acked + len(self._unacked):
            raise ProtocolError("the other end is not the one that was there before")
        self._greeted(hello.data)
        self._forget(hello.number)
        self._sent = hello.number
        self._is_greeted = True
        self._wanted.set()

    def _forget(self, count: int) -> None:
        while self._acked < count and self._unacked:
            self._unacked.popleft().close()
            self._acked += 1

    async def _beat(self) -> None:
        while True:
            await anyio.sleep(BEAT_S)
            self._owed_frames += _ACK_FRAMES
            self._wanted.set()

    async def _write(self, transport: Transport) -> None:
        try:
            hello = HostFrame(HELLO, number=self._received, data=self._greeting)
            await _send(transport, hello)
            while True:
                await self._write_all(transport)
                self._wanted = anyio.Event()
                if not self._has_more():
                    await self._wanted.wait()
        except OSError:
            """Reading ends, too."""

    def _has_more(self) -> bool:
        owes = self._owed_frames >= _ACK_FRAMES or self._owed_bytes >= _ACK_BYTES
        return owes or (
            self._is_greeted and self._sent < self._acked + len(self._unacked)
        )

    async def _write_all(self, transport: Transport) -> None:
        if self._owed_frames >= _ACK_FRAMES or self._owed_bytes >= _ACK_BYTES:
            self._owed_frames = self._owed_bytes = 0
            await _send(transport, HostFrame(ACK, number=self._received))
        while self._is_greeted and self._sent < self._acked + len(self._unacked):
            joined = self._small_ones()
            if joined:
                await transport.send(as_chunk(joined))
                continue
            frame = self._unacked[self._sent - self._acked]
            await _send(transport, frame)
            self._sent += 1

    def _small_ones(self) -> bytes:
        """Join frames that are small, so that they go at once; count them as sent."""
        joined: list[bytes] = []
        size = 0
        for at in range(self._sent - self._acked, len(self._unacked)):
            frame = self._unacked[at]
            if frame.descriptor is not None or size + frame.size > PIECE:
                break
            joined.extend(frame.pieces())
            size += frame.size
            self._sent += 1
        return b"".join(joined)


async def _send(transport: Transport, frame: HostFrame) -> None:
    for piece in frame.pieces():
        await transport.send(as_chunk(piece))


async def _received(transport: Transport) -> bytes:
    """Return the next bytes; nothing when the connection has ended, or is silent."""
    for _ in range(_STEPS):
        with anyio.move_on_after(SILENCE_S / _STEPS):
            try:
                return await transport.receive()
            except OSError:
                return b""
    return b""
