"""A list with a cursor that every terminal can show, with colours or without."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widgets import OptionList

_CURSOR = Style(color="cyan", reverse=True)


class CursorList(OptionList):
    """Things of one line or more; the cursor stops at the ends."""

    COVERS_ALL = True
    """Whether the cursor covers all lines of a thing, or its first one."""

    def move(self, step: int) -> None:
        """Move the cursor by a step."""
        at = self.highlighted
        if at is not None and 0 <= at + step < self.option_count:
            self.highlighted = at + step

    def render_line(self, y: int) -> Strip:
        """Draw a line; that of the cursor in one colour."""
        strip = super().render_line(y)
        at = _thing(strip)
        if at is None or at != self.highlighted or not self._is_covered(y, at):
            return strip
        return Strip(
            [
                Segment(text, _CURSOR + Style.from_meta(style.meta if style else {}))
                for text, style, _ in strip
            ],
            strip.cell_length,
        )

    def _is_covered(self, y: int, at: int) -> bool:
        is_top = self.scroll_offset.y + y == 0
        return self.COVERS_ALL or is_top or _thing(super().render_line(y - 1)) != at


def _thing(strip: Strip) -> int | None:
    """Return which thing a line is of."""
    for _, style, _ in strip:
        if style is not None and "option" in style.meta:
            return int(style.meta["option"])
    return None
