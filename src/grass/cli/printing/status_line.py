"""One line on a terminal that is drawn over itself: how far jobs are, or why one waits.

It is on stderr, so that stdout has nothing but data.
"""

from __future__ import annotations

import os
import sys

from grass.cli.printing.streams import safe
from grass.cli.printing.styled import cut

STDERR = 2
_CLEAR = b"\r\x1b[K"
_USUAL_WIDTH = 80


def is_possible() -> bool:
    """Tell whether stderr is a terminal on which a line can be drawn again."""
    return os.isatty(STDERR) and os.environ.get("TERM", "dumb") != "dumb"


def can_show(text: str) -> bool:
    """Tell whether the terminal's encoding has all letters of a text."""
    try:
        text.encode(sys.stderr.encoding)
    except UnicodeEncodeError:
        return False
    return True


def fitted(text: str, used: int = 0) -> str:
    """Shorten a text to the terminal's width, of which some cells are used."""
    try:
        width = os.get_terminal_size(STDERR).columns or _USUAL_WIDTH
    except OSError:
        width = _USUAL_WIDTH
    shown = safe(text) if can_show(text) else ascii(text)[1:-1]
    return cut(shown, max(0, width - 1 - used), "…" if can_show("…") else "...")


def draw(text: str) -> None:
    """Draw a line, which fits, over the one before; an empty text removes it."""
    os.write(STDERR, _CLEAR + text.encode(sys.stderr.encoding, "backslashreplace"))
