"""What a job writes, read in a thread of its own until it is closed.

It begins with the last lines, and with their numbers where they are asked for. After
an interruption, and with every new attempt, it begins anew: `take` then tells that what
was taken before is to be forgotten.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

from grass.cli.printing.wording import ENDED_STATES
from grass.client.json_codec import Document, query
from grass.client.long_calls import follow_output
from grass.errors import GrassError
from grass.tui.reader import AWAY, Connect, Reader, ReadingThread, why_lost

PAGE = 1_000
"""Lines that are read at a time of what was written before."""
AGAIN_S = 1.0
MOST_WAITING = 1 << 22
"""In bytes: beyond what so much waits to be taken, no more is read."""


class NewOutput(NamedTuple):
    """What has come since the last look."""

    data: bytes
    is_anew: bool
    """Whether it begins anew."""
    first: int | None
    """The number of the first line since it began anew; None: it is not known."""
    note: str
    """Why no more comes, or comes now; empty: more may come."""
    is_over: bool


class OutputFollower:
    """The output of one job, as it is written."""

    def __init__(
        self, connect: Connect, job: int, tail: int = PAGE, *, numbered: bool = False
    ) -> None:
        self.job = job
        self._tail = tail
        self._numbered = numbered
        self._changed = threading.Condition()
        self._pieces: list[bytes] = []
        self._is_anew = True
        self._first: int | None = None
        self._note = ""
        self._is_over = False
        self._is_closed = False
        self._thread = ReadingThread(connect, self._follow)

    def close(self) -> None:
        """Read no more; the thread ends by itself."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.break_off()

    def join(self) -> None:
        """Wait for the thread's end."""
        self.close()
        self._thread.join()

    def take(self) -> NewOutput:
        """Return what was written since the last call."""
        with self._changed:
            data, self._pieces = b"".join(self._pieces), []
            self._changed.notify_all()
            # What is known stays on the screen until something takes its place.
            anew = self._is_anew and bool(data)
            self._is_anew = self._is_anew and not data
            return NewOutput(data, anew, self._first, self._note, self._is_over)

    def _follow(self, reader: Reader) -> None:
        while not self._is_closed and not self._is_over:
            try:
                self._read_to_end(reader)
            except AWAY as error:
                reader.close()
                self._note = why_lost(error)
                self._rest()
                self._begin_anew(None)
            except GrassError as error:
                self._end(why_lost(error))

    def _read_to_end(self, reader: Reader) -> None:
        attempt = self._read_last(reader) if self._numbered else None
        if attempt is None:
            for piece in reader.output(self.job, follow=True, tail=self._tail):
                self._add(piece)
            self._end("")
            return
        for piece in self._rest_of(reader, attempt):
            self._add(piece)
        while not self._is_closed:
            job = reader.job(self.job)
            if job["state"] in ENDED_STATES:
                self._end("")
                return
            if job["attempts"][-1]["number"] != attempt["attempt"]:
                return
            self._rest()

    def _read_last(self, reader: Reader) -> Document | None:
        """Read the last lines with their numbers; None: there are none yet."""
        page: Document | None = None
        for numbered in (None, 1):
            asked = {"from": "end", "count": self._tail, "numbered": numbered}
            try:
                page = reader.read(f"/jobs/{self.job}/lines" + query(**asked))
            except AWAY:
                raise
            except GrassError:
                return None
            self._begin_anew(page["first"])
            # What follows may go on with the last line.
            end = "" if page["open"] else "\n"
            self._add(
                ("\n".join(page["lines"]) + end).encode() if page["lines"] else b""
            )
            if page["first"] is not None:
                break
        return page

    def _rest_of(self, reader: Reader, page: Document) -> Iterator[bytes]:
        """Follow an attempt from the end of a page on."""
        begin = f"{page['attempt']}:{page['end']}"
        wanted = {"follow": "1", "attempt": page["attempt"], "begin": begin}
        return follow_output(
            reader, f"/jobs/{self.job}/output", wanted, lambda _job: None
        )

    def _add(self, piece: bytes) -> None:
        with self._changed:
            self._note = ""
            if piece:
                self._pieces.append(piece)
            self._changed.wait_for(lambda: self._is_closed or not self._is_full())

    def _is_full(self) -> bool:
        return sum(map(len, self._pieces)) > MOST_WAITING

    def _begin_anew(self, first: int | None) -> None:
        with self._changed:
            self._pieces, self._is_anew, self._first = [], True, first

    def _rest(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, AGAIN_S)

    def _end(self, note: str) -> None:
        with self._changed:
            self._note, self._is_over = note, True
