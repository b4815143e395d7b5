"""Text in several colours, which can be measured and cut as if it had none.

Text is escaped before it is measured, in terminal cells, not in characters.
"""

from __future__ import annotations

import unicodedata

from grass.cli.printing.streams import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CODES = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "bold": "1",
    "head": "1;4",
    # Not the bright black of palettes: some of these have it as their background.
    "dim": "2",
}


class Styled:
    """Pieces of text on one line, each with a colour or with none."""

    __slots__ = ("pieces",)

    def __init__(self, *pieces: tuple[str, str]) -> None:
        """A piece is its text and its colour."""
        self.pieces = tuple((safe(text), tint) for text, tint in pieces)

    def __str__(self) -> str:
        """Return the text without colours."""
        return "".join(text for text, _ in self.pieces)

    def __add__(self, other: Styled) -> Styled:
        """Join two texts."""
        return Styled(*self.pieces, *other.pieces)


def cells(text: str) -> int:
    """Return how many cells a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """Shorten a text to a number of cells."""
    if cells(text) <= width:
        return text
    if width < len(ellipsis):
        return ellipsis[: max(0, width)]
    return _start(text, width - len(ellipsis)) + ellipsis


def cut_styled(text: Styled, width: int, ellipsis: str = "…") -> Styled:
    """Shorten a text in several colours to a number of cells."""
    if cells(str(text)) <= width:
        return text
    left = max(0, len(cut(str(text), width, ellipsis)) - len(ellipsis))
    kept = list(_pieces(text, left))
    return Styled(*kept, (ellipsis[: max(0, width)], kept[-1][1] if kept else ""))


def painted_cells(text: str) -> int:
    """Return how many cells a text with sequences of colours takes."""
    first, *rest = text.split("\x1b[")
    return cells(first) + sum(cells(piece.partition("m")[2]) for piece in rest)


def painted(text: str, tint: str) -> str:
    """Return a text with the sequences of its colour."""
    return f"\x1b[{_CODES[tint]}m{text}\x1b[0m" if tint and text else text


def _pieces(text: Styled, left: int) -> Iterator[tuple[str, str]]:
    for piece, tint in text.pieces:
        if left > 0:
            yield piece[:left], tint
        left -= len(piece)


def _start(text: str, width: int) -> str:
    taken, used = [], 0
    for letter in text:
        used += _cells_of(letter)
        if used > width:
            break
        taken.append(letter)
    return "".join(taken)


def _cells_of(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
