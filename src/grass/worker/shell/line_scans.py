"""Looks through a part of an output file where it is: counts and marks its lines, and
finds those that a pattern matches.

A scan has a few blocks in memory at most, ends after a short time, and tells how far it
got: the broker asks for the rest, or does not. A line longer than `LONGEST_LINE` is
searched in parts.

Searched is the text as people see it: a word is found though a part of it is coloured,
or a colour comes before it at the beginning of a line. No pattern could say that
sequences may stand anywhere.
"""

import os
import re
import time
from typing import Any

from grass.link.requests import LineScan, MatchedLine, ScannedLines
from grass.model.output_text import folded, line_pattern, without_escapes

BLOCK = 64 * 1024
"""The last line that begins in a block is marked."""
LONGEST_LINE = 2**20
STEP_BYTES, STEP_S = 16 * 2**20, 0.5
"""How far a scan goes, and for how long."""
MOST_MATCHES = 1_000
TEXT = 512
"""How many bytes of a matching line are returned."""


def scan_lines(descriptor: int, offset: int, wanted: LineScan) -> ScannedLines:
    """Scan from a line's beginning on, as far as one step goes."""
    found = ScannedLines(offset, os.fstat(descriptor).st_size)
    part_end = min(wanted.until, found.size)
    pattern = line_pattern(wanted.pattern) if wanted.pattern else None
    most = min(wanted.most, MOST_MATCHES)
    step_end, ends_s = offset + STEP_BYTES, time.monotonic() + STEP_S
    while found.end < min(part_end, step_end):
        lines = _whole_lines(descriptor, found.end, part_end)
        if not lines:
            break
        if pattern is not None:
            lines = lines[: _search(pattern, lines, most, found)]
        _count(lines, found)
        if len(found.matches) >= most > 0 or time.monotonic() >= ends_s:
            break
    return found


def _whole_lines(descriptor: int, offset: int, until: int) -> bytes:
    """Read lines that end with a newline; at the end of the part, the rest of it."""
    length = BLOCK
    while True:
        data = os.pread(descriptor, min(length, until - offset), offset)
        if len(data) < length:
            return data
        if end := data.rfind(b"\n") + 1:
            return data[:end]
        if length >= LONGEST_LINE:
            return data
        length *= 4


def _count(lines: bytes, found: ScannedLines) -> None:
    found.newlines += lines.count(b"\n")
    if end := lines.rfind(b"\n") + 1:
        found.marks.append((found.newlines, found.end + end))
    found.end += len(lines)


def _search(pattern: Any, lines: bytes, most: int, found: ScannedLines) -> int:  # noqa: ANN401
    """Add the lines that match, up to `most`; return how many bytes were searched."""
    seen = without_escapes(lines)
    edges = _edges(lines) if most and len(seen) < len(lines) else None
    place = before = 0
    while place < len(seen) and (match := pattern.search(seen, place)) is not None:
        begin = max(place, seen.rfind(b"\n", place, match.start()) + 1)
        if begin == len(seen):
            # There is no line behind the last newline.
            break
        end = seen.find(b"\n", match.start())
        end = len(seen) if end < 0 else end + 1
        found.count += 1
        if most:
            before += seen.count(b"\n", place, begin)
            first, last = (begin, end) if edges is None else edges[before : before + 2]
            text = folded(lines[first:last])[:TEXT]
            number = found.newlines + before
            found.matches.append(MatchedLine(number, found.end + first, text))
            if len(found.matches) >= most:
                return last
            before += 1
        place = end
    return len(lines)


def _edges(lines: bytes) -> list[int]:
    """Return where each line begins, and where the last one ends."""
    ends = [newline.end() for newline in re.finditer(rb"\n", lines)]
    return [0, *ends, len(lines)]
