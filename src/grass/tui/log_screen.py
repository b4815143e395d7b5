"""The log of one job on a whole screen: it follows, and can be searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Static

from grass.client.json_codec import Document
from grass.tui.log_view import LogView
from grass.tui.output_follower import TAIL, OutputFollower

if TYPE_CHECKING:
    from grass.tui.app import TopApp

LOOK_S = 0.2


class LogScreen(Screen[None]):
    """The last lines of a job's output, and what comes after them."""

    app: TopApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("G,end", "newest", show=False),
        Binding("home", "oldest", show=False),
        Binding("slash", "search", show=False),
        Binding("n", "next(1)", show=False),
        Binding("N", "next(-1)", show=False),
        Binding("e", "explain", show=False),
        Binding("f", "newest", show=False),
    ]

    def __init__(self, job: Document) -> None:
        super().__init__()
        self.job = job
        self._searched = ""

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Static(id="head")
        yield LogView(id="log")
        yield Input(placeholder="text to look for", id="search")
        yield Static(
            "[@click=screen.leave][b]Esc[/b] back[/]  "
            "[@click=screen.search][b]/[/b] search[/]  [b]n N[/b] next, previous  "
            "[@click=screen.newest][b]G[/b] newest[/]  "
            "[@click=screen.explain][b]e[/b] explain[/]",
            id="foot",
        )

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one("#search").display = False
        self.log_view.show(OutputFollower(self.app.connect, self.job["id"]))
        self.log_view.focus()
        self.set_interval(LOOK_S, self.app.draw)

    @property
    def log_view(self) -> LogView:
        """The lines."""
        return self.query_one(LogView)

    def draw(self) -> None:
        """Draw the line above: which job, how much, and whether it follows."""
        if self.is_mounted:
            title = Text.assemble(
                (f"log of job {self.job['id']} ", "bold"),
                (f"{self.job['name']}  ", ""),
                (self._told(), "yellow" if self.log_view.note else "dim"),
                no_wrap=True,
                overflow="ellipsis",
            )
            self.query_one("#head", Static).update(title)

    def _told(self) -> str:
        log = self.log_view
        if log.note:
            return log.note
        if log.is_empty:
            return "it has written nothing" if log.is_over else "no output yet"
        lines = log.text.all()
        told = [
            f"the last {TAIL:,} lines"
            if len(lines) == TAIL
            else f"{len(lines):,} line{'' if len(lines) == 1 else 's'}"
        ]
        if self._searched:
            told.append(self._searched_text())
        if log.is_over:
            told.append("ended")
        else:
            told.append("follows" if log.follows else "scrolled up: G follows again")
        return ", ".join(told)

    def _searched_text(self) -> str:
        log = self.log_view
        if not log.found or log.at is None:
            return f"`{self._searched}` is not in them"
        return f"`{self._searched}` {log.at + 1} of {len(log.found)}"

    def action_search(self) -> None:
        """Type what to look for."""
        line = self.query_one("#search", Input)
        line.display = True
        line.value = ""
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Look for a text."""
        self._close_line()
        self._searched = event.value
        self.log_view.look_for(event.value)
        self.draw()

    def _close_line(self) -> None:
        self.query_one("#search").display = False
        self.log_view.focus()

    def action_next(self, step: int) -> None:
        """Go to the next line that was found, or to the one before."""
        self.log_view.go_on(step)

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.log_view.scroll_relative(y=step, animate=False)

    def action_newest(self) -> None:
        """Go to the end, and follow it."""
        self.log_view.follows = True
        self.log_view.scroll_end(animate=False)

    def action_oldest(self) -> None:
        """Go to the first line that was read."""
        self.log_view.scroll_home(animate=False)

    def action_explain(self) -> None:
        """Say why it waits, or how it ended."""
        self.app.open_explanation(self.job)

    def action_leave(self) -> None:
        """Leave the line that is typed, what was looked for, or the screen."""
        if self.query_one("#search").display:
            self._close_line()
        elif self._searched:
            self._searched = ""
            self.log_view.look_for("")
        else:
            self.app.action_leave()
