"""Aligned tables that stay readable on a narrow terminal.

On a terminal the widest columns are narrowed until the last one has room, columns that
can be spared are left out, and a line is cut to the terminal's width, with an ellipsis;
in a pipe nothing is cut, coloured or left out.
"""

from __future__ import annotations

import os
import sys

from grass.cli.printing.signs import NONE, UNICODE, Signs, signs_of_terminal
from grass.cli.printing.streams import printable, safe
from grass.cli.printing.styled import Styled, cells, cut, cut_styled, painted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    Cell: TypeAlias = "str | Styled | Span"

WIDEST_CELL = 19
"""The most that any column but the last takes on a terminal."""

NARROWEST_CELL = 10
"""The least that a column keeps when the last one needs room."""

LAST_CELL = 24
"""The room that is made for the last column."""

LEAST_LAST_CELL = 16
"""Where the last column has less, columns that can be spared are left out."""

_GAP = "  "


class Screen:
    """Width, colours and signs of the output."""

    def __init__(
        self, width: int | None, *, colours: bool, signs: Signs | None = None
    ) -> None:
        """Without `signs`, a terminal has all and a pipe none."""
        self.width = width
        self.colours = colours
        self.signs = signs or (NONE if width is None else UNICODE)

    def paint(self, text: str, tint: str) -> str:
        """Return a text in a colour, where there are colours."""
        return painted(text, tint) if self.colours else text

    def line(self, text: Styled) -> str:
        """Return a line that fits."""
        if self.width is not None:
            text = cut_styled(text, self.width, self.signs.ellipsis)
        return "".join(self.paint(piece, tint) for piece, tint in text.pieces)


class TableRow(list["Cell"]):
    """A row in one colour, or with a line of its own below it."""

    def __init__(
        self, of: Iterable[Cell], *, tint: str = "", below: Styled | None = None
    ) -> None:
        """Cells that have a colour of their own keep it."""
        super().__init__(of)
        self.tint = tint
        self.below = below


class Span:
    """A text that takes the rest of its line, and that no column is as wide as.

    What comes after the first text is left out where hardly any of it would be seen.
    A `short` text stands for the first where the second would be left out.
    """

    __slots__ = ("short", "texts")

    def __init__(self, *texts: Styled, short: Styled | None = None) -> None:
        self.texts = texts
        self.short = short

    def within(self, room: int | None) -> Styled:
        """Return what is worth to be shown on this many cells."""
        shown = self.texts[0]
        if self.short is not None and room is not None:
            least = sum(cells(str(text)) for text in self.texts[:2])
            shown = self.short if least > room else shown
        for text in self.texts[1:]:
            used = cells(str(shown))
            least = min(cells(str(text)), LEAST_LAST_CELL)
            if room is not None and used + least > room:
                break
            shown += text
        return shown

    def __str__(self) -> str:
        """Return what a column is to be as wide as."""
        return ""


class Fit:
    """The columns that are never narrowed, and those that can be spared, by place."""

    def __init__(self, firm: Collection[int] = (0,), spare: Sequence[int] = ()) -> None:
        """Of those to spare, the first goes first."""
        self.firm = firm
        self.spare = spare


def this_screen() -> Screen:
    """Return the screen of stdout; without limits if that is no terminal."""
    if not sys.stdout.isatty():
        return Screen(None, colours=False)
    try:
        width = os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        width = 80
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return Screen(width, colours=not plain, signs=signs_of_terminal())


def render(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    screen: Screen,
    tints: Mapping[str, str] | None = None,
) -> str:
    """Lay out a table; `tints` has the colours of cells by their text."""
    return "".join(line + "\n" for line in lines(header, rows, screen, tints))


def lines(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    screen: Screen,
    tints: Mapping[str, str] | None = None,
    fit: Fit | None = None,
) -> list[str]:
    """Lay out a table as lines, the header first."""
    table = [_Line(row, tints or {}) for row in (TableRow(header, tint="head"), *rows)]
    columns = zip(*(line.texts for line in table), strict=True)
    widths = [max(map(cells, column)) for column in columns]
    shown = list(range(len(widths)))
    if screen.width is not None:
        fit = fit or Fit()
        widths, shown = _fitted(widths, shown, screen.width, fit)
    return [text for line in table for text in _drawn(line, widths, shown, screen)]


def show(text: str) -> None:
    """Write a table, or a line below it, to stdout."""
    sys.stdout.write(printable(text))


class _Line:
    """A row whose cells are escaped."""

    __slots__ = ("below", "cells", "texts", "tint")

    def __init__(self, row: Sequence[Cell], tints: Mapping[str, str]) -> None:
        self.cells = [_escaped(cell, tints) for cell in row]
        self.texts = [str(cell) for cell in self.cells]
        self.tint, self.below = "", None
        if isinstance(row, TableRow):
            self.tint, self.below = row.tint, row.below


def _escaped(cell: Cell, tints: Mapping[str, str]) -> Cell:
    if isinstance(cell, (Styled, Span)):
        return cell
    # Of several words, the first one tells.
    tint = tints.get(cell.partition(",")[0]) if tints else None
    return Styled((cell, tint)) if tint else safe(cell)


def _fitted(
    widths: Sequence[int], shown: list[int], width: int, fit: Fit
) -> tuple[list[int], list[int]]:
    """Narrow the columns, and leave out some, until the last one has room."""
    narrowed, left = list(widths), shown
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
        return narrowed, left
    for sparing in range(len(fit.spare) + 1):
        left = [at for at in shown if at not in fit.spare[:sparing]]
        narrowed = _narrowed([widths[at] for at in left], left, width, fit)
        room = width - sum(narrowed[:-1]) - len(_GAP) * (len(left) - 1)
        if room >= min(LEAST_LAST_CELL, narrowed[-1]):
            break
    return narrowed, left


def _narrowed(
    widths: Sequence[int], places: Sequence[int], width: int, fit: Fit
) -> list[int]:
    first, last = [min(one, WIDEST_CELL) for one in widths[:-1]], widths[-1]
    loose = [at for at, place in enumerate(places[:-1]) if place not in fit.firm]
    room = width - len(_GAP) * len(first) - min(last, LAST_CELL)
    while loose and sum(first) > room:
        widest = max(loose, key=lambda at: first[at])
        if first[widest] <= NARROWEST_CELL:
            break
        first[widest] -= 1
    return [*first, last]


def _drawn(
    line: _Line, widths: Sequence[int], shown: Sequence[int], screen: Screen
) -> Iterator[str]:
    """Return the row's line, and the line below it."""
    pieces: list[tuple[str, str]] = []
    space = ""
    for at, width in zip(shown, widths, strict=True):
        cell = line.cells[at]
        if isinstance(cell, Span):
            used = cells(space) + sum(cells(text) for text, _ in pieces)
            left = None if screen.width is None else screen.width - used
            pieces += [(space, ""), *_pieces(cell.within(left), line.tint)]
            break
        if at != shown[-1]:
            cell = _cut(cell, width, screen)
        if line.texts[at]:
            pieces += [(space, ""), *_pieces(cell, line.tint)]
            space = ""
        # Spaces are written before what follows them, so that no line ends with any.
        space += " " * (width - cells(str(cell))) + _GAP
    yield screen.line(Styled(*pieces))
    if line.below is not None:
        yield screen.line(Styled((" " * widths[0] + _GAP, "")) + line.below)


def _cut(cell: str | Styled, width: int, screen: Screen) -> str | Styled:
    if isinstance(cell, Styled):
        return cut_styled(cell, width, screen.signs.ellipsis)
    return cut(cell, width, screen.signs.ellipsis)


def _pieces(cell: str | Styled, tint: str) -> Iterable[tuple[str, str]]:
    if isinstance(cell, Styled):
        return [(text, own or tint) for text, own in cell.pieces]
    return [(cell, tint)]
