"""What a program and its task host say: once and in order, however often cut off."""

import os
import random
import time
from collections.abc import Iterator

import anyio
import anyio.lowlevel
import pytest

from grass.errors import ProtocolError
from grass.tasks.host import conversation
from grass.tasks.host.conversation import Conversation
from grass.tasks.host.host_frames import (
    FUNCTION,
    RESULT,
    SIGN_OF_LIFE,
    TASK,
    Chunks,
    FrameAssembler,
    HostFrame,
    as_chunk,
)


class Pipe:
    """One end of a connection in memory, which breaks after so many bytes."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.incoming: list[bytes] = []
        self.news = anyio.Event()
        self.other: Pipe

    async def send(self, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        self.left -= len(data)
        if self.left < 0:
            # Half of it arrives.
            self.other.arrived(data[: len(data) // 2])
            self.other.arrived(b"")
            self.arrived(b"")
            raise ConnectionResetError
        self.other.arrived(data)

    def arrived(self, data: bytes) -> None:
        self.incoming.append(data)
        self.news.set()

    async def receive(self) -> bytes:
        while not self.incoming:
            self.news = anyio.Event()
            await self.news.wait()
        return self.incoming.pop(0)


def connected(left: int) -> tuple[Pipe, Pipe]:
    one, two = Pipe(left), Pipe(left)
    one.other, two.other = two, one
    return one, two


class Side:
    """One side, and what it was told."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, bytes]] = []
        self.talk = Conversation(b"{}", lambda _: None, self._taken)

    def _taken(self, frames: list[HostFrame]) -> None:
        for frame in frames:
            content = b""
            if frame.descriptor is not None:
                content = os.pread(frame.descriptor, 1 << 22, 0)
            frame.close()
            self.heard.append((frame.number, frame.data + content))


def shared(data: bytes) -> int:
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    return descriptor


def frames(chance: random.Random) -> Iterator[tuple[HostFrame, bytes]]:
    for number in range(60):
        data = chance.randbytes(chance.choice([0, 10, 1000, 100_000]))
        content = chance.randbytes(300_000) if chance.random() < 0.1 else b""
        descriptor = shared(content) if content else None
        yield HostFrame(TASK, 1, number, data, descriptor), data + content


@pytest.mark.parametrize("seed", range(5))
def test_frames_arrive_once_and_in_order_over_broken_connections(
    seed: int, backend: str
) -> None:
    chance = random.Random(seed)
    here, there = Side(), Side()
    expected: list[list[tuple[int, bytes]]] = []
    for side in (here, there):
        made = list(frames(chance))
        for frame, _ in made:
            side.talk.put(frame)
        expected.append([(frame.number, whole) for frame, whole in made])

    async def whole() -> int:
        count = 0
        while (there.heard, here.heard) != tuple(expected):
            one, two = connected(chance.randrange(1, 2_000_000))
            count += 1
            with anyio.move_on_after(0.5):
                async with anyio.create_task_group() as group:
                    group.start_soon(here.talk.run, one)
                    group.start_soon(there.talk.run, two)
        return count

    assert anyio.run(whole, backend=backend) > 1
    here.talk.close()
    there.talk.close()


def test_another_end_than_before_is_refused(backend: str) -> None:
    async def talk(one: Side, two: Side) -> None:
        ends = connected(1 << 30)
        with anyio.move_on_after(0.2):
            async with anyio.create_task_group() as group:
                group.start_soon(one.talk.run, ends[0])
                group.start_soon(two.talk.run, ends[1])

    async def whole() -> None:
        here, there = Side(), Side()
        for number in range(40):
            here.talk.put(HostFrame(FUNCTION, 0, number))
        await talk(here, there)
        assert here.talk.is_empty or len(there.heard) == 40
        with pytest.raises(ExceptionGroup) as refused:
            await talk(here, Side())
        assert refused.group_contains(ProtocolError, match="not the one")

    anyio.run(whole, backend=backend)


def test_a_loop_that_was_busy_reads_before_it_gives_up(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "SILENCE_S", 0.2)
    here, ends = Side(), connected(1 << 30)
    frame = b"".join(HostFrame(RESULT, 0, 7).pieces())

    async def whole() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(here.talk.run, ends[0])
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            ends[0].arrived(as_chunk(frame))
            time.sleep(0.3)  # noqa: ASYNC251 -- a busy loop

    anyio.run(whole, backend=backend)
    assert here.heard == [(7, b"")]


def test_signs_of_life_may_come_between_any_two_pieces() -> None:
    carried = as_chunk(b"ab") + SIGN_OF_LIFE + as_chunk(b"cde")
    for step in range(1, len(carried) + 1):
        chunks, cuts = Chunks(), range(0, len(carried), step)
        found = b"".join(chunks.take(carried[at : at + step]) for at in cuts)
        assert found == b"abcde"


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(ProtocolError, match="no frame"):
        list(FrameAssembler().take(b"\xff" * 64))
    whole = b"".join(HostFrame(RESULT, 3, 4, b"data").pieces())
    reader = FrameAssembler()
    found = [one for at in range(len(whole)) for one in reader.take(whole[at : at + 1])]
    assert found == [HostFrame(RESULT, 3, 4, b"data")]
