"""`grass top` as an application: what is known, who may do what, and the screens.

The terminal's own sixteen colours are used and no others. Everything that is asked of
the daemon is asked in threads; the screens draw what is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar, TypeGuard

from textual import events
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.message import Message

from grass.cli.printing.signs import ASCII, Signs
from grass.client.json_codec import Document
from grass.tui.acting import ActingApp
from grass.tui.actions import Access
from grass.tui.list_screens import GpuScreen, QueueScreen
from grass.tui.log_screen import LogScreen
from grass.tui.main_screen import MainScreen
from grass.tui.reader import JOIN_S, Connect
from grass.tui.screen_state import ScreenState
from grass.tui.text_screens import HelpScreen, explanation_screen, job_screen
from grass.tui.updates import News, Updates

TICK_S = 1.0
CHORDS = {
    "j": "jobs",
    "o": "jobs",
    "n": "gpus",
    "g": "gpus",
    "q": "queues",
}
"""The letter after `g`, and the screen that it shows."""


class Fresh(Message):
    """Something was read."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class Lost(Message):
    """The daemon did not answer."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


class TopApp(ActingApp):
    """The screens of `grass top`."""

    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("question_mark", "help", show=False),
        Binding("p", "pause", show=False),
        Binding("n", "new", show=False),
    ]
    chord_hint = "g then:  j jobs  n GPUs  q queues"

    def __init__(
        self,
        connect: Connect,
        signs: Signs,
        access: Access,
        select: Sequence[str] = (),
    ) -> None:
        """With `select`, begin with the jobs that these selectors mean."""
        super().__init__(connect, access)
        self.signs = signs
        self.state = ScreenState()
        self.state.choose(select)
        self.chord = False
        """Whether `g` was pressed, and a letter is to follow."""
        self._updates: Updates | None = None
        self._main = MainScreen()

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be changed."""
        return not self.access.may_enqueue

    def on_mount(self) -> None:
        """Begin to read."""
        self.theme = "ansi-dark"
        self.set_class(self.signs is ASCII, "-ascii")
        self.push_screen(self._main)
        self._updates = Updates(
            self.connect,
            lambda news: self.post_message(Fresh(news)),
            lambda why: self.post_message(Lost(why)),
        )
        self._updates.select(self.state.select)
        self.set_interval(TICK_S, self.draw)

    def on_unmount(self) -> None:
        """End the threads."""
        if self._updates is not None:
            self._updates.stop()
        self.finish_calls(JOIN_S)

    def draw(self) -> None:
        """Draw the screen that is seen."""
        for screen in reversed(self.screen_stack):
            draw = getattr(screen, "draw", None)
            if draw is not None:
                # A screen that is being left has no parts any more.
                with suppress(NoMatches):
                    draw()
                return

    def on_fresh(self, message: Fresh) -> None:
        """Take over what was read."""
        self.state.take(message.news)
        # While it is being left there is no screen any more.
        if self.screen_stack[-1:] == [self._main]:
            with suppress(NoMatches):
                self._main.draw_topic(message.news.topic)
        else:
            self.draw()

    def on_lost(self, message: Lost) -> None:
        """Show that nothing is read."""
        self.state.lose(message.why)
        self.draw()

    def on_key(self, event: events.Key) -> None:
        """Take the letter after `g`."""
        if self.chord:
            event.stop()
            event.prevent_default()
            self.chord = False
            self._show(CHORDS.get(event.character or "", ""))
        elif event.character == "g":
            self.chord = True
        self.draw()

    def _show(self, name: str) -> None:
        if not name:
            return
        while len(self.screen_stack) > 1 and self.screen is not self._main:
            self.pop_screen()
        if name == "gpus":
            self.push_screen(GpuScreen())
        elif name == "queues":
            self.push_screen(QueueScreen())

    def action_leave(self) -> None:
        """Leave the screen that is seen; the first one stays."""
        if self.screen is not self._main:
            self.pop_screen()
            self.draw()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())

    def action_pause(self) -> None:
        """Change nothing on the screen until the same key is pressed."""
        self.state.pause(on=not self.state.is_paused)
        if self._updates is not None:
            self._updates.pause(on=self.state.is_paused)
        self.draw()

    def choose(self, words: Sequence[str]) -> None:
        """Show the jobs that selector words mean."""
        self.state.choose(words)
        if self._updates is not None:
            self._updates.select(words)
        self.draw()

    def look_at(self, job: int | None) -> None:
        """Read what a job uses, from now on."""
        if self._updates is not None:
            self._updates.look_at(job)

    def open_job(self, job: Document | None) -> None:
        """Show all that is known of a job."""
        if _is_one(job):
            self.push_screen(job_screen(job))

    def open_log(self, job: Document | None) -> None:
        """Show what a job wrote."""
        if _is_one(job):
            self.push_screen(LogScreen(job))

    def open_explanation(self, job: Document | None) -> None:
        """Say why a job waits, or how it ended."""
        if _is_one(job):
            self.push_screen(explanation_screen(job))


def _is_one(job: Document | None) -> TypeGuard[Document]:
    """Tell whether it is one job, and no array."""
    return job is not None and "members" not in job
