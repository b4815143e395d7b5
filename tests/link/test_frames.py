"""The wire format between machines."""

import contextlib
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import ProtocolError
from grass.keeper.protocol import HelloEntry
from grass.link import frames
from grass.link.frames import decoder_to_broker, decoder_to_worker, encode
from grass.link.messages import (
    LINK_VERSION,
    Exited,
    Heard,
    Heartbeat,
    Hello,
    Message,
    OutputData,
    Resync,
    Start,
    Started,
    Stop,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.prepare import Surroundings
from grass.worker.core.worker_core import WorkerCore
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import slipped_bytes
from tests.fuzz.messages import said_by_broker, said_by_worker

UP: list[ToBroker] = [msgspec.convert(m, ToBroker) for m in said_by_worker("a" * 16)]
DOWN: list[ToWorker] = [msgspec.convert(m, ToWorker) for m in said_by_broker()]


def frame_of(*documents: Any) -> bytes:
    return msgspec.msgpack.encode(documents)


@pytest.mark.parametrize("count", [1, 15, 16, frames.MOST_MESSAGES])
def test_a_batch_is_one_frame_and_arrives_whole_and_in_order(count: int) -> None:
    beats = [Heartbeat(float(number)) for number in range(count)]
    (frame,) = encode(beats)
    assert decoder_to_broker.decode(frame) == beats


def test_a_frame_holds_only_so_many_messages() -> None:
    beats = [Heartbeat(float(number)) for number in range(3 * frames.MOST_MESSAGES)]
    made = encode(beats)
    assert len(made) == 3
    assert [one for frame in made for one in decoder_to_broker.decode(frame)] == beats


@pytest.mark.parametrize("count", [frames.MOST_MESSAGES + 1, 70_000])
def test_a_frame_of_too_many_messages_is_refused_unread(count: int) -> None:
    with pytest.raises(ProtocolError, match=f"{count} messages is too large"):
        decoder_to_broker.decode(msgspec.msgpack.encode([0] * count))


def test_every_message_survives_the_wire() -> None:
    (up,), (down,) = encode(UP), encode(DOWN)
    assert decoder_to_broker.decode(up) == UP
    assert decoder_to_worker.decode(down) == DOWN
    assert len({type(message) for message in UP + DOWN}) > 12


def test_no_messages_are_no_frames() -> None:
    assert encode([]) == []


def test_bytes_that_are_not_utf_8_survive_in_every_place() -> None:
    odd = b"/a/\xff\xc3\xa9".decode("utf-8", "surrogateescape")
    started = Started("a", 1, 2, output=odd)
    start = Start(
        *("a", 1, 1, odd, "p", (odd, "x")),
        shell=False,
        allocation={"cpu": {"0": 10_000}},
        base_env={odd: odd},
        env=((odd, odd),),
        umask=0o22,
        time_limit_s=0.1,
    )
    (up,), (down,) = encode([Heartbeat(1), started]), encode([start, Heard(2)])
    assert decoder_to_broker.decode(up) == [Heartbeat(1), started]
    assert decoder_to_worker.decode(down) == [start, Heard(2)]


def test_a_type_of_tomorrow_is_skipped_and_its_field_ignored() -> None:
    document = msgspec.to_builtins(Stop("a", 1.5)) | {"of_tomorrow": {"x": [1]}}
    odd = frames.pack(Started("\udcff", 1, 2))
    tomorrow = {"type": "of-tomorrow", "attempt": 7}
    frame = frame_of(tomorrow, document, msgspec.msgpack.Ext(9, b"?"), tomorrow)
    assert decoder_to_worker.decode(frame) == [Stop("a", 1.5)]
    # A worker skips the messages of workers, too.
    assert decoder_to_worker.decode(frame_of(msgspec.Raw(odd))) == []


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\xc0",
        b"garbage",
        b"\x91",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 100_000,
        frame_of({"type": "heartbeat", "at": 1.0}) + b"\0",
        frame_of(7),
        frame_of({}),
        frame_of({"type": 7}),
        frame_of({"type": "heartbeat"}),
        frame_of({"type": "heartbeat", "at": "now"}),
        frame_of({"type": "x", "y": 0}, {"type": "heartbeat", "at": None}),
        frame_of([{"type": "heartbeat", "at": 1.0}]),
        frame_of(msgspec.msgpack.Ext(frames.ESCAPED, b"{")),
        frame_of(msgspec.msgpack.Ext(frames.ESCAPED, b"\xff")),
        frame_of(msgspec.msgpack.Ext(frames.ESCAPED, b"[]")),
        frame_of(msgspec.msgpack.Ext(frames.ESCAPED, b"[" * 100_000)),
        frame_of(msgspec.msgpack.Ext(frames.ESCAPED, b'{"type":"heartbeat"}')),
        b"\x91\x82\xa4type\xa8returned\xa7attempt\xa1\xff",
        bytes(frames.LARGEST_FRAME + 1),
    ],
)
def test_an_invalid_frame_is_a_protocol_error(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decoder_to_broker.decode(frame)


FRAMES = [*encode(UP), *encode(DOWN), *encode([Started("\udcff", 1, 2)])]


@examples(300)
@given(frame=st.one_of(st.binary(max_size=60), slipped_bytes(FRAMES)))
def test_any_bytes_are_a_frame_or_a_protocol_error(frame: bytes) -> None:
    heard: list[ToBroker | ToWorker] = []
    with bounded():
        with contextlib.suppress(ProtocolError):
            heard += decoder_to_broker.decode(frame)
        with contextlib.suppress(ProtocolError):
            heard += decoder_to_worker.decode(frame)
    assert all(isinstance(one, Message) for one in heard), heard


def test_a_batch_too_large_for_one_frame_becomes_several() -> None:
    pieces = [OutputData(number, bytes(5 << 20)) for number in range(7)]
    made = encode(pieces)
    assert len(made) == 3
    assert max(map(len, made)) <= frames.LARGEST_FRAME
    read = [one for frame in made for one in decoder_to_broker.decode(frame)]
    assert read == pieces


def test_a_message_that_fits_exactly_is_sent_and_a_larger_one_refused() -> None:
    around = len(frames.pack(OutputData(1, bytes(1 << 20)))) - (1 << 20)
    most = frames.LARGEST_FRAME - 3 - around
    (frame,) = encode([OutputData(1, bytes(most))])
    assert len(frame) <= frames.LARGEST_FRAME
    with pytest.raises(ProtocolError, match="OutputData of"):
        encode([OutputData(1, bytes(most + 1))])


def test_an_exit_and_a_resync_are_small() -> None:
    (frame,) = encode([Exited(f"{'a' * 16}.7.1", 1_700_000_000_000_000, 0)])
    assert len(frame) < 80
    (frame,) = encode([Resync()])
    assert len(frame) == 14


def on_the_wire(message: Message) -> Any:
    """Decode the bytes of a message without its type."""
    (frame,) = encode([message])
    (document,) = msgspec.msgpack.decode(frame)
    return document


def test_both_sides_write_their_version() -> None:
    who = WorkerIdentity("w", "desk", "boot", {})
    worker = WorkerCore(who, Surroundings("/o", "/h", "sh", {}))
    worker.from_keeper(HelloEntry(2, 1, "boot", {}, None, []))
    (hello,) = worker.take().to_broker
    assert on_the_wire(hello)["version"] == LINK_VERSION
    assert on_the_wire(Welcome("c", LINK_VERSION))["version"] == LINK_VERSION


@pytest.mark.parametrize("kind", [*get_args(ToBroker), *get_args(ToWorker)])
def test_only_zeros_are_left_for_the_receiver_to_fill_in(kind: type[Message]) -> None:
    left_out = kind.__struct_config__.omit_defaults
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT:
            assert not left_out or not field.default, field.name
        elif field.default_factory is not msgspec.NODEFAULT:
            assert not left_out or not field.default_factory(), field.name


def test_a_peer_that_does_not_say_its_version_speaks_the_first() -> None:
    hello = {"type": "hello", "worker": "w", "name": "n", "boot": "b", "found": {}}
    hello |= {"running": [], "exited": []}
    (said,) = decoder_to_broker.decode(frame_of(hello))
    assert isinstance(said, Hello)
    assert said.version == 1
    (welcome,) = decoder_to_worker.decode(frame_of({"type": "welcome", "cluster": "c"}))
    assert isinstance(welcome, Welcome)
    assert welcome.version == 1
