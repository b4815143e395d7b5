"""One line on a terminal that is drawn over itself: how far jobs are, or why one waits.

It is on stderr, so that stdout has nothing but data.
"""

from __future__ import annotations

import os
import sys

from grass.cli.printing.signs import signs_of_terminal
from grass.cli.printing.streams import safe
from grass.cli.printing.styled import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.cli.printing.signs import Signs

STDERR = 2
_CLEAR = b"\r\x1b[K"
_USUAL_WIDTH = 80


def is_possible() -> bool:
    """Tell whether stderr is a terminal on which a line can be drawn again."""
    return os.isatty(STDERR) and os.environ.get("TERM", "dumb") != "dumb"


def signs() -> Signs:
    """Return the signs that the terminal can show."""
    return signs_of_terminal(sys.stderr)


def fitted(text: str, used: int = 0) -> str:
    """Shorten a text to the terminal's width, of which some cells are used."""
    try:
        width = os.get_terminal_size(STDERR).columns or _USUAL_WIDTH
    except OSError:
        width = _USUAL_WIDTH
    encoding = sys.stderr.encoding
    shown = safe(text).encode(encoding, "backslashreplace").decode(encoding)
    return cut(shown, max(0, width - 1 - used), signs().ellipsis)


def draw(text: str) -> None:
    """Draw a line, which fits, over the one before; an empty text removes it."""
    os.write(STDERR, _CLEAR + text.encode(sys.stderr.encoding))
