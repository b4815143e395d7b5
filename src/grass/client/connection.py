"""One HTTP/1.1 connection to a daemon: over its Unix socket, or over TLS.

A connection carries one exchange at a time and is kept open between them. Replies come
with a length or in chunks; both are read as a stream. A reply that reports a problem is
raised as the error it names. A connection that breaks raises `Broken`; `session` knows
which calls may be sent again. While nothing arrives, `patience.Silence` finds out
whether the daemon still answers.
"""

from __future__ import annotations

import _socket  # `socket` costs more to import than the exchange
import os
import sys

from grass.client.json_codec import decoded, encoded
from grass.config import API_PREFIX, OWN_HEADER
from grass.errors import (
    Forbidden,
    GrassError,
    LeadLost,
    NoAnswer,
    ProtocolError,
    error_classes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from grass.client.patience import Silence

LONGEST_SOCKET_PATH = 100
PROBE_AFTER_S = 2.0
"""After this time without a byte the daemon is probed."""
_PIECE = 64 * 1024
_OK = (200, 201)


THIS_DAEMON = "the daemon"
"""The name of this machine's own daemon in messages."""


class LastAnswer:
    """Who sent this process its last answer, for code that has no client.

    A command reports at its end which version has answered. User ids are those of this
    machine only where its own daemon has sent them.
    """

    def __init__(self) -> None:
        self.peer = ""
        """The daemon or broker, in words; empty: none has answered."""
        self.version: str | None = None
        """The version of Grass that it has."""

    def note(self, peer: str, version: str) -> None:
        """Note who has answered."""
        self.peer, self.version = peer, version


last_answer = LastAnswer()
"""That of this process."""


_CUT_OFF = b"Internal Server Error"
"""The reply that the daemon's HTTP server sends for a request which ends with it."""


class Broken(Exception):
    """The daemon closed the connection in the middle of an exchange."""


class RawBody:
    """A body that is no JSON: pieces of bytes, which are not copied."""

    def __init__(self, pieces: Sequence[bytes | memoryview]) -> None:
        self.pieces = pieces
        self.size = sum(memoryview(piece).nbytes for piece in pieces)


class HttpConnection:
    """An open connection; `open_connection` makes one."""

    NOTHING_THERE: type[OSError] = BlockingIOError
    """What reading without waiting raises when there is nothing to read."""

    def __init__(self, channel: _socket.socket) -> None:
        self._channel = channel
        self._fields = "Host: grass\r\nContent-Type: application/json\r\n"
        self._unread = b""
        self.headers: dict[str, str] = {}
        """Those of the last reply, names in lower case."""
        self.peer = "the daemon"
        """What answers, in words."""
        self.next_step = ""
        """What to do when it does not."""
        self.answer_s: float | None = None
        """How long it may be silent; None: as long as usual."""
        self.may_be_replaced = False
        """Whether another broker may lead when this one does not answer."""
        self.open_another: Callable[[], HttpConnection | None] = lambda: None
        self.tell: Callable[[str], object] = tell
        """Called with what is waited for, when that takes long."""
        self._silence: Silence | None = None
        self._may_last = False

    def watch(self, open_another: Callable[[], HttpConnection | None]) -> None:
        """Probe the daemon over another connection when nothing arrives."""
        self.open_another = open_another
        self._channel.settimeout(PROBE_AFTER_S)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def break_off(self) -> None:
        """End the connection for a thread that waits for something to arrive."""
        try:
            self._channel.shutdown(_socket.SHUT_RDWR)
        except OSError:
            """It has ended by itself."""

    def ask_this_daemon(self) -> None:
        """Have a daemon whose broker stands by answer for itself, as far as it can."""
        self._fields += f"{OWN_HEADER}: 1\r\n"

    def is_ready(self) -> bool:
        """Tell whether another request can be sent.

        A daemon closes connections that are idle for long, and bytes that were left
        unread are not the next reply.
        """
        self._may_last = False
        usual_s = self._channel.gettimeout()
        try:
            self._channel.settimeout(0)
            self._channel.recv(1)
        except self.NOTHING_THERE:
            self._channel.settimeout(usual_s)
            return not self._unread
        except OSError:
            pass
        return False

    def answers_within(self, limit_s: float) -> bool:
        """Send a request that costs nothing; tell whether a reply comes."""
        self._channel.settimeout(limit_s)
        try:
            self._channel.send(
                f"GET {API_PREFIX} HTTP/1.1\r\n{self._fields}\r\n".encode()
            )
            return bool(self._channel.recv(1))
        except OSError:
            return False

    def exchange(
        self, method: str, path: str, body: object = None, *, may_last: bool = False
    ) -> Any:  # noqa: ANN401
        """Send a request and read its whole reply.

        With `may_last` a peer that does not answer is waited for, however long.
        """
        self._may_last = may_last
        pieces = self.stream(method, path, body)
        self._may_last = may_last
        reply = b"".join(pieces)
        self._may_last = False
        return decoded(reply or b"null")

    def stream(self, method: str, path: str, body: object = None) -> Iterator[bytes]:
        """Send a request at once and return the pieces of its reply's body.

        Between the pieces a peer that does not answer is waited for, however long.
        """
        trouble = self._send(method, path, _raw(body))
        # A peer that refuses a body closes the connection, but may have sent a reason.
        status, self.headers = self._read_head()
        pieces = self._body(self.headers)
        if status not in _OK:
            reply = b"".join(pieces)
            if reply == _CUT_OFF:
                raise Broken("the daemon ended before it answered")
            raise problem_of(status, reply)
        if trouble is not None:
            raise Broken(str(trouble)) from trouble
        self._may_last = True
        return pieces

    def _send(self, method: str, path: str, body: RawBody) -> OSError | None:
        head = (
            f"{method} {API_PREFIX}{path} HTTP/1.1\r\n"
            f"{self._fields}Content-Length: {body.size}\r\n\r\n"
        ).encode("ascii")
        first, *rest = body.pieces or [b""]
        small = len(first) <= _PIECE
        pieces = [head + bytes(first), *rest] if small else [head, first, *rest]
        try:
            for piece in pieces:
                unsent = memoryview(piece).cast("B")
                while unsent:
                    unsent = unsent[self._sent(unsent) :]
        except OSError as error:
            return error
        return None

    def _sent(self, data: memoryview) -> int:
        try:
            return self._channel.send(data)
        except TimeoutError:
            self._probe()
            return 0

    def _read_head(self) -> tuple[int, dict[str, str]]:
        while b"\r\n\r\n" not in self._unread:
            self._receive()
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[1].isdecimal():
            raise ProtocolError(
                f"the daemon answered {first[:60]!r}, which is not HTTP"
            )
        fields = [line.partition(":") for line in rest]
        return int(words[1]), {name.lower(): value.strip() for name, _, value in fields}

    def _body(self, headers: dict[str, str]) -> Iterator[bytes]:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        return self._exactly(int(headers.get("content-length", "0")))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._line().partition(b";")[0], 16):
            yield from self._exactly(size)
            self._line()
        while self._line():
            pass

    def _line(self) -> bytes:
        while b"\r\n" not in self._unread:
            self._receive()
        line, _, self._unread = self._unread.partition(b"\r\n")
        return line

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._unread:
                self._receive()
            piece, self._unread = self._unread[:size], self._unread[size:]
            size -= len(piece)
            yield piece

    def _receive(self) -> None:
        try:
            data = self._channel.recv(_PIECE)
        except TimeoutError:
            self._probe()
            return
        except OSError as error:
            raise Broken(str(error)) from error
        if not data:
            raise Broken("the daemon closed the connection")
        self._silence = None
        self._unread += data

    def note_silence(self) -> None:
        """Give notice that the daemon does not answer, when that is due."""
        if self._silence is not None:
            self._silence.note()

    def _probe(self) -> None:
        """Find out whether the daemon answers.

        If it does not, raise `NoAnswer`, or `Broken` where another one may lead.
        """
        if self._silence is None:
            from grass.client.patience import Silence

            self._silence = Silence(self)
        self._silence.probe(may_last=self._may_last)


def _raw(body: object) -> RawBody:
    if isinstance(body, RawBody):
        return body
    return RawBody([] if body is None else [encoded(body)])


def open_connection(path: str) -> HttpConnection | None:
    """Connect to a socket, however long its path; None when no process listens."""
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    channel.settimeout(PROBE_AFTER_S)
    try:
        _connect(channel, path)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        channel.close()
        return None
    except OSError as error:
        channel.close()
        raise GrassError(f"{path}: {error.strerror}") from error
    pid = _check_peer(channel, path)
    connection = HttpConnection(channel)
    connection.peer = f"the daemon (pid {pid})"
    connection.next_step = (
        f"`kill -CONT {pid}` lets it go on if it was stopped; after `kill -9 {pid}`"
        " jobs go on, and the next command starts another daemon"
    )
    connection.watch(lambda: open_connection(path))
    return connection


def _check_peer(channel: _socket.socket, path: str) -> int:
    """Refuse a socket of another user, and return the daemon's pid."""
    credentials = channel.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    uid = int.from_bytes(credentials[4:8], sys.byteorder)
    if uid not in (0, os.geteuid()):
        channel.close()
        raise Forbidden(
            f"the daemon at {path} belongs to another user (uid {uid})",
            "set GRASS_HOME to a folder of your own",
        )
    return int.from_bytes(credentials[:4], sys.byteorder)


def tell(text: str) -> None:
    """Print what is waited for on stderr."""
    sys.stderr.write(f"grass: {text}\n")


def _connect(channel: _socket.socket, path: str) -> None:
    """Connect; while the socket's backlog is full, wait for room in it."""
    patience = None
    while True:
        try:
            if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
                channel.connect(path)
            else:
                _connect_from_folder(channel, path)
        except BlockingIOError:
            from grass.client.patience import LIMIT_S, Patience

            why = "many other commands wait for the daemon, too"
            patience = patience or Patience(why, LIMIT_S, tell)
            if not patience.pause():
                raise NoAnswer(
                    "the daemon accepts no connection", f"see {path}"
                ) from None
        else:
            return


def _connect_from_folder(channel: _socket.socket, path: str) -> None:
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        channel.connect(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)


def problem_of(status: int, body: bytes) -> GrassError:
    """Return the error that a reply reports."""
    try:
        document = decoded(body)
        kind = error_classes().get(document["code"], GrassError)
        error = kind(document["detail"], document.get("hint", ""))
        error.field, error.job = document.get("field", ""), document.get("job")
        if isinstance(error, LeadLost):
            error.leader = str(document.get("leader", ""))
    except (ValueError, KeyError, TypeError):
        return ProtocolError(f"the daemon answered with status {status}")
    return error
