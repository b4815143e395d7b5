"""Cancels long requests and streams when the client disconnects or the daemon stops."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from grass.api.context import api_state
from grass.errors import GrassError, Stopping

T = TypeVar("T")

NOT_WAITED_FOR = "Cancel %s running task(s), timeout graceful shutdown exceeded"
"""What uvicorn logs as an error when a stop has taken as long as it may."""


class ClientGone(GrassError):
    """The client has disconnected, so the answer is not read."""

    code = "gone"
    status = 499


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do the work; cancel it when the client disconnects or the daemon stops."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnect(request))
    closing = asyncio.ensure_future(api_state(request).closing.wait())
    tasks: set[asyncio.Future[Any]] = {doing, leaving, closing}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise (
            ClientGone("the client has disconnected")
            if leaving.done()
            else Stopping("the daemon stops")
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class StreamAborted(Exception):
    """Aborts a stream, so that its reader knows that it is incomplete."""


def is_unexpected(record: logging.LogRecord) -> bool:
    """Filter out of a server's log what is done on purpose.

    Streams are aborted, and requests that a stop has waited for as long as it may are
    cancelled; so is who does not take an answer.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, StreamAborted | asyncio.CancelledError):
        return False
    return record.msg != NOT_WAITED_FOR


async def until_stop(
    closing: asyncio.Event, pieces: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Pass a stream on; abort it when the daemon stops."""
    stopping = asyncio.ensure_future(closing.wait())
    either: set[asyncio.Future[Any]] = {stopping}
    try:
        while True:
            following = asyncio.ensure_future(anext(pieces, None))
            either = {following, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                raise StreamAborted
            piece = following.result()
            if piece is None:
                return
            yield piece
    finally:
        # Also where this request itself was cancelled while it waited.
        for one in either:
            one.cancel()
        await asyncio.gather(*either, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
