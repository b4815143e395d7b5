"""What a view of `show` is made of, and how it is fitted into a terminal's height.

Above are tables that can be folded to a few lines, then the lines that can be scrolled,
with their heading, and at the foot what always stays. Running jobs are the first of the
lines, so that they are seen without scrolling.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LEAST_BODY = 6
"""Tables are folded before fewer lines than these are left for the body."""


class Section:
    """A table, and the lines that stand for it where there is little room."""

    def __init__(self, lines: list[str], folded: list[str]) -> None:
        self.lines = lines
        self.folded = folded


class Page:
    """A view as lines."""

    def __init__(
        self,
        above: Sequence[Section] = (),
        head: Sequence[str] = (),
        body: Sequence[str] = (),
        foot: Sequence[str] = (),
        *,
        first: int = 0,
    ) -> None:
        """`first` is how many lines of the body are to be seen before all others."""
        self.above = above
        self.head = head
        self.body = body
        self.foot = foot
        self._first = first

    def text(self) -> str:
        """Return the whole page."""
        whole = [part.lines for part in self.above]
        return "".join(line + "\n" for line in self._lines(whole, self.body))

    def fitted(self, height: int, top: int) -> Viewport:
        """Return the lines that fit, with the body from line `top` on."""
        above: list[list[str]] = []
        for above in self._foldings():
            room = height - len(self._lines(above, ()))
            if room >= min(len(self.body), max(_LEAST_BODY, self._first)):
                break
        room = max(1, height - len(self._lines(above, ())))
        top = max(0, min(top, len(self.body) - room))
        body = self.body[top : top + room]
        # Where even the foot has no room, its end is what stays.
        return Viewport(self._lines(above, body)[-height:], top, len(body), self)

    def _foldings(self) -> Iterator[list[list[str]]]:
        """Return what may stand above: all, then folded from the last on, nothing."""
        for whole in range(len(self.above), -1, -1):
            folded = [line for part in self.above[whole:] for line in part.folded]
            yield [*(part.lines for part in self.above[:whole]), folded]
        yield []

    def _lines(self, above: Sequence[Sequence[str]], body: Sequence[str]) -> list[str]:
        """Return blocks with an empty line between two."""
        lines: list[str] = []
        for block in (*above, [*self.head, *body], self.foot):
            lines += ["", *block] if block and lines else block
        return lines


class Viewport:
    """The part of a page that is on the screen."""

    def __init__(self, lines: list[str], top: int, shown: int, page: Page) -> None:
        """`shown` lines of the body are on the screen, from line `top` on."""
        self.lines = lines
        self.top = top
        self.shown = shown
        self.total = len(page.body)

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the body is left out."""
        return self.shown == self.total

    def after(self, key: str) -> int:
        """Return the line of the body that is the first one after a key was pressed."""
        last = self.total - self.shown
        steps = {"up": -1, "down": 1, "page up": -self.shown, "page down": self.shown}
        ends = {"home": 0, "end": last}
        return max(0, min(last, ends.get(key, self.top + steps.get(key, 0))))
