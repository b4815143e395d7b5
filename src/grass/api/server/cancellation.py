"""Work that may take for ever, and what ends it early: the caller, or the daemon."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from grass.errors import GrassError, Stopping

T = TypeVar("T")


class Gone(GrassError):
    """The caller hung up; nobody reads the answer."""

    code = "gone"
    status = 499


async def unless_interrupted(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do the work; drop it when the caller hangs up or the daemon is to stop."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnect(request))
    closing = asyncio.ensure_future(request.app.state.closing.wait())
    tasks: set[asyncio.Future[Any]] = {doing, leaving, closing}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise Gone("hung up") if leaving.done() else Stopping("the daemon stops")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CutOff(Exception):
    """Ends a stream in its middle, so that its reader knows that more would come."""


def is_news(record: logging.LogRecord) -> bool:
    """Keep streams that were cut off on purpose out of a server's log."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, CutOff)


async def until_closing(
    closing: asyncio.Event, pieces: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Pass a stream on; cut it off when the daemon is to stop."""
    stopping = asyncio.ensure_future(closing.wait())
    try:
        while True:
            following = asyncio.ensure_future(anext(pieces, None))
            either: set[asyncio.Future[Any]] = {following, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                raise CutOff
            piece = following.result()
            if piece is None:
                return
            yield piece
    finally:
        stopping.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
