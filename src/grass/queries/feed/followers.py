"""One follower of the feed: what waits to be sent to it.

The feed never waits for a follower. What a slow one has not taken is kept in a queue of
limited length; when that is full all of it is dropped, and the follower is told to read
anew what it shows.
"""

import asyncio
from collections import deque

from grass.queries.documents import json_bytes
from grass.queries.presentation import Viewer

MOST_FRAMES = 64
MOST_BYTES = 2 * 2**20
RESYNC = "resync"


def frame(topic: str, data: bytes, seq: int | None = None) -> bytes:
    """Return one server-sent event; its id is a number of the journal."""
    number = b"" if seq is None else b"id: %d\n" % seq
    return b"event: %s\n%sdata: %s\n\n" % (topic.encode(), number, data)


def resync(seq: int) -> bytes:
    """Return the frame after which a follower reads anew what it shows."""
    return frame(RESYNC, json_bytes({}), seq)


class Follower:
    """Who follows some topics, and the frames that it has not taken yet."""

    def __init__(self, viewer: Viewer, topics: frozenset[str]) -> None:
        self.viewer = viewer
        self.topics = topics
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._whole: dict[str, bytes] = {}
        """By topic: a document of which only the newest counts."""
        self._sent: dict[str, bytes] = {}
        self._arrived = asyncio.Event()
        self._closed = False

    def add(self, one: bytes, seq: int) -> None:
        """Queue a frame that none may be missing before."""
        if len(self._frames) >= MOST_FRAMES or self._bytes + len(one) > MOST_BYTES:
            one = resync(seq)
            self._frames.clear()
            self._bytes = 0
        self._frames.append(one)
        self._bytes += len(one)
        self._arrived.set()

    def show(self, topic: str, data: bytes, seq: int | None = None) -> None:
        """Replace the document of a topic, unless it is the one last shown."""
        if self._sent.get(topic) == data:
            return
        self._sent[topic] = data
        self._whole[topic] = frame(topic, data, seq)
        self._arrived.set()

    def close(self) -> None:
        """Let `taken` return None after the frames that wait."""
        self._closed = True
        self._arrived.set()

    async def taken(self, patience_s: float) -> list[bytes] | None:
        """Wait for frames and take them; none where none came; None: it is over."""
        try:
            async with asyncio.timeout(patience_s):
                await self._arrived.wait()
        except TimeoutError:
            return []
        # A number may be the last that is seen only after all frames up to it.
        frames = [*self._frames, *self._whole.values()]
        self._frames.clear()
        self._whole.clear()
        self._bytes = 0
        if self._closed:
            return frames or None
        self._arrived.clear()
        return frames
