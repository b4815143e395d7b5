"""Topics of one job: what it writes (`log:7`, `log:7:stderr`) and what it uses.

A topic is read by one task for all its followers, from its end on: what there was
before, a page reads by itself. Of output that grows faster than a page can show the
newest part is sent; the numbers of its bytes show what was left out.
"""

import asyncio
import codecs
import re
from collections.abc import AsyncIterator

from grass.broker.shell.service import Broker
from grass.errors import GrassError, NotFound, UsageError
from grass.model.jobs.job import Attempt
from grass.queries.documents import JsonObject
from grass.queries.output import output_following, output_sources
from grass.queries.output.output_sources import OutputSource
from grass.queries.selection import details_of
from grass.queries.usage_history import HistoryEnd

PAUSE_S = 0.25
"""Between two frames of one topic."""
USAGE_S = 1.0
AGAIN_S = 5.0
"""After this time a worker that was unreachable is asked again."""
MOST_BEHIND = 256 * 1024
"""Of more than so many bytes that were not sent yet only the last are."""
_TOPIC = re.compile(r"log:(\d{1,16})(:stderr)?\Z|usage:(\d{1,16})\Z")


def is_job_topic(topic: str) -> bool:
    """Tell whether a topic is one of a job."""
    return _TOPIC.match(topic) is not None


async def documents(broker: Broker, topic: str) -> AsyncIterator[JsonObject]:
    """Yield what is told of a topic, without end."""
    found = _TOPIC.match(topic)
    assert found is not None
    while True:
        try:
            if found[3] is not None:
                told = _usage(broker, int(found[3]))
            else:
                told = _log(broker, int(found[1]), found[2] is not None)
            async for document in told:
                yield document
        except GrassError as error:
            yield {"problem": error.message}
        await asyncio.sleep(AGAIN_S)


async def _log(broker: Broker, job: int, stderr: bool) -> AsyncIterator[JsonObject]:
    """Yield what a job writes, in all its attempts."""
    await details_of(broker, job)
    wanted: int | None = None
    while True:
        try:
            _, attempt = await output_following.started(broker, job, wanted)
        except (NotFound, UsageError):
            # It has ended; a rerun makes one more attempt.
            await broker.moved(job)
            continue
        source = output_sources.source_of(attempt, "stderr" if stderr else "output")
        if source is not None:
            async for document in _written(broker, source):
                yield document
        wanted = attempt.number + 1


async def _written(broker: Broker, source: OutputSource) -> AsyncIterator[JsonObject]:
    """Yield where an attempt's output ends now, then what is added, until its end."""
    offset = await output_sources.beginning(broker, source, 0)
    text = _Text(source.attempt, offset)
    yield text.document(b"")
    is_behind = True
    while is_behind:
        is_behind = False
        async for piece in output_following.followed(broker, source, text.end):
            yield text.document(piece)
            await asyncio.sleep(PAUSE_S)
            if len(piece) >= output_sources.PIECE:
                newest = await output_sources.beginning(broker, source, 0)
                if newest - text.end > MOST_BEHIND:
                    text = _Text(source.attempt, newest - output_sources.PIECE)
                    is_behind = True
                    break
    yield {**text.document(b""), "ended": True}


class _Text:
    """Bytes as text: a letter of several bytes may arrive in two pieces."""

    def __init__(self, attempt: Attempt, offset: int) -> None:
        self._attempt = attempt
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.end = offset

    def document(self, piece: bytes) -> JsonObject:
        """Return a frame with one more piece."""
        offset = self.end - len(self._decoder.getstate()[0])
        self.end += len(piece)
        text = self._decoder.decode(piece)
        return {
            "attempt": self._attempt.number,
            "offset": offset,
            "end": self.end - len(self._decoder.getstate()[0]),
            "text": text,
            "ended": False,
        }


async def _usage(broker: Broker, job: int) -> AsyncIterator[JsonObject]:
    """Yield what is measured of a job's attempts from now on."""
    await details_of(broker, job)
    while True:
        attempt = broker.state.attempts.get(job)
        if attempt is None or not (attempt.usage or attempt.output):
            # It has not started, or has ended; a rerun makes one more attempt.
            await (broker.moved(job) if attempt is None else broker.next_commit())
            continue
        history = HistoryEnd(broker, attempt)
        await history.more()
        running = True
        while running:
            await asyncio.sleep(USAGE_S)
            running = output_following.runs(broker, attempt)
            if points := await history.more():
                yield {"attempt": attempt.number, "samples": points}
