"""Aligned tables that stay readable on a narrow terminal.

Cells are escaped before they are measured, in terminal cells, not in characters. On a
terminal the widest columns are narrowed until the last one has room, and a line is cut
to the terminal's width, with an ellipsis; in a pipe nothing is cut or coloured.
"""

from __future__ import annotations

import os
import sys
import unicodedata

from grass.cli.printing.streams import printable, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDEST_CELL = 19
"""The most that any column but the last takes on a terminal."""

NARROWEST_CELL = 10
"""The least that a column keeps when the last one needs room."""

LAST_CELL = 24
"""The room that is made for the last column."""

_GAP = "  "
_ELLIPSIS = "…"
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "grey": "90"}


class Screen:
    """Width and colours of the output."""

    def __init__(self, width: int | None, *, colours: bool) -> None:
        self.width = width
        self.colours = colours


def this_screen() -> Screen:
    """Return the screen of stdout; without limits if that is no terminal."""
    if not sys.stdout.isatty():
        return Screen(None, colours=False)
    try:
        width = os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        width = 80
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return Screen(width, colours=not plain)


def render(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    screen: Screen,
    tints: Mapping[str, str] | None = None,
) -> str:
    """Lay out a table; `tints` has the colours of cells by their text."""
    lines = [[safe(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    if screen.width is not None:
        widths = _fitted(widths, screen.width)
    shown = [_line(row, widths, screen, tints or {}) for row in lines]
    return "".join(line + "\n" for line in shown)


def show(text: str) -> None:
    """Write a table, or a line below it, to stdout."""
    sys.stdout.write(printable(text))


def cells(text: str) -> int:
    """Return how many cells a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def cut(text: str, width: int) -> str:
    """Shorten a text to a number of cells."""
    if cells(text) <= width:
        return text
    taken, used = [], 1
    for letter in text:
        used += _cells_of(letter)
        if used > width:
            break
        taken.append(letter)
    return "".join(taken) + _ELLIPSIS if width > 0 else ""


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """Narrow all columns but the last; the first one only to the widest cell."""
    *first, last = widths
    first = [min(width, WIDEST_CELL) for width in first]
    room -= len(_GAP) * len(first) + min(last, LAST_CELL)
    while sum(first) > room and (widest := max(first[1:], default=0)) > NARROWEST_CELL:
        first[first.index(widest, 1)] -= 1
    return [*first, last]


def _line(
    row: Sequence[str], widths: Sequence[int], screen: Screen, tints: Mapping[str, str]
) -> str:
    left, shown = screen.width, []
    for cell, width in zip(row[:-1], widths, strict=False):
        shown.append(_painted(_padded(cut(cell, width), width, left), screen, tints))
        left = None if left is None else left - width - len(_GAP)
    last = row[-1] if left is None else cut(row[-1], left)
    return _GAP.join([*shown, _painted(last, screen, tints)]).rstrip()


def _padded(cell: str, width: int, left: int | None) -> str:
    """Fill a cell to its column's width, as far as the screen goes."""
    text = cell + " " * (width - cells(cell))
    return text if left is None else cut(text, left)


def _painted(cell: str, screen: Screen, tints: Mapping[str, str]) -> str:
    # Of several words, the first one tells.
    colour = tints.get(cell.strip().partition(",")[0])
    if not screen.colours or colour is None:
        return cell
    return f"\x1b[{_COLOURS[colour]}m{cell}\x1b[0m"


def _cells_of(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
