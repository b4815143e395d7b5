"""Frames between a program and its children: a header, bytes, and maybe a descriptor.

Both ends are of one version, on one machine. A descriptor is of shared memory with the
large buffers of a payload (`payloads`); it arrives with its frame or before it.
"""

from __future__ import annotations

import os
import socket
from array import array
from collections import deque
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NamedTuple
else:
    from typing import NamedTuple

HOLD, FUNCTION, TASK, RECALL, RESULT, ERROR, READY = range(7)
"""To a child: what it holds from now on; a function by its number; a task; that so many
tasks of those sent last are taken back. From a child: a result, an exception; and first
that it has started."""

_HEADER = Struct("<BBxxIQd")
_READ_BYTES = 1 << 18
_MOST_DESCRIPTORS = 64


class Frame(NamedTuple):
    """One frame; `number` is that of a task, a function, or a count."""

    kind: int
    number: int
    seconds: float
    data: bytes
    descriptor: int | None


def encoded(
    kind: int,
    number: int,
    data: bytes = b"",
    *,
    seconds: float = 0.0,
    has_descriptor: bool = False,
) -> bytes:
    """Return the bytes of a frame."""
    return _HEADER.pack(kind, has_descriptor, len(data), number, seconds) + data


class FrameReader:
    """Frames out of what a socket gives."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._buffer = bytearray()
        self._descriptors: deque[int] = deque()

    def receive(self) -> bool:
        """Read once; tell whether the other end is still there."""
        size = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array("i").itemsize)
        data, messages, _flags, _address = self._source.recvmsg(_READ_BYTES, size)
        for _level, _type, content in messages:
            found = array("i")
            found.frombytes(content[: len(content) - len(content) % found.itemsize])
            self._descriptors.extend(found)
        self._buffer += data
        return bool(data)

    def frames(self) -> Iterator[Frame]:
        """Return the frames that are complete."""
        buffer, at = self._buffer, 0
        try:
            while len(buffer) - at >= _HEADER.size:
                kind, held, length, number, seconds = _HEADER.unpack_from(buffer, at)
                end = at + _HEADER.size + length
                if end > len(buffer):
                    return
                data = bytes(buffer[at + _HEADER.size : end])
                at = end
                descriptor = self._descriptors.popleft() if held else None
                yield Frame(kind, number, seconds, data, descriptor)
        finally:
            del buffer[:at]

    def close(self) -> None:
        """Close descriptors whose frames did not come."""
        while self._descriptors:
            os.close(self._descriptors.popleft())


def send_with(target: socket.socket, data: bytes | memoryview, descriptor: int) -> int:
    """Send bytes with a descriptor; return how many went, and at least one did."""
    return socket.send_fds(target, [data], [descriptor])
