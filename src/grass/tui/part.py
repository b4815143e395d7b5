"""A part of a screen that is drawn only when its text has changed."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static


class Part(Static):
    """A text; the screen is laid out anew only if it has more or fewer lines."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text: Text | str = ""

    def put(self, text: Text | str) -> None:
        """Show a text; markup is read only in a plain one."""
        if text == self._text:
            return
        layout = _height(text) != _height(self._text)
        self._text = text
        self.update(text, layout=layout)


def _height(text: Text | str) -> int:
    plain = text if isinstance(text, str) else text.plain
    return plain.count("\n") + bool(plain)
