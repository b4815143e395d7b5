"""The route that sends what changes: a stream of server-sent events for each page.

A caller names topics. Each frame has the topic as `event`, and where a reader may go on
from there, the number of the journal's last line as `id`. After a disconnect a reader
continues with `after`, or with the header `Last-Event-ID` that browsers send.
"""

import time
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.access.auth import identify
from grass.api.access.viewers import feed_of, viewer
from grass.api.context import context_of
from grass.api.payloads import number
from grass.api.routes.events import MEDIA_TYPE
from grass.errors import UsageError
from grass.model.access import Token
from grass.queries.feed.feed import TOPICS, Feed
from grass.queries.feed.job_topics import is_job_topic
from grass.queries.presentation import Viewer

HEARTBEAT_S = 15.0
"""After this time without a frame a comment is sent, to keep the connection open."""
MOST_TOPICS = 20
HEARTBEAT = b": still here\n\n"


async def stream(request: Request) -> Response:
    """Send what changes of some topics, as server-sent events."""
    topics = _topics(request.query_params.get("topics", ""))
    last_seen = request.query_params.get("after")
    if last_seen is None:
        last_seen = request.headers.get("last-event-id")
    since = None if last_seen is None else number(last_seen, 0)
    frames = _frames(feed_of(request), viewer(request), topics, since)
    frames = _while_valid(request, frames)
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(frames, media_type=MEDIA_TYPE, headers=headers)


def _topics(text: str) -> frozenset[str]:
    topics = frozenset(one for one in text.split(",") if one)
    known = f"topics: {', '.join(sorted(TOPICS))}, log:ID, log:ID:stderr, usage:ID"
    for topic in sorted(topics - TOPICS):
        if not is_job_topic(topic):
            raise UsageError(f"there is no topic `{topic}`", known)
    if not 0 < len(topics) <= MOST_TOPICS:
        raise UsageError(f"name 1 to {MOST_TOPICS} topics", known)
    return topics


async def _while_valid(
    request: Request, frames: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Pass frames on, none of them once the caller's token is revoked or over."""
    name = identify(request).token
    began = context_of(request).broker.state.tokens.get(name)
    try:
        async for one in frames:
            # Looked up each time: the state may be another one after a failed commit.
            known = context_of(request).broker.state.tokens.get(name)
            if name and not _is_same(began, known):
                return
            yield one
    finally:
        await frames.aclose()


def _is_same(began: Token | None, now: Token | None) -> bool:
    """Tell whether a token is the one that a stream began with, and still holds."""
    if began is None or now is None or began.created_at != now.created_at:
        return False
    return now.holds(time.time_ns() // 1000)


async def _frames(
    feed: Feed, who: Viewer, topics: frozenset[str], since: int | None
) -> AsyncGenerator[bytes, None]:
    follower = await feed.follow(who, topics)
    try:
        until = feed.seq
        yield feed.hello()
        if since is not None:
            for frame in await feed.missed(follower, since, until):
                yield frame
        while (taken := await follower.taken(HEARTBEAT_S)) is not None:
            yield b"".join(taken) or HEARTBEAT
    finally:
        feed.leave(follower)
