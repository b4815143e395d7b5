"""Input for jobs: each piece goes to the worker, and the answer comes back.

A sender is answered only when the job's host has taken something, and sends its next
piece after that. So what a job does not read stays with its sender.
"""

import asyncio
from itertools import count

from grass.broker.shell.links import LinkOf
from grass.errors import TimedOut, Unreachable
from grass.link.messages import InputTaken, WriteInput

PATIENCE_S = 20.0
"""A worker answers sooner, also where the job reads nothing."""
LONGEST_PROBLEM = 200


class InputStreams:
    """Pieces of input that wait for a worker's answer."""

    def __init__(self, link_of: LinkOf) -> None:
        """`link_of` finds a worker's link, if it is connected."""
        self._link_of = link_of
        self._numbers = count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[InputTaken]]] = {}

    async def write(self, worker: str, piece: WriteInput) -> InputTaken:
        """Pass a piece on, and return what was taken of it; its stream is set here."""
        link = self._link_of(worker)
        if link is None:
            raise _away()
        stream = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[stream] = worker, answer
        piece.stream = stream
        link.send(piece)
        try:
            async with asyncio.timeout(PATIENCE_S):
                taken: InputTaken = await answer
        except TimeoutError:
            raise TimedOut(
                f"the worker did not take the input within {PATIENCE_S:g} s",
                "its version of grass may be older than this",
            ) from None
        finally:
            del self._waiting[stream]
        if taken.problem:
            raise Unreachable(f"no input: {taken.problem[:LONGEST_PROBLEM]}")
        return taken

    def received(self, worker: str, taken: InputTaken) -> None:
        """Deliver a worker's answer; it is dropped if its sender has left."""
        asked, answer = self._waiting.get(taken.stream, ("", None))
        if answer is not None and asked == worker and not answer.done():
            answer.set_result(taken)

    def gone(self, worker: str) -> None:
        """Fail the pieces that wait for a worker."""
        for asked, answer in self._waiting.values():
            if asked == worker and not answer.done():
                answer.set_exception(_away())


def _away() -> Unreachable:
    return Unreachable("the worker that runs this job is unreachable")
