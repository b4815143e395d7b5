"""Bodies of requests as they come in, of a limited size and on a budget for all.

A body counts until its request is answered.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from grass.api.access.auth import LARGEST_OF_STRANGERS, actor, identify, is_large
from grass.api.server.budget import MIB, Budget
from grass.api.server.cancellation import Gone
from grass.errors import Busy, GrassError, TooLarge

LARGEST_BODY = 64 * MIB
MOST_READ = 16 * LARGEST_BODY
"""A body that is refused is read up to here, to tell its sender."""


@asynccontextmanager
async def kept_body(request: Request, largest: int) -> AsyncIterator[bytearray]:
    """Read a body of a limited size, and count it until the block is left."""
    budget = _budget(request)
    caller, data, kept, size = actor(request), bytearray(), 0, 0
    refusal: GrassError | None = None
    try:
        async for piece in _streamed(request):
            size += len(piece)
            if size > MOST_READ:
                break
            if refusal is None:
                refusal = _refusal(budget, caller, size, len(piece), largest)
            # Who is cut off while sending never hears why: read on, and keep nothing.
            if refusal is None:
                kept += len(piece)
                data += piece
            else:
                data.clear()
        if refusal is not None:
            raise refusal
        yield data
    finally:
        budget.give(caller, kept)


def _budget(request: Request) -> Budget:
    """Choose the room for a body: other machines take none of the owner's."""
    state, is_local = request.app.state, identify(request).role is None
    budget: Budget = state.local_bodies if is_local else state.bodies
    return budget


def _refusal(
    budget: Budget, caller: str, size: int, more: int, largest: int
) -> GrassError | None:
    """Say why no more of a body is kept, if it is not."""
    if size > largest:
        return TooLarge(f"the request is larger than {largest} bytes")
    if not budget.take(caller, more):
        what = "other requests that are being sent take all room there is for them"
        return Busy(what, "try again in a moment")
    return None


async def small_body(request: Request) -> bytes:
    """Read the body of somebody who has shown no token; no more than is small."""
    data = bytearray()
    if not is_large(request):
        async for piece in _streamed(request):
            data += piece
            if len(data) > LARGEST_OF_STRANGERS:
                break
        else:
            return bytes(data)
    raise TooLarge(f"the request is larger than {LARGEST_OF_STRANGERS} bytes")


async def _streamed(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise Gone("hung up") from None
