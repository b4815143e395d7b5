"""Output on demand: it stays on the worker's disk and comes through the broker.

A reader asks for one piece at a time and gets the next only after the last, so a slow
reader holds nothing but its own piece.
"""

import asyncio
from collections.abc import Callable
from itertools import count

from grass.errors import NotFound, Unreachable
from grass.link.channel import Link
from grass.link.messages import (
    CloseOutput,
    OutputData,
    ReadOutput,
    ToBroker,
    ToWorker,
)

PIECE = 64 * 1024

LinkOf = Callable[[str], Link[ToWorker, ToBroker] | None]


class OutputStreams:
    """Questions to workers that wait for their answer."""

    def __init__(self, link_of: LinkOf) -> None:
        """`link_of` finds a worker's link, if it is connected."""
        self._link_of = link_of
        self._numbers = count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[OutputData]]] = {}

    async def read(
        self, worker: str, path: str, offset: int, *, wait: bool, length: int = PIECE
    ) -> bytes:
        """Return the next piece; with `wait`, not before there is one.

        An empty answer to a waiting read means: look again, the attempt may have ended.
        """
        link = self._link_of(worker)
        if link is None:
            raise _away()
        stream = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[stream] = worker, answer
        link.send(ReadOutput(stream, path, offset, length, wait))
        try:
            data: OutputData = await answer
        finally:
            del self._waiting[stream]
            if not answer.done() or answer.cancelled():
                link.send(CloseOutput(stream))
        if data.missing:
            raise NotFound(f"the output file {path} is gone")
        return data.data

    def arrived(self, worker: str, data: OutputData) -> None:
        """Take a worker's answer; one that nobody waits for any more is dropped."""
        asked, answer = self._waiting.get(data.stream, ("", None))
        if answer is not None and asked == worker and not answer.done():
            answer.set_result(data)

    def gone(self, worker: str) -> None:
        """Tell those who wait for a worker that it will not answer."""
        for asked, answer in self._waiting.values():
            if asked == worker and not answer.done():
                answer.set_exception(_away())


def _away() -> Unreachable:
    return Unreachable("the worker that holds this output is unreachable")
