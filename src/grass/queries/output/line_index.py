"""Where the lines of an output begin: an index of each file that somebody reads.

A worker counts lines where the file is, a step at a time, and marks a line in each
block (`LineScan`). An index grows only as far as a request needs it, goes on where it
ended when the file has grown, and keeps a bounded number of marks. Requests for the
same file wait for each other rather than count the same lines.
"""

import asyncio
from array import array
from bisect import bisect_right
from collections import OrderedDict

from grass.broker.shell.service import Broker
from grass.link.requests import LineScan, ScannedLines
from grass.queries.output.output_sources import OutputSource, scan

MOST_MARKS = 4096
MOST_INDEXES = 64


class LineIndex:
    """The marks of one stream of one attempt, up to where it was counted."""

    def __init__(self, begin: int) -> None:
        self.reached = begin
        """Everything before this byte is counted."""
        self.newlines = 0
        self.last_line = begin
        """Where the last line begins that was counted."""
        self._lines, self._offsets = array("q", [0]), array("q", [begin])
        self.growing = asyncio.Lock()

    @property
    def total(self) -> int:
        """How many lines there are; the last one may lack its newline."""
        return self.newlines + (self.reached > self.last_line)

    def add(self, found: ScannedLines) -> None:
        """Add what was found from `reached` on."""
        for lines, offset in found.marks:
            self._lines.append(self.newlines + lines)
            self._offsets.append(offset)
        if found.marks:
            self.last_line = found.marks[-1][1]
        self.newlines += found.newlines
        self.reached = found.end
        while len(self._lines) > MOST_MARKS:
            del self._lines[1::2], self._offsets[1::2]

    def before(self, line: int) -> tuple[int, int]:
        """Return the last marked line, counted from 0, up to one, and its offset."""
        place = bisect_right(self._lines, line) - 1
        return self._lines[place], self._offsets[place]

    def before_offset(self, offset: int) -> tuple[int, int]:
        """Return the last marked line that begins up to an offset, or the first."""
        place = max(0, bisect_right(self._offsets, offset) - 1)
        return self._lines[place], self._offsets[place]


class LineIndexes:
    """The indexes of the streams that were read last."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, int, int], LineIndex] = OrderedDict()

    def of(self, source: OutputSource, end: int) -> LineIndex:
        """Return the index of a stream that now ends there."""
        attempt = source.attempt
        key = attempt.worker, source.path, attempt.job, attempt.number
        known = self._known.pop(key, None)
        if known is None or known.reached > end:
            # It is new, or the file was made shorter.
            known = LineIndex(source.begin)
        self._known[key] = known
        if len(self._known) > MOST_INDEXES:
            self._known.popitem(last=False)
        return known


async def grow(
    broker: Broker,
    source: OutputSource,
    index: LineIndex,
    end: int,
    line: int | None = None,
) -> None:
    """Count lines up to an offset, or until a line, counted from 0, is reached."""
    async with index.growing:
        while index.reached < end and (line is None or index.newlines < line):
            found = await scan(broker, source, index.reached, LineScan(end))
            if found.end == index.reached:
                break
            index.add(found)
