"""Output on demand: it stays on the worker's disk and is read through the broker.

A reader asks for one chunk at a time and gets the next only after the last, so a slow
reader holds nothing but its own chunk.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from grass.broker.core.workers.message_checks import check_scanned
from grass.broker.shell.links import LinkOf
from grass.broker.shell.output_flow import ChunkSizes, Throttle
from grass.errors import NotFound, TimedOut, Unreachable
from grass.link.channel import Link
from grass.link.messages import (
    CloseOutput,
    OutputData,
    ReadOutput,
    ToBroker,
    ToWorker,
)
from grass.link.requests import LineScan, ScannedLines

PATIENCE_S = 20.0
"""How long a worker may take for a chunk that is there."""


class KeptOutput(Protocol):
    """Output that workers have left where the broker's own machine finds it."""

    def holds(self, paths: Sequence[str]) -> bool:
        """Return whether all these files are there."""

    def send(self, message: ReadOutput | CloseOutput) -> None:
        """Take a message as a worker does; answered with `delivered`."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove those of the files that are there."""


_ELSEWHERE = "if its pool is behind a submit_prefix, it is on the cluster"
_Asked = Link[ToWorker, ToBroker] | KeptOutput


class OutputStreams:
    """Reads of output that wait for a worker's answer."""

    def __init__(self, link_of: LinkOf) -> None:
        """`link_of` finds a worker's link, if it is connected."""
        self._link_of = link_of
        self.kept: KeptOutput | None = None
        self._throttle = Throttle()
        self._chunks = ChunkSizes()
        self._numbers = count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[OutputData]]] = {}

    async def read(
        self, worker: str, path: str, offset: int, length: int | None = None
    ) -> bytes:
        """Return the next chunk, of this length if there is so much; or nothing."""
        loop = asyncio.get_running_loop()
        if length is None:
            length = self._chunks.length(worker)
        asked_at = loop.time()
        said = await self._ask_soon(worker, ReadOutput(0, path, offset, length))
        # A worker may answer with more than it was asked for.
        data = said.data[:length]
        self._chunks.received(worker, len(data), loop.time() - asked_at)
        await self._pause(len(data))
        return data

    async def scan(
        self, worker: str, path: str, offset: int, wanted: LineScan
    ) -> ScannedLines | None:
        """Have a worker look through a part of a file, as far as it gets.

        None: the worker is of an older version, which cannot.
        """
        asked = ReadOutput(0, path, offset, 1, scan=wanted)
        said = await self._ask_soon(worker, asked)
        if said.scanned is not None:
            check_scanned(said.scanned, offset, wanted)
        return said.scanned

    async def read_files(
        self, worker: str, paths: list[str], most: int
    ) -> list[bytes | None]:
        """Read small files whole; None: one is missing, or larger than `most`."""
        asked = ReadOutput(0, "", 0, most, files=paths)
        found = (await self._ask_soon(worker, asked)).files[: len(paths)]
        # A worker may answer with anything.
        found += [None] * (len(paths) - len(found))
        return [None if one is None or len(one) > most else one for one in found]

    async def grown(self, worker: str, path: str, offset: int) -> None:
        """Return when a file may have become longer than that."""
        await self._ask(worker, ReadOutput(0, path, offset, 1, wait=True))

    async def _ask_soon(self, worker: str, request: ReadOutput) -> OutputData:
        """Ask for what is there; raise if the answer takes too long."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._ask(worker, request)
        except TimeoutError:
            raise TimedOut(
                f"the worker did not send the output within {PATIENCE_S:g} s",
                f"the disk with {request.path} may hang",
            ) from None

    async def _ask(self, worker: str, request: ReadOutput) -> OutputData:
        link, kept = self._link_of(worker), self._kept(request)
        if link is not None:
            try:
                return await self._answered(worker, request, link)
            except Unreachable:
                # It left meanwhile, but what it wrote may be here.
                if kept is None:
                    raise
        if kept is None:
            raise _away()
        return await self._answered("", request, kept)

    async def _answered(
        self, worker: str, request: ReadOutput, link: _Asked
    ) -> OutputData:
        request.stream = stream = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[stream] = worker, answer
        link.send(request)
        try:
            data: OutputData = await answer
        finally:
            del self._waiting[stream]
            if not answer.done() or answer.cancelled():
                link.send(CloseOutput(stream))
        if data.missing:
            hint = _ELSEWHERE if link is self.kept else ""
            raise NotFound(f"the output file {request.path} is gone", hint)
        return data

    def _kept(self, request: ReadOutput) -> KeptOutput | None:
        """Return what has these files though their worker is not connected."""
        paths = request.files or [request.path]
        return self.kept if self.kept is not None and self.kept.holds(paths) else None

    async def _pause(self, size: int) -> None:
        loop = asyncio.get_running_loop()
        until = self._throttle.pause_until(size, loop.time())
        # There is no event to wait for: that no more jobs move is told by time alone.
        while (pause_s := self._throttle.pause_s(until, loop.time())) > 0:  # noqa: ASYNC110
            await asyncio.sleep(pause_s)

    def committed(self) -> None:
        """Note a commit: while jobs come and go, readers are throttled."""
        self._throttle.committed(asyncio.get_running_loop().time())

    def received(self, worker: str, data: OutputData) -> None:
        """Deliver a worker's answer; it is dropped if its reader has left."""
        asked, answer = self._waiting.get(data.stream, ("", None))
        if answer is not None and asked == worker and not answer.done():
            answer.set_result(data)

    def delivered(self, data: OutputData) -> None:
        """Deliver what was read without a worker."""
        _, answer = self._waiting.get(data.stream, ("", None))
        if answer is not None and not answer.done():
            answer.set_result(data)

    def gone(self, worker: str) -> None:
        """Fail the reads that wait for a worker."""
        self._chunks.forget(worker)
        for asked, answer in self._waiting.values():
            if asked == worker and not answer.done():
                answer.set_exception(_away())


def _away() -> Unreachable:
    return Unreachable(
        "the worker that holds this output is unreachable",
        "it comes back with that machine: see `grass workers`",
    )
