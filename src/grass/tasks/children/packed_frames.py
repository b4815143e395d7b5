"""Arguments and results as one run of bytes: in a request, a blob or a result file.

A frame is a count of buffers, the size of the pickle and of each buffer, the pickle,
and then the buffers, each at a multiple of 64 bytes in its file. So a reader that maps
the file uses large arrays where they lie, and nothing is copied to write them. The
frame is plain pickle 5 for anybody who has its functions and classes: those of
`__main__` are in it by value.

A result file has `MAGIC`, a byte that tells a value from an exception, and a frame.
"""

from __future__ import annotations

import pickle
import struct

from grass.tasks.children.payloads import dump_with_buffers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Piece = bytes | memoryview

MAGIC = b"GRASSRES"
VALUE, RAISED = 0, 1
RESULT_HEAD = len(MAGIC) + 1
_ALIGNED = 64
_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_MOST_BUFFERS = 1_000_000


class BadFrame(ValueError):
    """Bytes that are no frame, or not a whole one."""


def pack(value: Any, at: int = 0) -> list[Piece]:  # noqa: ANN401 -- anything
    """Return the pieces of a frame that begins `at` a place of its file.

    They refer to the memory of the value: write them before it changes.
    """
    data, buffers = dump_with_buffers(value)
    views = [buffer.raw() for buffer in buffers]
    sizes = [len(data), *(view.nbytes for view in views)]
    head = _COUNT.pack(len(views)) + b"".join(map(_SIZE.pack, sizes))
    pieces: list[Piece] = [head + data]
    at += len(head) + len(data)
    for view in views:
        gap = -at % _ALIGNED
        pieces += [bytes(gap), view] if gap else [view]
        at += gap + view.nbytes
    return pieces


def unpack(frame: bytes | memoryview, at: int = 0) -> Any:  # noqa: ANN401
    """Return the value of a frame that began `at` a place of its file.

    Large buffers of the value are parts of `frame`.
    """
    pickled, buffers = parts(memoryview(frame), at)
    return pickle.loads(pickled, buffers=buffers)  # noqa: S301 -- see security.md


def parts(frame: memoryview, at: int = 0) -> tuple[memoryview, list[memoryview]]:
    """Return the pickle of a frame, and its buffers."""
    try:
        (count,) = _COUNT.unpack_from(frame)
        if count > _MOST_BUFFERS:
            raise BadFrame(f"a frame with {count} buffers")
        sizes = [
            _SIZE.unpack_from(frame, _COUNT.size + _SIZE.size * one)[0]
            for one in range(count + 1)
        ]
    except struct.error as error:
        raise BadFrame(str(error)) from None
    place = _COUNT.size + _SIZE.size * (count + 1)
    found = [frame[place : place + sizes[0]]]
    place += sizes[0]
    for size in sizes[1:]:
        place += -(at + place) % _ALIGNED
        found.append(frame[place : place + size])
        place += size
    if place > len(frame):
        raise BadFrame(f"a frame of {place} bytes, of which {len(frame)} are there")
    return found[0], found[1:]


def pack_result(value: Any, status: int = VALUE) -> list[Piece]:  # noqa: ANN401
    """Return the pieces of a result file."""
    return [MAGIC + bytes([status]), *pack(value, RESULT_HEAD)]


def unpack_result(content: bytes | bytearray | memoryview) -> tuple[int, Any]:
    """Return what a result file tells: `VALUE` or `RAISED`, and the value."""
    view = memoryview(content)
    if len(view) < RESULT_HEAD or bytes(view[: len(MAGIC)]) != MAGIC:
        raise BadFrame("this is no result")
    return view[len(MAGIC)], unpack(view[RESULT_HEAD:], RESULT_HEAD)
