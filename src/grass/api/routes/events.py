"""Routes that read the journal: by page, or as a stream.

The stream has server-sent events: `id` is the event's number, `event` its kind, `data`
the event as JSON. After a disconnect a reader continues with `after`, or with the
header `Last-Event-ID` that browsers send. The stream begins with the number that it
starts from, so that a reader that has seen no event yet misses none.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.context import api_state, context_of
from grass.api.payloads import number
from grass.api.server.cancellation import StreamAborted
from grass.broker.shell.service import Broker
from grass.errors import StorageError, UsageError
from grass.queries.documents import EventsReply, json_bytes
from grass.queries.journal_documents import event_reply
from grass.store.changes import StoredEvent
from grass.store.interface import Store

T = TypeVar("T")

MEDIA_TYPE = "text/event-stream"
LARGEST_PAGE = 1000
GATHER_S = 0.02
"""How long events are collected: a busy broker commits hundreds of times a second."""


class JournalFilter(NamedTuple):
    """Which events: of a job, of some kinds, or all."""

    job: int | None
    kinds: tuple[str, ...]


async def page(request: Request) -> EventsReply:
    """Read a page of the journal, the oldest first; `next` continues it."""
    query = request.query_params
    limit = number(query.get("limit"), 100, LARGEST_PAGE)
    if limit < 1:
        raise UsageError("a page holds at least one event")
    after, wanted = number(query.get("after"), 0), _wanted(request)
    broker = context_of(request).broker
    found = await broker.read(lambda db: db.events(after, limit + 1, *wanted))
    shown = [event_reply(one) for one in found[:limit]]
    return EventsReply(shown, shown[-1].seq if len(found) > limit else None)


async def stream(request: Request) -> Response:
    """Send the journal as it is written, as server-sent events."""
    broker = context_of(request).broker
    last_seen = request.query_params.get("after")
    if last_seen is None:
        last_seen = request.headers.get("last-event-id")
    newest = await broker.read(lambda db: db.last_event())
    after = number(last_seen, newest)
    closing = api_state(request).closing
    pieces = _stream(broker, closing, after, _wanted(request))
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(pieces, media_type=MEDIA_TYPE, headers=headers)


def _wanted(request: Request) -> JournalFilter:
    query = request.query_params
    job = number(query.get("job"), 0) or None
    return JournalFilter(job, tuple(query.getlist("kind")))


async def _stream(
    broker: Broker, closing: asyncio.Event, after: int, wanted: JournalFilter
) -> AsyncIterator[bytes]:
    yield b"id: %d\n\n" % after
    while not closing.is_set():
        # Before reading, so that no commit in between is missed.
        committed = asyncio.ensure_future(broker.next_commit())
        try:
            found, newest = await _read(broker, partial(_after, after, wanted))
            for event in found:
                yield _message(event)
            after = found[-1].seq if found else after
            if len(found) < LARGEST_PAGE:
                # Skip events that do not match the filter.
                after = max(after, newest)
                await _either(committed, closing)
        finally:
            committed.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await committed


async def _read(broker: Broker, query: Callable[[Store], T]) -> T:
    """Read; a store that cannot be read ends the stream, and its reader asks again."""
    try:
        return await broker.read(query)
    except StorageError:
        raise StreamAborted from None


def _after(
    after: int, wanted: JournalFilter, store: Store
) -> tuple[list[StoredEvent], int]:
    # The number first, so that events in between are read and not skipped.
    newest = store.last_event()
    return store.events(after, LARGEST_PAGE, *wanted), newest


def _message(event: StoredEvent) -> bytes:
    data = json_bytes(event_reply(event))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.kind.encode(), data)


async def _either(committed: asyncio.Future[None], closing: asyncio.Event) -> None:
    """Wait until something was committed, or the daemon stops."""
    stopping = asyncio.ensure_future(closing.wait())
    either: set[asyncio.Future[Any]] = {committed, stopping}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not closing.is_set():
            await asyncio.sleep(GATHER_S)
    finally:
        stopping.cancel()
