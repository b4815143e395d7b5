"""`show --watch`: a view that is drawn again after each event of the daemon.

No request is sent while nothing happens, except for a view of what is measured. `q`
ends it, arrows and pages scroll. A frame is written over the one before, without
clearing the screen, and only if it differs. The terminal is as it was at the end, and
while the command is suspended.
"""

from __future__ import annotations

import os
import sys
import time

from grass.cli.printing.event_collector import EventCollector
from grass.cli.printing.keys import Keyboard
from grass.cli.printing.show.show_views import AsJson, AsText
from grass.cli.printing.streams import printable, warn
from grass.cli.printing.styled import Styled, painted_cells
from grass.cli.printing.table import Screen, this_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from grass.cli.printing.page import Viewport
    from grass.cli.printing.show.show_views import Form, ShowView
    from grass.client.client import Client
    from grass.client.json_codec import Document

_TICK_S = 1.0
# Another screen, no cursor, lines that end at the edge; and back.
_OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
# A terminal that knows these shows a frame only when all of it has arrived.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_HOME, _TO_LINE_END, _TO_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"
_TERMINATED = 143
_USUAL_SIZE = (80, 24)
_LEAST_HEIGHT = 2
_HEIGHT_WITH_HINT = 10
_HINT = "q quits"


def watch(
    client: Client,
    view: ShowView,
    form: Form,
    pause_s: float,
    refresh_s: float | None = None,
) -> None:
    """Draw a view again whenever something happens, until `q` or an interrupt.

    With `refresh_s` it is read again after so long, whether or not something happened.
    """
    screen = this_screen()
    shown = _Watch(client, view, pause_s, refresh_s)
    if isinstance(form, AsText) and screen.width is not None and _can_move():
        with Keyboard(shown.wake) as keyboard, _Terminal(keyboard, shown.draw_anew):
            shown.draw_until_quit(keyboard)
        return
    client.outage.tell = warn
    separator = "" if isinstance(form, AsJson) else "\n"
    shown.print_forever(form, separator)


class _Watch:
    """A view that is drawn again and again."""

    def __init__(
        self, client: Client, view: ShowView, pause_s: float, refresh_s: float | None
    ) -> None:
        self._client = client
        self._view = view
        self._pause_s = pause_s
        self._refresh_s = refresh_s
        self._read_at = 0.0
        self._is_old = False
        """Whether something has happened since it was read."""
        self._document: Document = {}
        self._drawn = ""
        self._window: Viewport | None = None
        self._collector = EventCollector(client)

    def wake(self) -> None:
        """Draw soon, because a key was pressed."""
        self._collector.wake()

    def draw_anew(self) -> None:
        """Draw soon, because the screen shows something else or has another size."""
        self._drawn = ""
        self._collector.wake()

    def draw_until_quit(self, keyboard: Keyboard) -> None:
        """Draw on a terminal, every second also without an event, for the ages."""
        self._client.outage.tell = self._draw
        self._document = self._read()
        while True:
            self._draw(self._client.outage.told)
            if self._is_due(_TICK_S):
                self._document = self._read()
            for key in keyboard.taken():
                if key == "quit":
                    return
                self._scroll(key)

    def _scroll(self, key: str) -> None:
        if self._window is not None:
            self._window.top = self._window.after(key)

    def _draw(self, trouble: str) -> None:
        if not self._document:
            return  # Nothing was read yet.
        top = 0 if self._window is None else self._window.top
        drawn, self._window = frame(self._view, self._document, trouble, top)
        if drawn != self._drawn:
            sys.stdout.write(_BEGIN + drawn + _END)
            sys.stdout.flush()
            self._drawn = drawn

    def print_forever(self, form: Form, separator: str) -> None:
        """Print one frame after the other."""
        form.write(self._view, self._read(), this_screen())
        sys.stdout.flush()
        while True:
            if self._is_due(None):
                sys.stdout.write(separator)
                form.write(self._view, self._read(), this_screen())
                sys.stdout.flush()

    def _is_due(self, wait_s: float | None) -> bool:
        """Wait for an event or a key; tell whether it is time to read again."""
        if self._refresh_s is not None:
            left_s = max(0.0, self._read_at + self._refresh_s - time.monotonic())
            wait_s = left_s if wait_s is None else min(wait_s, left_s)
        happened = bool(self._collector.take(wait_s))
        self._is_old = self._is_old or happened or self._is_outdated()
        if not self._is_old:
            return False
        left_s = self._read_at + self._pause_s - time.monotonic()
        if left_s > 0:
            self._collector.rest(left_s if wait_s is None else min(left_s, wait_s))
        return time.monotonic() >= self._read_at + self._pause_s

    def _is_outdated(self) -> bool:
        waited_s = time.monotonic() - self._read_at
        return self._refresh_s is not None and waited_s >= self._refresh_s

    def _read(self) -> Document:
        self._collector.take(0)
        self._is_old = False
        self._read_at = time.monotonic()
        document = self._view.read(self._client)
        if "jobs" in document:
            document["jobs"] = list(document["jobs"])
        return document


class _Terminal:
    """The terminal's alternate screen, for as long as a block lasts."""

    def __init__(self, keyboard: Keyboard, draw_anew: Callable[[], None]) -> None:
        self._keyboard = keyboard
        self._draw_anew = draw_anew

    def __enter__(self) -> Self:
        import signal

        signal.signal(signal.SIGTERM, _leave)
        signal.signal(signal.SIGHUP, _leave)
        signal.signal(signal.SIGTSTP, self._suspend)
        signal.signal(signal.SIGWINCH, lambda *_: self._draw_anew())
        os.write(1, _OPEN.encode())
        return self

    def __exit__(self, *_error: object) -> None:
        sys.stdout.flush()
        os.write(1, _CLOSE.encode())

    def _suspend(self, number: int, _frame: object) -> None:
        """Give the terminal back while the command is stopped."""
        import signal

        self._keyboard.close()
        os.write(1, _CLOSE.encode())
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # From here on it was continued.
        signal.signal(number, self._suspend)
        self._keyboard.open()
        os.write(1, _OPEN.encode())
        self._draw_anew()


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(_TERMINATED)


def _can_move() -> bool:
    return os.environ.get("TERM", "dumb") != "dumb"


def frame(
    view: ShowView, document: Document, trouble: str = "", top: int = 0
) -> tuple[str, Viewport]:
    """Return a frame that fits the screen, always with the summary line.

    Below it is the reason why it may be out of date, and how to leave and to scroll.
    """
    size = os.get_terminal_size(1)
    # A terminal that does not know its size says 0.
    width, height = size.columns or _USUAL_SIZE[0], size.lines or _USUAL_SIZE[1]
    known = this_screen()
    screen = Screen(width, colours=known.colours, signs=known.signs)
    below = [Styled((trouble, "yellow"))] if trouble else []
    with_hint = height >= _HEIGHT_WITH_HINT
    room = max(_LEAST_HEIGHT, height - len(below) - with_hint)
    window = view.page(document, screen).fitted(room, top)
    if with_hint:
        below.append(Styled((_hint(window), "dim")))
    lines = [*window.lines, *map(screen.line, below)]
    drawn = "\n".join(_closed(printable(line), width) for line in lines)
    # Below the last line, where there is one: at the edge it would erase a letter.
    rest = f"\n{_TO_SCREEN_END}" if len(lines) < height else ""
    return _HOME + drawn + rest, window


def _closed(line: str, width: int) -> str:
    """Erase what is left of an earlier line; at the edge that would erase a letter."""
    return line + _TO_LINE_END if painted_cells(line) < width else line


def _hint(window: Viewport) -> str:
    """Write which lines are seen, and the keys."""
    if window.is_whole:
        return _HINT
    seen = f"lines {window.top + 1}-{window.top + window.shown} of {window.total}"
    return f"{seen}; arrows and PgUp/PgDn scroll, {_HINT}"
