"""The output of several jobs at once: every line after its job's id, `7 | text`.

Lines of several threads are written whole. A line without an end is buffered until the
end comes, or until it is too long. What a terminal gets is in `terminal_text`.
"""

from __future__ import annotations

import os

from grass.client.json_codec import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Sequence

_LONGEST_LINE = 64 * 1024
_COLOURS = ("36", "33", "32", "35", "34", "31")
_STDOUT = 1


class Unchanged:
    """Passes every byte."""

    def feed(self, piece: bytes) -> bytes:
        """Return the piece as it is."""
        return piece

    def end(self) -> bytes:
        """Return what was kept back: nothing."""
        return b""


class Prefixed:
    """Writes the pieces of one job's output as lines with a prefix."""

    def __init__(self, prefix: bytes, lock: LockType, shown: Unchanged) -> None:
        self._prefix = prefix
        self._lock = lock
        self._shown = shown
        self._kept = b""

    def write(self, piece: bytes) -> None:
        """Write the lines that are complete with this piece."""
        *lines, self._kept = (self._kept + self._shown.feed(piece)).split(b"\n")
        if len(self._kept) > _LONGEST_LINE:
            lines.append(self._kept)
            self._kept = b""
        self._write(lines)

    def end(self) -> None:
        """Write what is left."""
        self._kept += self._shown.end()
        if self._kept:
            self._write([self._kept])
            self._kept = b""

    def _write(self, lines: Sequence[bytes]) -> None:
        with self._lock:
            _write_all(b"".join(self._line(line) for line in lines))

    def _line(self, line: bytes) -> bytes:
        # A program that draws over its own line must not draw over the prefix.
        text = line.removesuffix(b"\r").replace(b"\r", b"\r" + self._prefix)
        return self._prefix + text + b"\n"


class JsonLines:
    """Writes the pieces of one job's output as JSON objects."""

    def __init__(self, job: int, lock: LockType) -> None:
        import codecs

        self._job = job
        self._lock = lock
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def write(self, piece: bytes) -> None:
        """Write one piece."""
        self._write(self._decoder.decode(piece))

    def end(self) -> None:
        """Write the bytes of an incomplete character."""
        self._write(self._decoder.decode(b"", final=True))

    def _write(self, text: str) -> None:
        if text:
            with self._lock:
                _write_all(encoded({"job": self._job, "text": text}) + b"\n")


class Plain:
    """Writes the output of one job, without a prefix."""

    def __init__(self, shown: Unchanged) -> None:
        self._shown = shown

    def write(self, piece: bytes) -> None:
        """Write one piece."""
        _write_all(self._shown.feed(piece))

    def end(self) -> None:
        """Write what is left."""
        _write_all(self._shown.end())


def for_stdout(*, raw: bool) -> Unchanged:
    """Return what output of a job passes through on its way to stdout."""
    if raw or not os.isatty(_STDOUT):
        return Unchanged()
    from grass.cli.printing.terminal_text import TerminalText

    return TerminalText()


def prefix(job: int, width: int, *, place: int | None) -> bytes:
    """Return a job's prefix, coloured by its place where colours are wanted."""
    text = f"{job:>{width}} | "
    if place is None:
        return text.encode()
    return f"\x1b[{_COLOURS[place % len(_COLOURS)]}m{text}\x1b[0m".encode()


def _write_all(data: bytes) -> None:
    """Write without Python's buffers, so that a thread cannot leave one locked."""
    while data:
        data = data[os.write(_STDOUT, data) :]
