"""Frames between a program and its task host, over a stream of bytes.

They are those of children, with the number of the child they are for. What goes between
processes as shared memory follows the frame here, and is shared memory again at the
other end.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import NamedTuple

from grass.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HELLO, ACK = UNCOUNTED = range(2)
"""Either way, outside of the count: how many frames were received so far, with who one
is; the same count alone."""
SETUP, OPEN, HOLD, FUNCTION, TEACH, TASK, KILL, LEAVE, END = range(2, 11)
"""To a host: its units; a new child; what the child holds; a function by its number;
that the child is to know it; a task; end the child now, or when it is done; end all."""
RESULT, ERROR, READY, GONE = range(11, 15)
"""From a host: a result, an exception, that a child has started, and its end."""

FRAMES_VERSION = 2
"""Both ends have the same: children get the frames of either end as they are."""
_HEADER = Struct("<BBxxIQdQQ")
_CHUNK = Struct("<I")
PIECE = 64 * 1024 - _CHUNK.size
"""So that the link, which cuts at 64 KiB, carries each of them whole."""
SIGN_OF_LIFE = bytes(_CHUNK.size)
_LONGEST = 1 << 40


class HostFrame(NamedTuple):
    """One frame; `number` is that of a task or function, or a count."""

    kind: int
    child: int = 0
    number: int = 0
    data: bytes = b""
    descriptor: int | None = None
    seconds: float = 0.0

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return _HEADER.size + len(self.data) + _shared_size(self.descriptor)

    def close(self) -> None:
        """Close the descriptor, if there is one."""
        if self.descriptor is not None:
            os.close(self.descriptor)

    def pieces(self) -> Iterator[bytes]:
        """Return its bytes, a piece at a time."""
        shared = _shared_size(self.descriptor)
        has = self.descriptor is not None
        sizes = (len(self.data), shared)
        rest = (self.kind, has, self.child, self.number, self.seconds)
        whole = memoryview(_HEADER.pack(*rest, *sizes) + self.data)
        for at in range(0, len(whole), PIECE):
            yield bytes(whole[at : at + PIECE])
        for at in range(0, shared, PIECE):
            assert self.descriptor is not None
            yield os.pread(self.descriptor, min(PIECE, shared - at), at)


def _shared_size(descriptor: int | None) -> int:
    return 0 if descriptor is None else os.fstat(descriptor).st_size


def as_chunk(piece: bytes) -> bytes:
    """Return what a connection carries of a piece: its size, and the bytes.

    Between any two of them a sign of life may be sent, which is an empty one.
    """
    return _CHUNK.pack(len(piece)) + piece


class Chunks:
    """Pieces out of what a connection has carried, however that was cut."""

    def __init__(self) -> None:
        self._left = 0
        self._head = b""

    def take(self, data: bytes) -> bytes:
        """Return what these bytes have of pieces."""
        found, at = [], 0
        while at < len(data):
            if not self._left:
                missing = _CHUNK.size - len(self._head)
                self._head += data[at : at + missing]
                at += missing
                if len(self._head) == _CHUNK.size:
                    (self._left,) = _CHUNK.unpack(self._head)
                    self._head = b""
                continue
            part = data[at : at + self._left]
            found.append(part)
            at += len(part)
            self._left -= len(part)
        return found[0] if len(found) == 1 else b"".join(found)


class FrameAssembler:
    """Frames out of pieces; shared memory is filled as its bytes come."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._coming: HostFrame | None = None
        self._at = self._until = 0

    def take(self, piece: bytes) -> Iterator[HostFrame]:
        """Return the frames that are complete with this piece."""
        self._buffer += piece
        while True:
            if self._coming is not None:
                self._fill()
                if self._at < self._until:
                    return
                whole, self._coming = self._coming, None
                yield whole
            elif not self._begin():
                return

    def close(self) -> None:
        """Forget a frame that did not come whole."""
        if self._coming is not None:
            self._coming.close()
        self._coming = None
        self._buffer.clear()

    def _begin(self) -> bool:
        """Read the next frame up to its shared memory; tell whether it is there."""
        buffer = self._buffer
        if len(buffer) < _HEADER.size:
            return False
        kind, has, child, number, seconds, length, shared = _HEADER.unpack_from(buffer)
        if kind > GONE or max(length, shared) > _LONGEST:
            raise ProtocolError("what came from the other end is no frame")
        end = _HEADER.size + length
        if len(buffer) < end:
            return False
        data = bytes(memoryview(buffer)[_HEADER.size : end])
        del buffer[:end]
        descriptor = _shared_memory(shared) if has else None
        self._coming = HostFrame(kind, child, number, data, descriptor, seconds)
        self._at, self._until = 0, shared
        return True

    def _fill(self) -> None:
        size = min(len(self._buffer), self._until - self._at)
        if size and self._coming is not None and self._coming.descriptor is not None:
            with memoryview(self._buffer) as view:
                written = os.pwrite(self._coming.descriptor, view[:size], self._at)
            del self._buffer[:written]
            self._at += written


def _shared_memory(size: int) -> int:
    descriptor = os.memfd_create("grass-task", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, size)
    return descriptor
