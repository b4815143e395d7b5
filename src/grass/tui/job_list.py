"""The table of jobs: the rows of `grass show`, with a cursor and marks.

The cursor stays on its job, wherever that moves. A row has one line, and a second one
with the reason where it waits or has ended so.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets.option_list import Option

from grass.cli.parsing.options import Values
from grass.cli.printing.show import columns
from grass.cli.printing.show.job_rows import JobTable
from grass.cli.printing.show.show_options import ShowOptions
from grass.cli.printing.signs import Signs
from grass.cli.printing.table import Screen
from grass.client.json_codec import Document
from grass.tui.cursor_list import CursorList
from grass.tui.painting import from_printed

SORTS = ("", "-id", "name", "-ran", "-waited", "-priority", "-memory")
"""The orders that `s` goes through, first the usual one: running, next, ended."""
GUTTER = 2
_DOUBLE = 2


class JobList(CursorList):
    """Jobs and arrays, one row each."""

    class Opened(Message):
        """A row was clicked twice."""

    def __init__(self, signs: Signs, *, id: str | None = None) -> None:
        super().__init__(id=id, compact=True, markup=False)
        self.signs = signs
        self.sort = ""
        self.rows: list[Document] = []
        self.marked: set[str] = set()
        """The ids of the rows that are selected."""
        self.covered: dict[str, int] = {}
        """The jobs that the rows stand for, by state."""
        self.header = ""
        """The line above the rows, with its colours."""
        self._blocks: list[tuple[str, ...]] = []
        """The lines of each row, with their colours."""
        self._owners: list[int] = []
        """The row of each line."""

    @property
    def current(self) -> Document | None:
        """The job or array under the cursor."""
        at = self.highlighted
        return None if at is None or at >= len(self.rows) else self.rows[at]

    @property
    def targets(self) -> list[Document]:
        """The selected rows, or else the one under the cursor."""
        marked = [row for row in self.rows if str(row["id"]) in self.marked]
        if marked:
            return marked
        return [] if self.current is None else [self.current]

    def show(self, jobs: Sequence[Document], arrays: Sequence[Document]) -> None:
        """Show these jobs, with the cursor where it was."""
        if self.sort:
            jobs = columns.order(self.sort)(jobs)
        screen = Screen(self._room(), colours=True, signs=self.signs)
        table = JobTable(ShowOptions(Values(), ()), jobs, arrays, screen)
        self.covered = table.covered
        self.header = table.lines[0] if table.lines else ""
        blocks, at = [], 1
        for row, height in zip(table.documents, table.heights, strict=True):
            blocks.append(self._block(row, table.lines[at : at + height]))
            at += height
        self._replace(table.documents, blocks, table.heights)

    def _room(self) -> int:
        """Return how wide a row may be."""
        width = self.scrollable_content_region.width
        if width == 0 and isinstance(self.parent, Widget):
            # It was hidden until now, as there were no jobs, and has no width yet.
            width = self.parent.size.width - self.styles.scrollbar_size_vertical
        return max(20, width - GUTTER)

    def mark(self) -> None:
        """Select the row under the cursor, or no more, and move on."""
        if self.current is None:
            return
        self.marked ^= {str(self.current["id"])}
        self.move(1)

    def mark_all(self) -> None:
        """Select all rows, or none."""
        every = {str(row["id"]) for row in self.rows}
        self.marked = set() if self.marked >= every else every

    def on_click(self, event: events.Click) -> None:
        """Move the cursor; two clicks open the job."""
        event.prevent_default()
        at = event.style.meta.get("option")
        if at is not None:
            self.highlighted = at
            if event.chain == _DOUBLE:
                self.post_message(self.Opened())

    def _block(self, row: Document, lines: Sequence[str]) -> tuple[str, ...]:
        marked = str(row["id"]) in self.marked
        sign = self.signs.of("ok") if marked else "  "
        first, *rest = lines
        return (sign + first, *("  " + line for line in rest))

    def _replace(
        self,
        rows: list[Document],
        blocks: list[tuple[str, ...]],
        heights: list[int],
    ) -> None:
        keys = [str(row["id"]) for row in rows]
        before = [str(row["id"]) for row in self.rows]
        current = None if self.current is None else str(self.current["id"])
        at = self.highlighted
        owners = [place for place, height in enumerate(heights) for _ in range(height)]
        self.rows = rows
        self.marked &= set(keys)
        if keys == before and owners == self._owners:
            self._draw_changed(blocks)
            return
        self._owners, self._blocks = owners, blocks
        top = self.scroll_y
        options = zip(keys, blocks, strict=True)
        self.set_options([Option(from_printed(block), key) for key, block in options])
        if not keys:
            return
        if current in keys:
            self.highlighted = keys.index(current)
        else:
            self.highlighted = min(at or 0, len(keys) - 1)
        self.scroll_to(y=top, animate=False, immediate=True)
        self.scroll_to_highlight()

    def _draw_changed(self, blocks: list[tuple[str, ...]]) -> None:
        """Draw the rows that are not as they were; all of them are the same jobs."""
        for place, block in enumerate(blocks):
            if block != self._blocks[place]:
                self.replace_option_prompt_at_index(place, from_printed(block))
        self._blocks = blocks
