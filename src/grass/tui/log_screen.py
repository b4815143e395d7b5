"""The log of one job on a whole screen: it follows, and all of it can be searched.

The last lines are read first. Earlier ones are read when it is scrolled to them, by
their numbers; a search is made where the output is, over the whole file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Static

from grass.cli.printing.streams import safe
from grass.client.json_codec import Document, query
from grass.tui.log_view import LogView
from grass.tui.output_follower import PAGE, OutputFollower
from grass.tui.part import Part
from grass.tui.reader import Reader

if TYPE_CHECKING:
    from grass.tui.app import TopApp

LOOK_S = 0.2
MOST_FOUND = 1_000
_BEFORE = 300
"""How many lines are read before the one that is gone to."""


class LogScreen(Screen[None]):
    """A job's output, and what comes after it."""

    app: TopApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("G,f", "newest", show=False),
        Binding("slash", "search", show=False),
        Binding("n", "next(1)", show=False),
        Binding("N", "next(-1)", show=False),
        Binding("e", "explain", show=False),
    ]

    def __init__(self, job: Document) -> None:
        super().__init__()
        self.job = job
        self.view = LogView(id="log")
        self._is_reading = False
        self._words = ""
        self._found: list[int] = []
        """The numbers of the lines that match."""
        self._count = 0
        """How many match in all."""
        self._at = -1
        self._left: int | None = None
        """The line from which on it is still to be searched; None: from none."""

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Part(id="head")
        yield self.view
        yield Input(placeholder="text to look for in all of it", id="search")
        yield Static(
            "[@click=screen.leave][b]Esc[/b] back[/]  "
            "[@click=screen.search][b]/[/b] search[/]  [b]n N[/b] next, previous  "
            "[@click=screen.oldest][b]Home[/b] first line[/]  "
            "[@click=screen.newest][b]G[/b] newest[/]  "
            "[@click=screen.explain][b]e[/b] explain[/]",
            id="foot",
        )

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one("#search").display = False
        self._follow()
        self.view.focus()
        self.set_interval(LOOK_S, self.app.draw)

    def _follow(self) -> None:
        connect, id = self.app.connect, self.job["id"]
        self.view.show(OutputFollower(connect, id, numbered=True))

    def draw(self) -> None:
        """Draw the line above: which job, which lines, and whether it follows."""
        # An answer may come before its parts are made, or after they were taken away.
        if self.is_mounted and self.query("#head"):
            self.query_one("#head", Part).put(
                Text.assemble(
                    (f"log of job {self.job['id']} ", "bold"),
                    f"{safe(self.job['name'])}  ",
                    (self._told(), "yellow" if self.view.note else "dim"),
                    no_wrap=True,
                    overflow="ellipsis",
                )
            )

    def _told(self) -> str:
        view = self.view
        if view.note:
            return view.note
        if view.is_reading:
            return "reading it"
        if view.is_empty:
            return "it has written nothing" if view.is_over else "no output yet"
        seen = min(view.count, view.size.height)
        told = [f"lines {view.top:,}-{view.top + seen - 1:,}"]
        if view.first is None:
            told = [f"the last {view.count:,} lines"]
        if self._words:
            told.append(self._told_found())
        if view.is_over:
            told.append("ended")
        elif self.app.state.is_paused:
            told.append("paused: p goes on")
        else:
            told.append("follows" if view.follows else "scrolled up: G follows again")
        return ", ".join(told)

    def _told_found(self) -> str:
        if self._left is not None:
            return f"searching `{self._words}`, {self._count:,} so far"
        if not self._found:
            return f"`{self._words}` is not in it"
        more = f" of {self._count:,}" if self._count else ""
        return f"`{self._words}` {self._at + 1:,}{more}"

    def _read(
        self, path: str, take: Callable[[Document], None], **asked: object
    ) -> None:
        """Read something about the output, one thing at a time."""
        if self._is_reading:
            return
        self._is_reading = True

        def read(reader: Reader) -> Document:
            return reader.read(f"/jobs/{self.job['id']}/{path}" + query(**asked))

        def taken(document: Document) -> None:
            self._is_reading = False
            take(document)
            self._search()

        def refused(why: str) -> None:
            self._is_reading = False
            self.app.complain(why)
            if path == "search":
                self._look_for("")
            self._search()

        self.app.ask(read, taken, refused)

    def on_log_view_jumped(self, event: LogView.Jumped) -> None:
        """Go to the first or to the last line of all."""
        if event.is_top:
            self.action_oldest()
        else:
            self.action_newest()

    def on_log_view_at_edge(self, event: LogView.AtEdge) -> None:
        """Read the lines beyond the edge."""
        first = self.view.first or 1
        if event.is_top:
            start = max(1, first - PAGE)
            asked = {"from": start, "count": first - start}
            self._read(
                "lines", lambda page: self.view.add_before(page["lines"]), **asked
            )
        else:
            last = first + self.view.count
            self._read("lines", self._add_after, **{"from": last, "count": PAGE})

    def _add_after(self, page: Document) -> None:
        if page["lines"]:
            self.view.add_after(page["lines"])
        else:
            self._follow()  # It was the end.

    def _go_to(self, line: int) -> None:
        """Show a line, wherever it is."""
        if self.view.has(line):
            self.view.go_to(line)
            return
        start = max(1, line - _BEFORE)

        def take(page: Document) -> None:
            self.view.show_part(page["first"], page["lines"])
            self.view.go_to(line)

        self._read("lines", take, **{"from": start, "count": PAGE})

    def action_search(self) -> None:
        """Type what to look for."""
        line = self.query_one("#search", Input)
        line.display = True
        line.value = ""
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Look for a text in the whole output."""
        self._close_line()
        self._look_for(event.value)
        self._search()

    def _look_for(self, words: str) -> None:
        """Forget what was found, and begin anew at the first line."""
        self._words, self._found, self._at, self._count = words, [], -1, 0
        self._left = 1 if words else None
        self.view.mark(words)

    def _search(self) -> None:
        """Go on to search, if there is more and nothing else is read."""
        if self._left is not None:
            asked = {"text": self._words, "limit": MOST_FOUND, "from": self._left}
            self._read("search", partial(self._take_found, self._words), **asked)

    def _take_found(self, words: str, answer: Document) -> None:
        if words != self._words or self._left is None:
            return  # Something else is looked for by now.
        room = MOST_FOUND - len(self._found)
        self._found += [one["line"] for one in answer["matches"]][:room]
        self._count += answer["count"]
        self._left = None if answer["complete"] else answer["next"]
        if self._left is None and self._at < 0:
            self._go_to_first()

    def _go_to_first(self) -> None:
        before = [line for line in self._found if line <= self.view.top]
        # The newest one where the end is seen, else the next one from here on.
        at_end = self.view.follows or self.view.is_over
        self._at = len(self._found if at_end else before) - 1
        self._at = max(0, self._at)
        if self._found:
            self._go_to(self._found[self._at])

    def _close_line(self) -> None:
        self.query_one("#search").display = False
        self.view.focus()

    def action_next(self, step: int) -> None:
        """Go to the next line that was found, or to the one before."""
        if self._found:
            self._at = (self._at + step) % len(self._found)
            self._go_to(self._found[self._at])

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.view.scroll_relative(y=step, animate=False)

    def action_newest(self) -> None:
        """Go to the end, and follow it."""
        if not self.view.is_end:
            self._follow()
        self.view.follows = True
        self.view.scroll_end(animate=False)

    def action_oldest(self) -> None:
        """Go to the first line of all."""
        if self.view.first is not None and not self.view.has(1):
            self._go_to(1)
        else:
            self.view.scroll_home(animate=False)

    def action_explain(self) -> None:
        """Say why it waits, or how it ended."""
        self.app.open_explanation(self.job)

    def action_leave(self) -> None:
        """Leave the line that is typed, what was looked for, or the screen."""
        if self.query_one("#search").display:
            self._close_line()
        elif self._words:
            self._look_for("")
        else:
            self.app.action_leave()
