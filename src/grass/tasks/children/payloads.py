"""Arguments and results as bytes: pickle 5, with large buffers in shared memory.

Buffers above `LARGE` bytes go into one anonymous file in memory, whose descriptor is
sent along; the other side maps it, so an array is copied once and not sent through a
socket. The memory is gone with the last process that has it. Classes and functions of
`__main__` are pickled by value.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
from struct import Struct
from threading import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")

LARGE = 1 << 16
_ALIGNED = 64
_COUNT = Struct("<I")
_SIZE = Struct("<Q")
_PLAIN = frozenset({int, float, str, bytes, bool, type(None), complex})


def dump(value: Any) -> tuple[bytes, int | None]:  # noqa: ANN401 -- anything
    """Return the bytes of a value, and the descriptor of its large buffers."""
    data, large = dump_with_buffers(value)
    sizes = [buffer.raw().nbytes for buffer in large]
    head = _COUNT.pack(len(sizes)) + b"".join(map(_SIZE.pack, sizes))
    return head + data, _shared(large) if large else None


class _Chosen(local):
    """How this thread pickles what the plain pickler cannot."""

    around: Callable[[Any, Callable[[Any, Callable[..., Any]], Any]], Any] | None = None
    """Is given a value, and what dumps it with a pickler of a class."""


chosen = _Chosen()


def dump_with_buffers(
    value: Any,  # noqa: ANN401 -- anything
) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """Return the pickle of a value, and its large buffers, which are not copied."""
    if type(value) in _PLAIN or is_plain_call(value):
        return pickle.dumps(value, 5), []
    return _chosen_way(value, _dump_with_buffers)


def dump_whole(value: Any) -> bytes:  # noqa: ANN401 -- anything
    """Return the pickle of a value with all its buffers."""
    return _chosen_way(value, _dump_whole)


def _chosen_way(value: Any, dump: Callable[[Any, Callable[..., Any]], T]) -> T:  # noqa: ANN401
    import cloudpickle

    if chosen.around is None:
        return dump(value, cloudpickle.Pickler)
    found: T = chosen.around(value, dump)
    return found


def _dump_with_buffers(
    value: Any,  # noqa: ANN401
    pickler: Callable[..., Any],
) -> tuple[bytes, list[pickle.PickleBuffer]]:
    large: list[pickle.PickleBuffer] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < LARGE:
            return True
        large.append(buffer)
        return False

    data = io.BytesIO()
    pickler(data, protocol=5, buffer_callback=is_small).dump(value)
    return data.getvalue(), large


def _dump_whole(value: Any, pickler: Callable[..., Any]) -> bytes:  # noqa: ANN401
    data = io.BytesIO()
    pickler(data, protocol=5).dump(value)
    return data.getvalue()


def is_plain_call(value: object) -> bool:
    """Tell whether a tuple has only values that the plain pickler does as well."""
    if type(value) is not tuple:
        return False
    for one in value:
        if type(one) in _PLAIN or (type(one) is dict and not one):
            continue
        if type(one) is not tuple or not all(type(each) in _PLAIN for each in one):
            return False
    return True


def _shared(buffers: Sequence[pickle.PickleBuffer]) -> int:
    """Copy buffers into memory that can be sent, and return its descriptor."""
    descriptor = os.memfd_create("grass-task", os.MFD_CLOEXEC)
    try:
        at = 0
        for buffer in buffers:
            view = buffer.raw()
            end = at + view.nbytes
            while at < end:
                at += os.pwrite(descriptor, view[view.nbytes - (end - at) :], at)
            at = _aligned(at)
        os.ftruncate(descriptor, at)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def load(data: bytes, descriptor: int | None) -> Any:  # noqa: ANN401
    """Return the value; the descriptor is closed."""
    (count,) = _COUNT.unpack_from(data)
    at = _COUNT.size
    if descriptor is None:
        return pickle.loads(memoryview(data)[at:])  # noqa: S301 -- of our own child
    sizes = [_SIZE.unpack_from(data, at + _SIZE.size * one)[0] for one in range(count)]
    try:
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        mapped = memoryview(mmap.mmap(descriptor, 0, flags))
    finally:
        os.close(descriptor)
    buffers, start = [], 0
    for size in sizes:
        buffers.append(mapped[start : start + size])
        start = _aligned(start + size)
    rest = memoryview(data)[at + _SIZE.size * count :]
    return pickle.loads(rest, buffers=buffers)  # noqa: S301 -- of our own child


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
