"""Searches the lines of an output of any size, forwards or back from a line.

The worker searches, a step at a time, where the file is. A search ends after
`MOST_SEARCH_S`, and tells from which line to go on. Of all matches only as many as are
wanted are kept; the others are counted.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from grass.broker.shell.service import Broker
from grass.errors import UsageError
from grass.link.requests import LineScan, MatchedLine, ScannedLines
from grass.model.output_text import line_pattern
from grass.queries.output.line_index import LineIndex, grow
from grass.queries.output.output_lines import offset_of
from grass.queries.output.output_sources import OutputSource, scan

MOST_MATCHES = 1_000
MOST_SEARCH_S = 5.0
SPAN = 4 * 2**20
"""In bytes: the parts in which a file is searched backwards."""


class MatchReply(msgspec.Struct):
    """A line that matches."""

    line: int
    at: int
    """The byte of the file at which it begins."""
    text: str
    """Its beginning, without what a progress bar has overwritten."""


class SearchReply(msgspec.Struct):
    """The lines that match."""

    attempt: int
    count: int = 0
    """How many lines match, of those that were searched."""
    matches: list[MatchReply] = []
    complete: bool = True
    """Whether all was searched, up to the end or the beginning."""
    next: int | None = None
    """The line from which to go on."""


@dataclass(frozen=True, slots=True)
class OutputSearch:
    """What is searched, for what, and until when."""

    broker: Broker
    source: OutputSource
    index: LineIndex
    end: int
    pattern: str
    until_s: float

    async def forwards(
        self, line: int, limit: int, *, count_all: bool = True
    ) -> SearchReply:
        """Find the first matches from a line on, and count the rest."""
        reply = SearchReply(self.source.attempt.number, matches=[])
        await grow(self.broker, self.source, self.index, self.end, line - 1)
        offset = await offset_of(self.broker, self.source, self.index, line - 1)
        before = min(line - 1, self.index.total)
        while offset < self.end and not self._is_late():
            left = limit - len(reply.matches)
            if not left and not count_all:
                break
            found = await self._step(offset, self.end, left)
            if found.end == offset:
                break
            reply.matches += _numbered(before, found)
            reply.count += found.count
            before, offset = before + found.newlines, found.end
        if offset < self.end:
            reply.complete, reply.next = False, before + 1
        return reply

    async def backwards(self, line: int, limit: int) -> SearchReply:
        """Find the last matches before a line; only these are counted."""
        reply = SearchReply(self.source.attempt.number, complete=False)
        await grow(self.broker, self.source, self.index, self.end, line - 1)
        top = await offset_of(self.broker, self.source, self.index, line - 1)
        matches: list[MatchReply] = []
        reply.next = line
        while top > self.source.begin and len(matches) < limit and not self._is_late():
            before, offset = self.index.before_offset(top - SPAN)
            last: deque[MatchReply] = deque(maxlen=limit - len(matches))
            async for some in self._matches(before, offset, top):
                last += some
            matches[:0] = last
            top, reply.next = offset, before + 1
        if top <= self.source.begin and len(matches) < limit:
            reply.complete, reply.next = True, None
        elif matches:
            reply.next = matches[0].line
        reply.matches, reply.count = matches, len(matches)
        return reply

    async def _matches(
        self, before: int, offset: int, until: int
    ) -> AsyncIterator[list[MatchReply]]:
        """Yield all matches in a part."""
        while offset < until:
            found = await self._step(offset, until, MOST_MATCHES)
            if found.end == offset:
                return
            yield _numbered(before, found)
            before, offset = before + found.newlines, found.end

    async def _step(self, offset: int, until: int, most: int) -> ScannedLines:
        wanted = LineScan(until, self.pattern, most)
        return await scan(self.broker, self.source, offset, wanted)

    def _is_late(self) -> bool:
        return asyncio.get_running_loop().time() > self.until_s


def checked_pattern(text: str) -> str:
    """Return a pattern; raise if RE2 does not understand it."""
    try:
        line_pattern(text)
    except (ValueError, UnicodeError) as error:
        raise UsageError(f"`{text}`: {error}", "write a regular expression") from None
    return text


def _numbered(before: int, found: ScannedLines) -> list[MatchReply]:
    return [_match(before, one) for one in found.matches]


def _match(before: int, one: MatchedLine) -> MatchReply:
    text = one.text.decode(errors="replace")
    return MatchReply(before + one.line + 1, one.offset, text)
