"""Numbered lines of an output of any size: the last ones, or from a line on.

The last lines are read from the end, without the rest of the file; which numbers they
have is known once all lines are counted. Of a progress bar only what it wrote last is
kept, and of a line that is too long its beginning.
"""

import asyncio
from contextlib import suppress
from functools import partial

import msgspec

from grass.broker.shell.service import Broker
from grass.errors import Refused
from grass.model.output_text import folded
from grass.queries.output.line_index import LineIndex, grow
from grass.queries.output.output_sources import OutputSource, find_lines, read

MOST_LINES = 5_000
MOST_BYTES = 4 * 2**20
"""How much is read for the lines of one reply; there may be fewer lines than wanted."""
LONGEST_SHOWN = 8 * 1024
"""In bytes: longer lines are cut."""
QUICK_S = 0.05
"""How long the last lines wait for their numbers."""


class LinesReply(msgspec.Struct):
    """Lines of one stream of one attempt."""

    job: int
    attempt: int
    total_lines: int | None
    """None: they are not all counted yet."""
    size: int
    """How many bytes the stream has."""
    first: int | None
    """The number of the first of these lines; None: not known yet."""
    lines: list[str]
    cut: list[int]
    """Which of these lines were too long, counted from 0."""
    offset: int
    """The byte of the file at which they begin."""
    end: int
    """The byte of the file after them."""
    open: bool
    """Whether the last of them has no newline yet."""
    ended: bool
    """Whether the attempt has ended."""


class Lines:
    """Lines that are read in pieces."""

    def __init__(self, most: int) -> None:
        self.texts: list[str] = []
        self.cut: list[int] = []
        """Which of the lines were too long."""
        self.size = 0
        """How many bytes the lines take in the file."""
        self.open = False
        """Whether the last line has no newline yet."""
        self._most = most
        self._open = b""
        self._open_size = 0

    def add(self, piece: bytes) -> bool:
        """Add a piece; return whether more lines are wanted."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            if len(self.texts) >= self._most:
                return False
            self._append(end)
            self._end_line(1)
        self._append(rest)
        return len(self.texts) < self._most

    def end(self) -> None:
        """Add a last line that has no newline yet."""
        if self._open_size and len(self.texts) < self._most:
            self._end_line(0)
            self.open = True

    def _append(self, part: bytes) -> None:
        """Keep the part of a line that is shown."""
        self._open_size += len(part)
        data = self._open + part
        shown = data.rstrip(b"\r").rfind(b"\r") + 1
        self._open = data[shown : shown + LONGEST_SHOWN + 1]

    def _end_line(self, newline: int) -> None:
        text = folded(self._open)
        if len(text) > LONGEST_SHOWN:
            self.cut.append(len(self.texts))
        self.texts.append(text[:LONGEST_SHOWN].decode(errors="replace"))
        self.size += self._open_size + newline
        self._open, self._open_size = b"", 0


async def last_lines(
    broker: Broker, source: OutputSource, index: LineIndex, end: int, count: int
) -> LinesReply:
    """Read the last lines of a stream that ends there; numbered if that is quick."""
    floor = max(source.begin, end - MOST_BYTES)
    offset = await find_lines(partial(read, broker, source), floor, end, count)
    lines = await _lines_at(broker, source, offset, end, count)
    with suppress(TimeoutError, Refused):
        async with asyncio.timeout(QUICK_S):
            await grow(broker, source, index, end)
    reply = _reply(source, index, end, offset, lines)
    if reply.total_lines is not None:
        reply.first = reply.total_lines - len(lines.texts) + 1
    return reply


async def lines_from(
    broker: Broker,
    source: OutputSource,
    index: LineIndex,
    end: int,
    line: int,
    count: int,
) -> LinesReply:
    """Read lines of a stream that ends there, from one on; the first has number 1."""
    await grow(broker, source, index, end, line - 1)
    offset = await offset_of(broker, source, index, line - 1)
    lines = await _lines_at(broker, source, offset, end, count)
    reply = _reply(source, index, end, offset, lines)
    reply.first = line
    return reply


async def offset_of(
    broker: Broker, source: OutputSource, index: LineIndex, line: int
) -> int:
    """Return where a line, counted from 0, begins; or the end of what was counted."""
    if line > index.newlines:
        return index.reached
    known, offset = index.before(line)
    left = line - known
    while left and (piece := await read(broker, source, offset)):
        place = 0
        while left and (found := piece.find(b"\n", place)) >= 0:
            place, left = found + 1, left - 1
        offset += place if not left else len(piece)
    return offset


async def _lines_at(
    broker: Broker, source: OutputSource, offset: int, end: int, count: int
) -> Lines:
    lines, place = Lines(count), offset
    while count and place < end:
        if lines.texts and place - offset >= MOST_BYTES:
            return lines
        piece = (await read(broker, source, place))[: end - place]
        place += len(piece)
        if not piece or not lines.add(piece):
            break
    lines.end()
    return lines


def _reply(
    source: OutputSource, index: LineIndex, end: int, offset: int, lines: Lines
) -> LinesReply:
    attempt = source.attempt
    return LinesReply(
        job=attempt.job,
        attempt=attempt.number,
        total_lines=index.total if index.reached >= end else None,
        size=end - source.begin,
        first=None,
        lines=lines.texts,
        cut=lines.cut,
        offset=offset,
        end=offset + lines.size,
        open=lines.open,
        ended=attempt.finished_at is not None,
    )
