"""The lines of a log on the screen: it follows the end until it is scrolled up.

Lines are drawn as they are seen, however many there are. What is shown is the end of
the output, which grows, or a part of it from further up; more of it is asked for at
either edge. A text that is looked for is marked.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from grass.cli.printing.styled import cells
from grass.tui.output_follower import OutputFollower
from grass.tui.output_lines import OutputLines, coloured, plain

if TYPE_CHECKING:
    from grass.tui.app import TopApp

LOOK_S = 0.2
READING_S = 1.0
"""For how long nothing may have come before it is said that nothing was written."""
_MEASURED = 200
"""How many of the newest lines are measured for the width."""
_MARK = Style(reverse=True)
_HERE = Style(reverse=True, bold=True, color="yellow")


class LogView(ScrollView, can_focus=True):
    """The output of one job."""

    app: TopApp

    follows: reactive[bool] = reactive(True)
    """Whether the newest line stays in sight."""

    class AtEdge(Message):
        """It was scrolled to the first line that is there, or to the last one."""

        def __init__(self, *, is_top: bool) -> None:
            super().__init__()
            self.is_top = is_top

    class Jumped(Message):
        """The first line of all is to be shown, or the last one."""

        def __init__(self, *, is_top: bool) -> None:
            super().__init__()
            self.is_top = is_top

    def __init__(self, *, id: str | None = None, look_s: float = LOOK_S) -> None:
        """New lines are looked for every `look_s`; each time costs a layout."""
        super().__init__(id=id)
        self._look_s = look_s
        self.text = OutputLines()
        self.note = ""
        """Why there is nothing, or no more."""
        self.is_over = False
        self.is_end = True
        """Whether it is the end of the output, which grows."""
        self.words = ""
        """The text that is marked."""
        self.here: int | None = None
        """The number of the line that was gone to."""
        self._first: int | None = None
        self._follower: OutputFollower | None = None
        self._begun_at = 0.0
        self._is_new = True
        """Whether nothing was looked for yet; it is also while the screen is paused."""
        self._lines: list[str] = []
        self._widest = 0

    def on_mount(self) -> None:
        """Begin to look for new lines."""
        self.set_interval(self._look_s, self._take)

    def on_unmount(self) -> None:
        """Read no more."""
        if self._follower is not None:
            self._follower.join()
            self._follower = None

    def show(self, follower: OutputFollower | None) -> None:
        """Show the end of a job's output."""
        if self._follower is not None:
            self._follower.close()
        self._follower = follower
        self._begun_at = monotonic()
        self.note, self.is_over, self.is_end = "", False, True
        self._is_new = True
        self._begin(None)
        self.follows = True
        self._lay_out()

    def show_part(self, first: int, lines: list[str]) -> None:
        """Show lines from further up, by the number of the first one."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None
        self.is_end = self.follows = False
        self._begin(first)
        self.text.put_before(lines)
        self._lay_out()

    def add_before(self, lines: list[str]) -> None:
        """Add the lines before those that are there."""
        if self._first is not None:
            self._first -= len(lines)
            self.text.put_before(lines)
            self._lay_out()
            self.scroll_to(
                y=self.scroll_y + len(lines), animate=False, immediate=True, force=True
            )

    def add_after(self, lines: list[str]) -> None:
        """Add the lines after those that are there."""
        self.text.lines += lines
        self._lay_out()

    @property
    def first(self) -> int | None:
        """The number of the first line; None: it is not known."""
        return None if self._first is None else self._first + self.text.forgotten

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written, as far as is known."""
        return not self._lines

    @property
    def is_reading(self) -> bool:
        """Whether what was written may still be on its way."""
        is_soon = monotonic() < self._begun_at + READING_S
        return self.is_empty and not self.is_over and is_soon

    @property
    def top(self) -> int:
        """The number of the line at the top of the screen."""
        return (self.first or 1) + self.scroll_offset.y

    def has(self, line: int) -> bool:
        """Tell whether a line is there, by its number."""
        return self.first is not None and 0 <= line - self.first < self.count

    def go_to(self, line: int) -> None:
        """Show a line that is there in the middle of the screen."""
        self.here, self.follows = line, False
        self.call_after_refresh(self._centre, line)

    def _centre(self, line: int) -> None:
        place = line - (self.first or 1) - self.size.height // 2
        self.scroll_to(y=max(0, place), animate=False, immediate=True, force=True)
        self.refresh()

    def mark(self, words: str) -> None:
        """Mark a text in all lines."""
        self.words, self.here = words, None
        self.refresh()

    def action_scroll_home(self) -> None:
        """Go to the first line of all."""
        self.post_message(self.Jumped(is_top=True))

    def action_scroll_end(self) -> None:
        """Go to the last line of all."""
        self.post_message(self.Jumped(is_top=False))

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Follow the end again when it is scrolled to, and no more when it is left."""
        super().watch_scroll_y(old, new)
        if old == new:
            return
        at_end = new >= self.max_scroll_y
        self.follows = at_end and self.is_end
        if new <= 0 and (self.first or 1) > 1:
            self.post_message(self.AtEdge(is_top=True))
        elif at_end and not self.is_end:
            self.post_message(self.AtEdge(is_top=False))

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        left, top = self.scroll_offset
        width, line, style = self.size.width, top + y, self.rich_style
        if line >= len(self._lines):
            return Strip.blank(width, style)
        text = coloured(self._lines[line])
        if self.words:
            is_here = self.here == line + (self.first or 1)
            mark = _HERE if is_here else _MARK
            text.highlight_words([self.words], mark, case_sensitive=False)
        segments = Segment.apply_style(text.render(self.app.console), style)
        return Strip(segments).crop_extend(left, left + width, style)

    def _begin(self, first: int | None) -> None:
        self.text = OutputLines()
        self._first = first
        self._widest = 0

    def _take(self) -> None:
        """Take over what was written since the last look."""
        paused = self.app.state.is_paused
        if self._follower is None or (paused and not self._is_new):
            return
        written = self._follower.take()
        self._is_new = paused and not (written.data or written.note or written.is_over)
        changed = (written.note, written.is_over) != (self.note, self.is_over)
        self.note, self.is_over = written.note, written.is_over
        if written.is_anew:
            self._begin(written.first)
        before = self.text.forgotten
        if written.data:
            self.text.add(written.data)
        if written.data or changed:
            self._lay_out()
        gone = self.text.forgotten - before
        if gone and not self.follows and not written.is_anew:
            self.scroll_to(y=max(0, self.scroll_y - gone), animate=False)

    def _lay_out(self) -> None:
        self._lines = self.text.all()
        newest = self._lines[-_MEASURED:]
        self._widest = max([self._widest, *(cells(plain(one)) for one in newest)])
        self.virtual_size = Size(self._widest, len(self._lines))
        self.refresh()
        # How far it can be scrolled is known once it was laid out.
        self.call_after_refresh(self._keep_up)

    def _keep_up(self) -> None:
        if self.follows:
            self.scroll_to(
                y=self.max_scroll_y, animate=False, immediate=True, force=True
            )

    def on_resize(self) -> None:
        """Keep the newest line in sight."""
        self.call_after_refresh(self._keep_up)
