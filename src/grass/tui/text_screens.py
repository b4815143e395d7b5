"""Screens of text: all about a job, why it waits, the keys.

They show what the command line prints, as wide as the terminal is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from grass.cli.printing.explanation import explained
from grass.cli.printing.show import job_details
from grass.cli.printing.table import Screen as Paper
from grass.client.json_codec import Document
from grass.tui import actions
from grass.tui.painting import from_printed
from grass.tui.part import Part
from grass.tui.reader import Reader

if TYPE_CHECKING:
    from grass.tui.app import TopApp

AGAIN_S = 2.0


class DrawnScreen(Screen[None]):
    """A screen over all others, drawn again when it gets another size."""

    app: TopApp

    def on_resize(self, _event: events.Resize) -> None:
        """Draw as wide as the screen is now."""
        self.call_after_refresh(self.draw)

    @property
    def paper(self) -> Paper:
        """What the text is written on."""
        width = max(20, self.app.size.width - 4)
        return Paper(width, colours=True, signs=self.app.signs)

    def draw(self) -> None:
        """Draw what is known."""
        raise NotImplementedError


class TextScreen(DrawnScreen):
    """A title, a text that scrolls, and the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.leave", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]
    HINT = "[@click=app.leave][b]Esc[/b] back[/]  [b]j k[/b] scroll"

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Part(id="head")
        with VerticalScroll(id="page"):
            yield Part(id="text")
        yield Static(self.HINT, id="foot")

    def on_mount(self) -> None:
        """Draw what is known already."""
        self.query_one("#page").focus()
        self.draw()

    def draw(self) -> None:
        """Draw the text anew."""
        # An answer may come before its parts are made, or after they were taken away.
        if self.is_mounted and self.query("#head"):
            self.set_class(bool(self.app.state.lost), "-away")
            self.query_one("#head", Part).put(Text(self.title or "", "bold"))
            self.query_one("#text", Part).put(self.text())

    def text(self) -> Text:
        """Return what is shown."""
        raise NotImplementedError

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one("#page").scroll_relative(y=step, animate=False)


class ReadScreen(TextScreen):
    """A text about one job that is read again every few seconds."""

    HINT = (
        "[@click=app.leave][b]Esc[/b] back[/]  [@click=screen.log][b]l[/b] log[/]  "
        "[@click=screen.explain][b]e[/b] explain[/]  "
        "[@click=screen.actions][b].[/b] actions[/]  [b]j k[/b] scroll"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "log", show=False),
        Binding("e", "explain", show=False),
        Binding("full_stop", "actions", show=False),
    ]

    def __init__(
        self,
        job: Document,
        title: str,
        read: Callable[[Reader], Document],
        write: Callable[[Document, Paper], str],
    ) -> None:
        super().__init__()
        self.job = job
        self.title = title
        self._read = read
        self._write = write
        self._document: Document | None = None
        self._trouble = ""

    def on_mount(self) -> None:
        """Read it now and again."""
        self._look()
        self.set_interval(AGAIN_S, self._look)

    def _look(self) -> None:
        if not (self.app.state.is_paused and self._document):
            self.app.ask(self._read, self._take, self._refused)

    def _take(self, document: Document) -> None:
        self._document, self._trouble = document, ""
        if "flags" in document:
            self.job = document
        self.draw()

    def _refused(self, why: str) -> None:
        self._trouble = why
        self.draw()

    def text(self) -> Text:
        """Return the text, or why there is none."""
        if self._document is None:
            return Text(self._trouble or "reading …", "dim")
        return from_printed(self._write(self._document, self.paper).splitlines())

    def on_key(self, event: events.Key) -> None:
        """Do what a key of the table of actions says."""
        action = actions.of_shortcut(event.character or "")
        if action is not None and not self.app.chord:
            event.stop()
            self.app.act(action, [self.job])

    def action_log(self) -> None:
        """Open the log."""
        self.app.open_log(self.job)

    def action_explain(self) -> None:
        """Say why it waits, or how it ended."""
        self.app.open_explanation(self.job)

    def action_actions(self) -> None:
        """Choose among what can be done to it."""
        self.app.open_menu([self.job])


def job_screen(job: Document) -> ReadScreen:
    """Return the screen with all that is known of a job."""
    id = job["id"]

    def read(reader: Reader) -> Document:
        return reader.job(id, usage=True)

    return ReadScreen(job, f"job {id}", read, job_details.text)


def explanation_screen(job: Document) -> ReadScreen:
    """Return the screen that says why a job waits, or how it ended."""
    id = job["id"]

    def read(reader: Reader) -> Document:
        return reader.explain(id)

    return ReadScreen(job, f"explain {id}", read, explained)


KEYS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    (
        "look",
        (
            ("j k  arrows", "move"),
            ("Enter", "all about the job; of an array, its jobs"),
            ("l", "its log: follows, / searches"),
            ("e", "why it waits, or how it ended"),
            ("/", "filter by selectors: state:failed name~lr @project 3-9"),
            ("s", "sort by the next column; or click on its heading"),
            ("p", "pause: nothing on the screen changes"),
            ("g j  g o", "jobs"),
            ("g n  g g", "GPUs and who is on them"),
            ("g q", "queues"),
            ("Esc", "back; clears marks and filter"),
            ("q", "quit, or back"),
        ),
    ),
    (
        "select",
        (
            ("x  Space", "select the job, and move on"),
            ("a", "select all that is shown"),
        ),
    ),
)


class HelpScreen(TextScreen):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.leave", show=False)
    ]

    def text(self) -> Text:
        """Return the keys, without those that the caller may not use."""
        self.title = "keys"
        parts = [_section(*part) for part in KEYS]
        done = [(one.shortcut, one.label) for one in actions.ACTIONS]
        more = [(".", "a menu of these"), ("P", "priority"), ("n", "enqueue a job")]
        if self.app.is_read_only:
            parts.append(Text("read-only: nothing can be changed from here"))
        else:
            parts.append(_section("act on the selected jobs", [*more, *done]))
        return Text("\n\n").join(parts)


def _section(title: str, keys: Sequence[tuple[str, str]]) -> Text:
    lines = [Text(title, "bold")]
    lines += [Text.assemble((f"  {key:<14}", "cyan"), about) for key, about in keys]
    return Text("\n").join(lines)
