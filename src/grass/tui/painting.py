"""The texts of the command line, as texts of a screen: the same words and colours."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from grass.cli.printing.styled import Styled

_STYLES = {"head": "bold", "": ""}


def painted(text: Styled) -> Text:
    """Return one line."""
    pieces = [(piece, _STYLES.get(tint, tint)) for piece, tint in text.pieces]
    return Text.assemble(*pieces, end="", no_wrap=True)


def painted_lines(lines: Iterable[Styled]) -> Text:
    """Return several lines."""
    return Text("\n").join(map(painted, lines))


def from_printed(lines: Iterable[str]) -> Text:
    """Return lines that were printed with the sequences of their colours."""
    return Text("\n").join(Text.from_ansi(line, end="") for line in lines)
