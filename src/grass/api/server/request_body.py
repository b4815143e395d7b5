"""Reads request bodies of a limited size, within a budget for all requests.

A body counts until its request is answered.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from grass.api.access.auth import LARGEST_UNIDENTIFIED_BODY, actor, identify, is_large
from grass.api.budget import MIB, Budget
from grass.api.context import api_state
from grass.api.server.cancellation import ClientGone
from grass.errors import Busy, GrassError, TooLarge

LARGEST_BODY = 64 * MIB
MOST_READ = 16 * LARGEST_BODY
"""A refused body is read up to here, so that its sender gets the answer."""


@asynccontextmanager
async def counted_body(request: Request, largest: int) -> AsyncIterator[bytearray]:
    """Read a body of a limited size, and count it until the block is left."""
    budget = _budget(request)
    caller, data, reserved, size = actor(request), bytearray(), 0, 0
    refusal: GrassError | None = None
    try:
        async for piece in _streamed(request):
            size += len(piece)
            if size > MOST_READ:
                break
            if refusal is None:
                refusal = _refusal(budget, caller, size, len(piece), largest)
            # A client gets the answer only if its body is read: read on, store nothing.
            if refusal is None:
                reserved += len(piece)
                data += piece
            else:
                data.clear()
        if refusal is not None:
            raise refusal
        yield data
    finally:
        budget.release(caller, reserved)


@asynccontextmanager
async def pieces_of_body(
    request: Request, caller: str, room: int
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Read a body of any size as it comes, with `room` bytes of memory for it."""
    budget = _budget(request)
    if not budget.reserve(caller, room):
        raise _no_room()
    try:
        yield _streamed(request)
    finally:
        budget.release(caller, room)


def _budget(request: Request) -> Budget:
    """Return the budget of a request: other machines have one of their own."""
    state, is_local = api_state(request), identify(request).role is None
    return state.local_bodies if is_local else state.bodies


def _refusal(
    budget: Budget, caller: str, size: int, more: int, largest: int
) -> GrassError | None:
    """Return why a body is refused; None: it is not."""
    if size > largest:
        return TooLarge(f"the request is larger than {largest} bytes")
    if not budget.reserve(caller, more):
        return _no_room()
    return None


def _no_room() -> Busy:
    what = "other requests that are being sent take all room there is for them"
    return Busy(what, "try again in a moment")


async def small_body(request: Request) -> bytes:
    """Read a small body of a caller without a token."""
    data = bytearray()
    if not is_large(request):
        async for piece in _streamed(request):
            data += piece
            if len(data) > LARGEST_UNIDENTIFIED_BODY:
                break
        else:
            return bytes(data)
    raise TooLarge(f"the request is larger than {LARGEST_UNIDENTIFIED_BODY} bytes")


async def _streamed(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise ClientGone("the client has disconnected") from None
