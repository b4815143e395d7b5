"""Small windows over a screen: a question, a menu, a line to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from grass.tui.cursor_list import CursorList

CANCEL: list[BindingType] = [Binding("escape", "leave", show=False)]


class Confirm(ModalScreen[bool]):
    """A question that is answered with yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,q", "answer(False)", show=False),
    ]

    def __init__(self, question: str, about: str = "") -> None:
        super().__init__()
        self._question = question
        self._about = about

    def compose(self) -> ComposeResult:
        """Show the question, and two answers that can be clicked."""
        with Vertical(classes="dialog"):
            yield Static(Text(self._question, "bold"), classes="question")
            if self._about:
                yield Static(Text(self._about), classes="about")
            yield Static(
                "\\[[b]y[/b]] [@click=screen.answer(True)]yes[/]    "
                "\\[[b]n[/b]] [@click=screen.answer(False)]no[/]",
                classes="answers",
            )

    def action_answer(self, answer: bool) -> None:
        """Close the window."""
        self.dismiss(answer)


class MenuItem(NamedTuple):
    """One line of a menu."""

    id: str
    label: str
    key: str = ""


class Menu(ModalScreen[str | None]):
    """Things to choose from, by their keys, by the cursor or by the mouse."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *CANCEL,
        Binding("full_stop", "leave", show=False),
    ]

    def __init__(self, title: str, choices: Sequence[MenuItem]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Show the choices."""
        with Vertical(classes="dialog menu"):
            yield Static(Text(self._title, "bold"), classes="question")
            yield CursorList(
                *(
                    Option(
                        Text.assemble((f"{one.key:>2}  ", "bold"), one.label), one.id
                    )
                    for one in self._choices
                ),
                compact=True,
            )

    def on_key(self, event: events.Key) -> None:
        """Choose by a key."""
        for one in self._choices:
            if one.key and event.character == one.key:
                event.stop()
                self.dismiss(one.id)
                return

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose what the cursor is on."""
        self.dismiss(event.option.id)

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


class Prompt(ModalScreen[str | None]):
    """A line to type."""

    BINDINGS: ClassVar[list[BindingType]] = CANCEL

    def __init__(self, title: str, value: str = "", hint: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Show the line."""
        with Vertical(classes="dialog wide"):
            yield Static(Text(self._title, "bold"), classes="question")
            yield Input(self._value, placeholder=self._hint, compact=True)
            yield Static(Text("Enter takes it, Esc leaves", "dim"), classes="answers")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line."""
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Take nothing."""
        self.dismiss(None)
