"""The lines of a log on the screen: it follows the end until it is scrolled up.

Lines are drawn as they are seen, however many there are. A text that is looked for is
marked in them.
"""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from grass.cli.printing.styled import cells
from grass.tui.output_follower import OutputFollower
from grass.tui.output_lines import OutputLines, coloured, plain

LOOK_S = 0.1
_MARK = Style(reverse=True)
_HERE = Style(reverse=True, bold=True, color="yellow")


class LogView(ScrollView, can_focus=True):
    """The output of one job."""

    follows: reactive[bool] = reactive(True)
    """Whether the newest line stays in sight."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text = OutputLines()
        self.note = ""
        """Why there is nothing, or no more."""
        self.is_over = False
        self.words = ""
        self.found: list[int] = []
        """The lines in which the words were found."""
        self.at: int | None = None
        """Which of these lines was gone to."""
        self._follower: OutputFollower | None = None
        self._lines: list[str] = []
        self._widest = 0

    def on_mount(self) -> None:
        """Look for new lines ten times a second."""
        self.set_interval(LOOK_S, self._take)

    def show(self, follower: OutputFollower | None) -> None:
        """Show another job's output."""
        if self._follower is not None:
            self._follower.close()
        self._follower = follower
        self._clear()
        self.note, self.is_over = "", False
        self.follows = True
        self._lay_out()

    @property
    def job(self) -> int | None:
        """The job that is shown."""
        return None if self._follower is None else self._follower.job

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written, as far as is known."""
        return not self._lines

    def on_unmount(self) -> None:
        """Read no more."""
        if self._follower is not None:
            self._follower.join()
            self._follower = None

    def look_for(self, words: str) -> int:
        """Mark a text in all lines, and go to its last line; return how many."""
        self.words = words
        self.found = self.text.found(words) if words else []
        self.at = None
        if self.found:
            self._go_to(len(self.found) - 1)
        self.refresh()
        return len(self.found)

    def go_on(self, step: int) -> None:
        """Go to the next line that was found, or to the one before."""
        if self.found:
            at = len(self.found) if self.at is None else self.at
            self._go_to((at + step) % len(self.found))

    def _go_to(self, at: int) -> None:
        self.at = at
        self.follows = False
        middle = self.found[at] - self.size.height // 2
        self.scroll_to(y=max(0, middle), animate=False)
        self.refresh()

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Follow the end again when it is scrolled to, and no more when it is left."""
        super().watch_scroll_y(old, new)
        if old != new:
            self.follows = new >= self.max_scroll_y

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        left, top = self.scroll_offset
        width, line = self.size.width, top + y
        if line >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        text = coloured(self._lines[line])
        if self.words:
            here = self.at is not None and self.found[self.at] == line
            text.highlight_words(
                [self.words], _HERE if here else _MARK, case_sensitive=False
            )
        segments = Segment.apply_style(text.render(self.app.console), self.rich_style)
        return Strip(segments).crop_extend(left, left + width, self.rich_style)

    def _clear(self) -> None:
        self.text = OutputLines()
        self._widest = 0
        self.words, self.found, self.at = "", [], None

    def _take(self) -> None:
        """Take over what was written since the last look."""
        if self._follower is None:
            return
        written = self._follower.take()
        changed = (written.note, written.is_over) != (self.note, self.is_over)
        if written.is_anew and self._lines:
            self._clear()
        self.note, self.is_over = written.note, written.is_over
        if written.data:
            self.text.add(written.data)
            if self.words:
                self.found = self.text.found(self.words)
        if written.data or written.is_anew or changed:
            self._lay_out()

    def _lay_out(self) -> None:
        self._lines = self.text.all()
        newest = self._lines[-200:]
        self._widest = max([self._widest, *(cells(plain(one)) for one in newest)])
        self.virtual_size = Size(self._widest, len(self._lines))
        self.refresh()
        # How far it can be scrolled is known once it was laid out.
        self.call_after_refresh(self._keep_up)

    def _keep_up(self) -> None:
        if self.follows:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)

    def on_resize(self) -> None:
        """Keep the newest line in sight."""
        self.call_after_refresh(self._keep_up)
