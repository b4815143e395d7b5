"""Pieces of input for a job, from the worker to the job's host, and what is pending.

Each piece has an offset, so one that is sent again, as after a restart of the daemon,
is not taken twice. An answer is given when a piece was taken, so input that the program
does not read holds its sender up, and no memory is used for it. Only the standard
library is imported, because the host runs under the keeper.
"""

from __future__ import annotations

import errno
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import socket

MOST_PENDING = 256 * 1024
"""How many bytes may wait for the program to read them."""
LARGEST_PIECE = 64 * 1024
LONGEST_HEADER = 1024
ANSWER_S = 10.0
"""After this time a piece is answered though nothing of it was taken."""
MOST_SENDERS = 64


class Piece(NamedTuple):
    """Input for the program."""

    sender: str
    """Who counts the offsets; each sender begins at 0."""
    offset: int
    length: int
    end: bool = False
    """Whether the program's stdin ends after it."""
    window: tuple[int, int] | None = None
    """The size that the terminal has from now on: rows and columns."""

    def header(self) -> bytes:
        """Write what comes before the bytes themselves."""
        return json.dumps(self).encode() + b"\n"


class Taken(NamedTuple):
    """The answer: up to which offset everything was taken."""

    offset: int
    closed: bool = False
    """Whether the program takes no more input."""

    def line(self) -> bytes:
        """Write the answer."""
        return json.dumps(self).encode() + b"\n"


class Pending:
    """Input that was taken and that the program has not read yet."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False
        self.closed = False
        self._taken: dict[str, int] = {}

    def take(self, piece: Piece, data: bytes) -> bool:
        """Take what is new of a piece and fits; tell whether that is an answer.

        A piece that begins later than what is known has lost its beginning, and
        nothing of it is taken: the answer says where to begin.
        """
        known = self._taken.get(piece.sender, 0)
        fresh = data[known - piece.offset :] if piece.offset <= known else b""
        room = max(0, MOST_PENDING - len(self.data))
        if not self.closed and not self.ended:
            self.data += fresh[:room]
        self._note(piece.sender, known + len(fresh[:room]))
        complete = len(fresh) <= room and piece.offset <= known
        self.ended = self.ended or (piece.end and complete)
        return bool(room) or complete or self.closed

    def taken(self, sender: str) -> Taken:
        """Return up to where the input of a sender was taken."""
        return Taken(self._taken.get(sender, 0), self.closed or self.ended)

    def _note(self, sender: str, offset: int) -> None:
        self._taken.pop(sender, None)
        self._taken[sender] = offset
        if len(self._taken) > MOST_SENDERS:
            del self._taken[next(iter(self._taken))]


class Sender:
    """A connection: it sends one piece and gets one answer."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.since = time.monotonic()
        self._received = b""
        self._piece: Piece | None = None

    def read(self) -> tuple[Piece, bytes] | None:
        """Return the piece once it is complete; raises OSError at a broken one."""
        if self._piece is None:
            self._receive()
            header, newline, rest = self._received.partition(b"\n")
            if not newline:
                self._check(len(header) <= LONGEST_HEADER)
                return None
            self._piece, self._received = self._parsed(header), rest
        elif len(self._received) < self._piece.length:
            self._receive()
        if len(self._received) < self._piece.length:
            return None
        return self._piece, self._received[: self._piece.length]

    def _receive(self) -> None:
        more = self.channel.recv(LARGEST_PIECE)
        self._check(bool(more))
        self._received += more

    def answer(self, taken: Taken) -> None:
        """Send the answer."""
        with suppress(OSError):
            self.channel.send(taken.line())

    def _parsed(self, header: bytes) -> Piece:
        try:
            piece = Piece(*json.loads(header))
            self._check(0 <= piece.length <= LARGEST_PIECE and piece.offset >= 0)
        except (ValueError, TypeError):
            raise _not_a_piece() from None
        return piece

    def _check(self, good: bool) -> None:
        if not good:
            raise _not_a_piece()


def _not_a_piece() -> OSError:
    return OSError(errno.EPROTO, "not a piece of input")
