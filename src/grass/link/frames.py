"""The wire format of a link between machines: MessagePack, a batch in each frame.

A frame is an array of messages. A message of an unknown type is skipped and an unknown
field is ignored, so that neighbouring versions understand each other; any other
invalid frame is a `ProtocolError`.

MessagePack cannot encode lone surrogates, which is how texts hold bytes that are not
UTF-8. A message with such a text is sent as an extension that holds it as escaped JSON.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar, get_args

import msgspec

from grass.errors import ProtocolError
from grass.link.messages import Message, ToBroker, ToWorker

LARGEST_FRAME = 16 * 1024 * 1024
"""In bytes; a side that gets a larger frame ends the link."""
MOST_MESSAGES = 16 * 1024
"""In one frame; usual ones hold a tenth of it."""
ESCAPED = 1
"""The extension code of a message as JSON."""
_HEADER = 3
"""The most bytes that an array's header takes here."""

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()


class _Kind(msgspec.Struct):
    """Only the name of a message's type."""

    type: str


class Decoder(Generic[T]):
    """Reads the frames of one direction."""

    def __init__(self, union: Any) -> None:  # noqa: ANN401 -- a union is no type
        self._types = [kind.__struct_config__.tag for kind in get_args(union)]
        self._batch = msgspec.msgpack.Decoder(list[union])
        self._raw = msgspec.msgpack.Decoder(list[msgspec.Raw])
        self._kind = msgspec.msgpack.Decoder(_Kind | msgspec.msgpack.Ext)
        self._one = msgspec.msgpack.Decoder(union)
        self._union = union

    def decode(self, frame: bytes) -> list[T]:
        """Return the messages of a frame whose types are known."""
        if len(frame) > LARGEST_FRAME:
            raise ProtocolError(f"a frame of {len(frame)} bytes is too large")
        # Checked before decoding: many small messages take much memory.
        if (count := _count(frame)) > MOST_MESSAGES:
            raise ProtocolError(f"a frame of {count} messages is too large")
        try:
            return self._read(frame)
        except (ValueError, RecursionError) as error:
            # Errors of msgspec, of bad UTF-8 and of bad JSON are all ValueErrors.
            raise ProtocolError(f"a frame makes no sense: {error}") from None

    def _read(self, frame: bytes) -> list[T]:
        try:
            batch: list[T] = self._batch.decode(frame)
        except msgspec.ValidationError:
            return self._read_each(frame)
        return batch

    def _read_each(self, frame: bytes) -> list[T]:
        """Read a frame with unknown types or extensions, message by message."""
        batch: list[T] = []
        for raw in self._raw.decode(frame):
            kind = self._kind.decode(raw)
            if isinstance(kind, msgspec.msgpack.Ext):
                batch.extend(self._escaped(kind))
            elif kind.type in self._types:
                batch.append(self._one.decode(raw))
        return batch

    def _escaped(self, extension: msgspec.msgpack.Ext) -> list[T]:
        if extension.code != ESCAPED:
            return []
        document = json.loads(bytes(extension.data))
        kind = msgspec.convert(document, _Kind)
        if kind.type not in self._types:
            return []
        return [msgspec.convert(document, self._union)]


decoder_to_broker: Decoder[ToBroker] = Decoder(ToBroker)
decoder_to_worker: Decoder[ToWorker] = Decoder(ToWorker)


def encode(messages: Sequence[Message]) -> list[bytes]:
    """Encode a batch as frames: one, or more where one would be too large."""
    return join([pack(message) for message in messages])


def pack(message: Message) -> bytes:
    """Encode one message, for `join`."""
    try:
        packed = _encoder.encode(message)
    except UnicodeEncodeError:
        document = json.dumps(msgspec.to_builtins(message))
        extension = msgspec.msgpack.Ext(ESCAPED, document.encode())
        packed = _encoder.encode(extension)
    if len(packed) + _HEADER > LARGEST_FRAME:
        kind = type(message).__name__
        raise ProtocolError(f"a {kind} of {len(packed)} bytes is too large to send")
    return packed


def join(packed: Iterable[bytes], most: int = LARGEST_FRAME) -> list[bytes]:
    """Make frames of encoded messages, in order.

    No frame is larger than `most`, unless one message alone is.
    """
    frames: list[bytes] = []
    batch: list[bytes] = []
    room = most - _HEADER
    for one in packed:
        if batch and (len(one) > room or len(batch) == MOST_MESSAGES):
            frames.append(_frame(batch))
            batch, room = [], most - _HEADER
        batch.append(one)
        room -= len(one)
    if batch:
        frames.append(_frame(batch))
    return frames


def _frame(batch: list[bytes]) -> bytes:
    return b"".join((_array_header(len(batch)), *batch))


def _array_header(count: int) -> bytes:
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2, "big")


def _count(frame: bytes) -> int:
    """Return how many messages a frame holds; 0 if it is short or no array."""
    first = frame[:1]
    if first == b"\xdc":
        return int.from_bytes(frame[1:3], "big")
    if first == b"\xdd":
        return int.from_bytes(frame[1:5], "big")
    return 0
