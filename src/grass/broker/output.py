"""Output on demand: it stays on the worker's disk and comes through the broker.

A reader asks for one piece at a time and gets the next only after the last, so a slow
reader holds nothing but its own piece. While jobs come and go readers have to rest.
"""

import asyncio
from collections.abc import Callable
from itertools import count

from grass.broker.pace import Pace
from grass.errors import NotFound, Unreachable
from grass.link.channel import Link
from grass.link.messages import (
    CloseOutput,
    OutputData,
    ReadOutput,
    ToBroker,
    ToWorker,
)

PIECE = 256 * 1024
"""Large, as most of what a piece costs does not depend on its size; but on a slow link
a heartbeat may have to wait for one."""

LinkOf = Callable[[str], Link[ToWorker, ToBroker] | None]


class OutputStreams:
    """Questions to workers that wait for their answer."""

    def __init__(self, link_of: LinkOf) -> None:
        """`link_of` finds a worker's link, if it is connected."""
        self._link_of = link_of
        self._pace = Pace()
        self._numbers = count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[OutputData]]] = {}

    async def read(
        self, worker: str, path: str, offset: int, *, wait: bool, length: int = PIECE
    ) -> bytes:
        """Return the next piece; with `wait`, not before there is one.

        An empty answer to a waiting read means: look again, the attempt may have ended.
        """
        await self._rested()
        link = self._link_of(worker)
        if link is None:
            raise _away()
        stream = next(self._numbers)
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
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
        self._pace.took(len(data.data), loop.time())
        return data.data

    async def _rested(self) -> None:
        loop = asyncio.get_running_loop()
        # There is no event to wait for: that no more jobs move is told by time alone.
        while (rest_s := self._pace.rest_s(loop.time())) > 0:  # noqa: ASYNC110
            await asyncio.sleep(rest_s)

    def jobs_moved(self) -> None:
        """Note that jobs come and go, behind which readers stand back."""
        self._pace.changed(asyncio.get_running_loop().time())

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
