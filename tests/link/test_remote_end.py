"""One side of a link over a transport that carries frames."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from grass.link import remote_end
from grass.link.frames import decoder_to_broker, decoder_to_worker, encode
from grass.link.messages import (
    Exited,
    Heard,
    Heartbeat,
    OutputData,
    Resync,
    Start,
    TaskBytes,
    ToBroker,
    ToWorker,
)
from grass.link.remote_end import RemoteEnd
from tests.support.patience import in_time


class Wire:
    """A transport whose other side is the test."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.took = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.incoming: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.end: RemoteEnd[ToBroker, ToWorker]
        self.end = RemoteEnd(self.send, self.receive, decoder_to_worker)
        self.got: list[list[ToWorker]] = []
        self.ends = 0
        self.over = asyncio.Event()

    async def send(self, frame: bytes) -> None:
        self.sent.append(frame)
        self.took.set()
        await self.open.wait()

    async def receive(self) -> bytes | None:
        came = await self.incoming.get()
        if isinstance(came, Exception):
            raise came
        return came

    def listen(self) -> None:
        self.end.listen(self.got.append, self.ended)

    def ended(self) -> None:
        self.ends += 1
        self.over.set()

    def batches(self) -> list[list[ToBroker]]:
        return [decoder_to_broker.decode(frame) for frame in self.sent]

    async def until_sent(self, frames: int) -> None:
        while len(self.sent) < frames:
            self.took.clear()
            await self.took.wait()


Story = Callable[[Wire], Coroutine[Any, Any, None]]


def play(story: Story) -> Wire:
    """Run a story beside an end; it must have notified its owner once when over."""

    async def whole() -> Wire:
        wire = Wire()
        wire.listen()
        running = asyncio.ensure_future(wire.end.run())
        await story(wire)
        wire.end.close()
        await running
        assert wire.ends == 1
        assert wire.end.closed
        return wire

    return uvloop.run(whole())


def test_what_is_sent_in_one_turn_is_one_frame() -> None:
    async def story(wire: Wire) -> None:
        for at in range(3):
            wire.end.send(Heartbeat(at))
        await wire.until_sent(1)
        wire.end.send(Heartbeat(3))
        await wire.until_sent(2)

    beats = [Heartbeat(at) for at in range(4)]
    assert play(story).batches() == [beats[:3], beats[3:]]


def test_what_gathers_while_a_frame_is_sent_is_one_frame_too() -> None:
    async def story(wire: Wire) -> None:
        wire.open.clear()
        for at in range(50):
            wire.end.send(Heartbeat(at))
            await asyncio.sleep(0)
        wire.open.set()
        await wire.until_sent(2)

    batches = play(story).batches()
    assert [one for batch in batches for one in batch] == [
        Heartbeat(at) for at in range(50)
    ]
    assert len(batches) == 2


def test_output_waits_for_everything_else_and_goes_piece_by_piece() -> None:
    async def story(wire: Wire) -> None:
        wire.open.clear()
        for stream in range(5):
            wire.end.send(OutputData(stream, b"x"))
        await wire.until_sent(1)
        wire.end.send(Heartbeat(1))
        wire.end.send(OutputData(5, b"x"))
        wire.end.send(Heartbeat(2))
        wire.open.set()
        await wire.until_sent(7)

    batches = play(story).batches()
    assert batches[0] == [OutputData(0, b"x")]
    assert batches[1] == [Heartbeat(1), Heartbeat(2)]
    assert batches[2:] == [[OutputData(stream, b"x")] for stream in range(1, 6)]


def test_bytes_of_tasks_go_before_output_and_after_all_else() -> None:
    async def story(wire: Wire) -> None:
        wire.open.clear()
        wire.end.send(OutputData(0, b"x"))
        await wire.until_sent(1)
        wire.end.send(OutputData(1, b"x"))
        wire.end.send(TaskBytes(7, b"a"))
        wire.end.send(TaskBytes(7, b"b"))
        wire.end.send(Heartbeat(1))
        wire.open.set()
        await wire.until_sent(5)

    assert play(story).batches()[1:] == [
        [Heartbeat(1)],
        [TaskBytes(7, b"a")],
        [TaskBytes(7, b"b")],
        [OutputData(1, b"x")],
    ]


def test_a_peer_that_never_reads_loses_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_end, "MOST_UNSENT", 10_000)
    monkeypatch.setattr(remote_end, "SLOW_S", 0.1)

    async def story(wire: Wire) -> None:
        wire.open.clear()
        wire.end.send(Heartbeat(0))
        await wire.until_sent(1)
        for number in range(1000):
            wire.end.send(Heartbeat(number))
        assert not wire.end.closed
        await wire.over.wait()
        wire.end.send(Heartbeat(0))

    wire = play(story)
    assert wire.end.reason == remote_end.TOO_SLOW
    assert len(wire.sent) == 1


def test_a_peer_that_reads_none_of_the_bytes_of_tasks_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_end, "MOST_TASK_BYTES", 10_000)

    async def story(wire: Wire) -> None:
        wire.open.clear()
        wire.end.send(TaskBytes(0, bytes(1000)))
        await wire.until_sent(1)
        for number in range(20):
            wire.end.send(TaskBytes(number, bytes(1000)))
        await wire.over.wait()

    assert play(story).end.reason == remote_end.TOO_SLOW


def test_a_peer_that_reads_slowly_may_be_sent_a_lot_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_end, "MOST_UNSENT", 10_000)
    monkeypatch.setattr(remote_end, "USUAL_FRAME", 5_000)

    def played(limit_s: float) -> Wire | None:
        monkeypatch.setattr(remote_end, "SLOW_S", limit_s)
        pauses_s = []

        async def story(wire: Wire) -> None:
            for _ in range(20):
                wire.end.send(Exited("a" * 4_000, 1, 0))
            # All of them take longer than one frame may take.
            for frame in range(1, 21):
                began = time.monotonic()
                wire.open.clear()
                await wire.until_sent(frame)
                await asyncio.sleep(limit_s / 15)
                wire.open.set()
                pauses_s.append(time.monotonic() - began)
                if wire.end.closed:
                    return

        wire = play(story)
        return wire if max(pauses_s) < limit_s / 2 else None

    wire = in_time(played, "the machine is too slow")
    assert wire.end.reason != remote_end.TOO_SLOW
    assert len(wire.sent) == 20


def test_a_start_too_large_comes_back_as_an_attempt_that_failed() -> None:
    async def story() -> list[Exited]:
        wire = Wire()
        end: RemoteEnd[ToWorker, ToBroker]
        end = RemoteEnd(wire.send, wire.receive, decoder_to_broker)
        heard: asyncio.Queue[list[ToBroker]] = asyncio.Queue()
        end.listen(heard.put_nowait, lambda: None)
        end.send(Start("a.1.1", 1, 1, "n", "p", ("x" * (17 << 20),), False, {}))
        return [one for one in await heard.get() if isinstance(one, Exited)]

    (exited,) = asyncio.run(story())
    assert exited.attempt == "a.1.1"
    assert (exited.reason or "").startswith("could not start: a Start of 17")


def test_output_that_was_asked_for_does_not_count_as_unsent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_end, "MOST_UNSENT", 10_000)

    async def story(wire: Wire) -> None:
        wire.open.clear()
        for stream in range(100):
            wire.end.send(OutputData(stream, bytes(5000)))
        assert not wire.end.closed
        wire.open.set()
        await wire.until_sent(100)

    assert len(play(story).sent) == 100


def test_a_message_too_large_is_left_out_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(wire: Wire) -> None:
        wire.end.send(Heartbeat(1))
        wire.end.send(OutputData(1, bytes(17 << 20)))
        wire.end.send(Heartbeat(2))
        await wire.until_sent(1)

    assert play(story).batches() == [[Heartbeat(1), Heartbeat(2)]]
    assert "too large to send" in caplog.text


def test_frames_are_delivered_as_they_arrive_and_none_after_the_end() -> None:
    async def story(wire: Wire) -> None:
        for frame in (*encode([Heard(1), Heard(2)]), *encode([Heard(3)]), None):
            wire.incoming.put_nowait(frame)
        await wire.over.wait()

    wire = play(story)
    assert wire.got == [[Heard(1), Heard(2)], [Heard(3)]]
    assert wire.end.reason == remote_end.THERE


@pytest.mark.parametrize("frame", [b"garbage", b"\xc1", bytes((16 << 20) + 1)])
def test_garbage_ends_the_link_with_a_reason(frame: bytes) -> None:
    async def story(wire: Wire) -> None:
        wire.incoming.put_nowait(frame)
        wire.incoming.put_nowait(encode([Heard(1)])[0])
        await wire.over.wait()

    wire = play(story)
    assert not wire.got
    assert "frame" in wire.end.reason


def test_a_broken_transport_ends_the_link() -> None:
    async def story(wire: Wire) -> None:
        wire.incoming.put_nowait(ConnectionResetError("gone"))
        await wire.over.wait()

    assert play(story).end.reason == "the connection broke: gone"


def test_a_transport_that_breaks_on_sending_ends_the_link() -> None:
    async def story() -> None:
        async def send(frame: bytes) -> None:
            raise BrokenPipeError("gone")

        async def receive() -> None:
            await asyncio.Event().wait()

        end: RemoteEnd[ToBroker, ToWorker]
        end = RemoteEnd(send, receive, decoder_to_worker)
        end.send(Heartbeat(1))
        await end.run()
        assert end.reason == "the connection broke: gone"

    uvloop.run(story())


def test_an_owner_that_listens_late_gets_everything_in_order_and_then_the_end() -> None:
    async def story() -> None:
        wire = Wire()
        wire.incoming.put_nowait(encode([Heard(1)])[0])
        wire.incoming.put_nowait(None)
        await wire.end.run()
        assert wire.ends == 0
        seen: list[object] = []
        wire.end.listen(seen.extend, lambda: seen.append("ended"))
        assert not seen
        await asyncio.sleep(0)
        assert seen == [Heard(1), "ended"]

    uvloop.run(story())


def test_an_owner_that_raises_loses_the_link_and_is_notified(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        wire = Wire()

        def fail(batch: list[ToWorker]) -> None:
            raise KeyError("a defect")

        wire.end.listen(fail, wire.ended)
        wire.incoming.put_nowait(encode([Resync()])[0])
        await wire.end.run()
        assert wire.ends == 1

    uvloop.run(story())
    assert "defect" in [one.getMessage().split()[0] for one in caplog.records]


def test_cancelling_the_task_notifies_the_owner() -> None:
    async def story() -> None:
        wire = Wire()
        wire.listen()
        running = asyncio.ensure_future(wire.end.run())
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert wire.ends == 1
        assert wire.end.reason == remote_end.HERE

    uvloop.run(story())


def test_a_defect_of_the_transport_is_not_hidden_and_the_owner_is_notified() -> None:
    async def story() -> None:
        wire = Wire()
        wire.listen()
        wire.incoming.put_nowait(ZeroDivisionError("a defect"))
        with pytest.raises(ZeroDivisionError):
            await wire.end.run()
        assert wire.ends == 1

    uvloop.run(story())
