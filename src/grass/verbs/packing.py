"""Functions and arguments as bytes for jobs, and results as values again.

A function is pickled by value where another machine could not import it: what
`__main__` and notebooks define, and inside of `with_neighbours` modules beside the
script. All else is imported where it runs. What is pickled is what there is now: a job
that starts tomorrow calls the function as it was when it was enqueued.
"""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from grass.errors import Forbidden
from grass.model.jobs.task_call import BLOB_PREFIX, MOST_INLINE
from grass.tasks.children import packed_frames
from grass.tasks.errors import ChildTraceback, TaskFailed
from grass.tasks.functions import pickled, unpicklable
from grass.tasks.task import is_async, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Piece = bytes | memoryview

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class Packed(NamedTuple):
    """Pickled bytes, in pieces that are not copied."""

    pieces: Sequence[Piece]
    size: int
    title: str
    """The name of the function that they are, or that is called with them."""
    what: str
    """What they are, in words."""

    @property
    def name(self) -> str:
        """The SHA-256 of the bytes, by which a blob is named."""
        found = hashlib.sha256()
        for piece in self.pieces:
            found.update(piece)
        return found.hexdigest()


def pack_function(function: Callable[..., Any], backend: str | None = None) -> Packed:
    """Return the bytes of a function.

    A coroutine function is given an event loop of this kind where it runs, or of the
    kind that this program uses.
    """
    title = name_of(function).rpartition("<locals>.")[2]
    sent: Callable[..., Any] = getattr(function, "grass_plain", function)
    if is_async(function):
        from grass.tasks.coroutine_call import chosen_backend, run_coroutine

        sent = partial(run_coroutine, chosen_backend(backend), function)
    data = pickled(sent, title)
    return Packed([data], len(data), title, f"the function `{title}`")


def pack_arguments(
    title: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Packed:
    """Return the bytes of the arguments of a function of this name."""
    try:
        pieces = packed_frames.pack((args, dict(kwargs)))
    except Exception as error:
        raise unpicklable(title, args, kwargs) from error
    size = sum(memoryview(piece).nbytes for piece in pieces)
    return Packed(pieces, size, title, f"the arguments of `{title}`")


def inline(packed: Packed) -> str | None:
    """Return small arguments as a request has them; None: they are a blob."""
    if packed.size > MOST_INLINE:
        return None
    from binascii import b2a_base64

    return b2a_base64(b"".join(packed.pieces), newline=False).decode()


def blob_reference(name: str) -> str:
    """Return arguments that are a blob as a request names them."""
    return BLOB_PREFIX + name


def unpacked(content: bytes | bytearray, job: int) -> Any:  # noqa: ANN401 -- what was returned
    """Return what a task returned, or raise what it raised."""
    try:
        status, value = packed_frames.unpack_result(content)
    except Exception as error:
        raise TaskFailed(
            f"the result of job {job} cannot be unpickled here: {error}"
        ) from error
    if status == packed_frames.VALUE:
        return value
    raised, shown = value
    if isinstance(raised, Exception):
        raise raised from ChildTraceback(shown)
    # What ends a process there does not end this one.
    told = TaskFailed(f"job {job} raised {raised!r}")
    raise told from ChildTraceback(shown)


def check_owner(headers: Mapping[str, str], job: int) -> None:
    """Refuse the result of a job that somebody else has enqueued.

    To unpickle is to run what is in it.
    """
    if headers.get("grass-own") != "1":
        owner = headers.get("grass-owner", "somebody else")
        raise Forbidden(
            f"job {job} was enqueued by {owner}: unpickling its result would run code"
            " of theirs here",
            "enqueue it yourself to use what it returns",
        )
