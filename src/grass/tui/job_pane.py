"""The job under the cursor: what is known of it, and the end of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from grass.cli.printing.show import job_details
from grass.cli.printing.streams import safe
from grass.cli.printing.table import Screen as Paper
from grass.client.json_codec import Document
from grass.tui.log_view import LogView
from grass.tui.output_follower import OutputFollower
from grass.tui.painting import from_printed
from grass.tui.part import Part

if TYPE_CHECKING:
    from grass.tui.app import TopApp

READ_AFTER_S = 0.25
"""How long the cursor has to stay on a job before its log is read."""
TAIL = 200
LOOK_S = 0.5
_FIRST_FIELDS = 4


class JobPane(Horizontal):
    """Details and log of one job."""

    app: TopApp

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._job: Document | None = None
        self._is_due = 0
        self._details = Part(id="details")
        self._log_title = Part(id="log-title")
        self.log_view = LogView(id="log", look_s=LOOK_S)
        """The end of the log."""

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self._details
        with Vertical(id="log-part"):
            yield self._log_title
            yield self.log_view

    def on_log_view_jumped(self, event: LogView.Jumped) -> None:
        """Go to the first or the last of the lines that are there."""
        if event.is_top:
            self.log_view.scroll_home(animate=False)
        else:
            self.log_view.scroll_end(animate=False)

    def look_at(self, job: Document | None) -> None:
        """Show another job, once the cursor stays on it."""
        before = None if self._job is None else self._job["id"]
        self._job = job
        if not self.display or (job is not None and job["id"] == before):
            return
        self._is_due += 1
        turn = self._is_due
        self.set_timer(READ_AFTER_S, lambda: self._read(turn))
        self.draw()

    def _read(self, turn: int) -> None:
        if turn != self._is_due:
            return  # The cursor has moved on.
        job = self._job
        if job is None or "members" in job:
            self.log_view.show(None)
            self.app.look_at(None)
        else:
            self.log_view.show(OutputFollower(self.app.connect, job["id"], TAIL))
            self.app.look_at(job["id"])
        self.draw()

    def draw(self) -> None:
        """Draw what is known of the job."""
        if not self.display:
            return
        known, job = self.app.state.job, self._job
        if known is not None and job is not None and known["id"] == job["id"]:
            job = known
        width = max(20, self._details.size.width)
        self._details.put(from_printed(summary(job, width, self.app)))
        self._log_title.put(Text(self._title(), "dim"))

    def _title(self) -> str:
        log, job = self.log_view, self._job
        if job is None:
            return ""
        if "members" in job:
            return "an array: Enter shows its jobs"
        if log.note:
            return log.note
        if log.is_reading:
            return "reading its log"
        if log.is_empty:
            return "no output" if log.is_over else "no output yet"
        return "log" if log.is_over else "log, live"


def summary(job: Document | None, width: int, app: TopApp) -> list[str]:
    """Write what matters of a job first: its state, why, and what it uses."""
    if job is None:
        return []
    paper = Paper(width, colours=True, signs=app.signs)
    if "usage" not in job and "members" in job:
        return [paper.paint(f"array {job['id']}: {safe(job['name'])}", "bold")]
    fields, *tables = job_details.text(job, paper).rstrip("\n").split("\n\n")
    lines = fields.split("\n")
    used = tables[0].split("\n") if tables and job.get("usage") else []
    used = ["", *used, ""] if used and "USAGE" in used[0] else []
    return [*lines[:_FIRST_FIELDS], *used, *lines[_FIRST_FIELDS:]]
