"""The last lines of a job's output, as they are shown.

A progress bar, which is written again and again after a carriage return, is one line.
Colours are kept; every other control sequence is left out. Lines beyond a number are
forgotten, the oldest first.
"""

from __future__ import annotations

import codecs
import re

from rich.text import Text

MOST_LINES = 20_000
LONGEST_LINE = 4_000
"""Characters of one line that are shown."""
TAB = 8
_SEQUENCE = re.compile(
    r"\x1b(?:\[([0-9;:]*)m|\[[0-?]*[ -/]*[@-~]|\].*?(?:\x07|\x1b\\|$)|[ -/]*[0-~])"
)
_HIDDEN = dict.fromkeys([*range(0x1B), *range(0x1C, 0x20), *range(0x7F, 0xA0)])


class OutputLines:
    """The lines of one job, to which pieces are added."""

    def __init__(self, most: int = MOST_LINES) -> None:
        self.lines: list[str] = []
        """Whole lines as they were written, without their ends."""
        self.forgotten = 0
        """How many lines were before the first one."""
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def add(self, piece: bytes) -> None:
        """Add what was written; its last line may not be whole."""
        text = self._rest + self._decoder.decode(piece)
        *whole, self._rest = text.split("\n")
        self._rest = self._rest[-2 * LONGEST_LINE :]
        self.lines += [shown(line) for line in whole]
        beyond = len(self.lines) - self._most
        if beyond > 0:
            del self.lines[:beyond]
            self.forgotten += beyond

    def put_before(self, lines: list[str]) -> None:
        """Add lines that were written before the first one."""
        self.lines[:0] = [shown(line) for line in lines]

    def all(self) -> list[str]:
        """Return the lines, with one that is not whole yet."""
        rest = shown(self._rest)
        return [*self.lines, rest] if rest else self.lines


def shown(line: str) -> str:
    """Return what a terminal would show of a line in the end, with its colours."""
    line = line.removesuffix("\r")
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part), "")
    return line[:LONGEST_LINE]


def plain(line: str) -> str:
    """Return a line without its colours."""
    text = _SEQUENCE.sub("", line).replace("\x1b", "")
    return text.expandtabs(TAB).translate(_HIDDEN)


def coloured(line: str) -> Text:
    """Return a line with its colours, and no other sequence."""
    if "\x1b" not in line:
        return Text(plain(line), end="")
    kept = _SEQUENCE.sub(lambda found: found[0] if found[1] is not None else "", line)
    text = Text.from_ansi(kept.expandtabs(TAB).translate(_HIDDEN), end="")
    return Text(plain(line), end="") if "\x1b" in text.plain else text
