"""`show --watch`: a view that is drawn again after each event of the daemon.

A thread with a connection of its own follows the events, so no request is sent while
nothing happens. The terminal's screen is restored at the end.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from grass.cli.printing.show_views import AsJson, AsText
from grass.cli.printing.streams import printable, safe, warn
from grass.cli.printing.table import Screen, cut, this_screen
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from grass.cli.printing.show_views import Form, ShowView
    from grass.client.json_codec import Document

_TICK_S = 1.0
# Another screen, no cursor, lines that end at the edge; and back.
_OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _TO_LINE_END, _TO_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"
_TERMINATED = 143
_USUAL_SIZE = (80, 24)
_LEAST_HEIGHT = 2


class EventCollector:
    """Events, collected by a thread until they are taken."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._after = int(client.overview()["daemon"]["last_event"])
        self._changed = threading.Condition()
        self._events: list[Document] = []
        self._error: GrassError | None = None
        self._closed = False
        with CtrlCForMain():
            threading.Thread(target=self._follow, daemon=True).start()

    def take(self, wait_s: float | None) -> list[Document]:
        """Return the events since the last call, waiting for one if there is none."""
        with self._changed:
            self._changed.wait_for(self._may_go, wait_s)
            if self._error is not None:
                raise self._error
            events, self._events = self._events, []
            return events

    def close(self) -> None:
        """Wake the thread that waits, and collect no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _may_go(self) -> bool:
        return bool(self._events) or self._closed or self._error is not None

    def _follow(self) -> None:
        try:
            with self._client.beside(may_start=False) as client:
                for event in client.follow_events(after=self._after):
                    self._add(event)
                    if self._closed:
                        return
        except Broken:
            self._fail(GrassError(f"{self._client.peer} went away"))
        except GrassError as error:
            self._fail(error)

    def _add(self, event: Document) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()

    def _fail(self, error: GrassError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()


def watch(client: Client, view: ShowView, form: Form, pause_s: float) -> None:
    """Draw a view again whenever something happens; ends only by an interrupt."""
    screen = this_screen()
    if isinstance(form, AsText) and screen.width is not None and _can_move():
        with _Terminal():
            _Watch(client, view, pause_s).draw_forever()
    client.outage.tell = warn
    separator = "" if isinstance(form, AsJson) else "\n"
    _Watch(client, view, pause_s).print_forever(form, separator)


class _Watch:
    """A view that is drawn again and again."""

    def __init__(self, client: Client, view: ShowView, pause_s: float) -> None:
        self._client = client
        self._view = view
        self._pause_s = pause_s
        self._read_at = 0.0
        self._document: Document = {}
        self._collector = EventCollector(client)

    def draw_forever(self) -> None:
        """Draw on a terminal, every second also without an event, for the ages."""
        self._client.outage.tell = self._draw
        self._document = self._read()
        while True:
            self._draw(self._client.outage.told)
            if self._happened(_TICK_S):
                self._document = self._read()

    def _draw(self, trouble: str) -> None:
        if not self._document:
            return  # Nothing was read yet.
        sys.stdout.write(frame(self._view, self._document, trouble))
        sys.stdout.flush()

    def print_forever(self, form: Form, separator: str) -> None:
        """Print one frame after the other."""
        form.write(self._view, self._read(), this_screen())
        sys.stdout.flush()
        while True:
            if self._happened(None):
                sys.stdout.write(separator)
                form.write(self._view, self._read(), this_screen())
                sys.stdout.flush()

    def _happened(self, wait_s: float | None) -> bool:
        """Wait for an event, and for the least time between two drawings."""
        if not self._collector.take(wait_s):
            return False
        time.sleep(max(0.0, self._read_at + self._pause_s - time.monotonic()))
        self._collector.take(0)
        return True

    def _read(self) -> Document:
        self._read_at = time.monotonic()
        document = self._view.read(self._client)
        if "jobs" in document:
            document["jobs"] = list(document["jobs"])
        return document


class _Terminal:
    """The terminal's alternate screen, for as long as a block lasts."""

    def __enter__(self) -> Self:
        import signal

        signal.signal(signal.SIGTERM, _leave)
        signal.signal(signal.SIGHUP, _leave)
        os.write(1, _OPEN.encode())
        return self

    def __exit__(self, *_error: object) -> None:
        sys.stdout.flush()
        os.write(1, _CLOSE.encode())


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(_TERMINATED)


def _can_move() -> bool:
    return os.environ.get("TERM", "dumb") != "dumb"


def frame(view: ShowView, document: Document, trouble: str = "") -> str:
    """Return a frame that fits the screen, always with the summary line.

    Below it is the reason why it may be out of date.
    """
    size = os.get_terminal_size(1)
    # A terminal that does not know its size says 0.
    width, height = size.columns or _USUAL_SIZE[0], size.lines or _USUAL_SIZE[1]
    screen = Screen(width, colours=this_screen().colours)
    lines = printable(view.text(document, screen)).rstrip("\n").split("\n")
    below = [cut(safe(trouble), width)] if trouble else []
    height = max(_LEAST_HEIGHT, height - len(below))
    if len(lines) > height:
        left_out = len(lines) - height + 1
        lines[height - 2 : -1] = [f"... {left_out} more lines"]
    drawn = "\n".join(line + _TO_LINE_END for line in (*lines, *below))
    return _HOME + drawn + _TO_SCREEN_END
