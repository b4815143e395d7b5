"""Aligned tables that stay readable on a narrow terminal.

Cells are made safe before they are measured, and measured in terminal cells, not in
characters. On a terminal a line is cut to its width, with an ellipsis; in a pipe
nothing is ever cut and nothing is coloured.
"""

import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence

from grass.cli.printing import printable
from grass.cli.safe import safe

WIDEST_CELL = 18
"""What any column but the last may take on a terminal."""

_GAP = "  "
_ELLIPSIS = "…"
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "grey": "90"}


class Screen:
    """What the table is written for."""

    def __init__(self, width: int | None, *, colours: bool) -> None:
        """Take the width in cells, None for no limit."""
        self.width = width
        self.colours = colours


def this_screen() -> Screen:
    """Return the terminal behind stdout, or a screen without limits."""
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
    rows: Sequence[Sequence[str]],
    screen: Screen,
    tints: Mapping[str, str] | None = None,
) -> str:
    """Lay out a table; `tints` gives colours to cells by their text."""
    lines = [[safe(cell) for cell in row] for row in (header, *rows)]
    if screen.width is not None:
        lines = [[*_capped(row[:-1]), row[-1]] for row in lines]
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
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


def _capped(row: Sequence[str]) -> list[str]:
    return [cut(cell, WIDEST_CELL) for cell in row]


def _line(
    row: Sequence[str], widths: Sequence[int], screen: Screen, tints: Mapping[str, str]
) -> str:
    *first, last = row
    padded = [
        cell + " " * (width - cells(cell))
        for cell, width in zip(first, widths, strict=False)
    ]
    if screen.width is not None:
        before = sum(widths[:-1]) + len(_GAP) * len(first)
        last = cut(last, max(0, screen.width - before))
    painted = [_painted(cell, screen, tints) for cell in [*padded, last]]
    return _GAP.join(painted).rstrip()


def _painted(cell: str, screen: Screen, tints: Mapping[str, str]) -> str:
    colour = tints.get(cell.strip())
    if not screen.colours or colour is None:
        return cell
    return f"\x1b[{_COLOURS[colour]}m{cell}\x1b[0m"


def _cells_of(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
