"""One HTTP/1.1 connection to a daemon: over its Unix socket, or what `remote` opens.

A connection carries one exchange at a time and is kept open between them. Replies come
with a length or in chunks; both are read as a stream. A reply that reports a problem is
raised as the error it names. A connection that breaks raises `Broken`; whether the call
may be sent again is for the caller to know.
"""

from __future__ import annotations

import _socket  # `socket` costs more to import than the exchange
import os
import sys

from grass.client.wire import decoded, encoded
from grass.errors import Forbidden, GrassError, ProtocolError, error_classes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PREFIX = "/api/v1"
LONGEST_SOCKET_PATH = 100
_PIECE = 64 * 1024
_OK = 200
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_UNRESERVED = _LETTERS + _LETTERS.upper() + b"0123456789-._~"


class Broken(Exception):
    """The daemon hung up in the middle of an exchange."""


class Connection:
    """An open connection; `open_connection` makes one."""

    NOTHING_THERE: type[OSError] = BlockingIOError
    """What reading without waiting raises when there is nothing to read."""

    def __init__(self, channel: _socket.socket) -> None:
        """Take over a connected socket."""
        self._channel = channel
        self._fields = "Host: grass\r\nContent-Type: application/json\r\n"
        self._unread = b""
        self.headers: dict[str, str] = {}
        """Those of the last reply, names in lower case."""

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def is_ready(self) -> bool:
        """Tell whether another request can be sent.

        A daemon hangs up on a connection that nobody has used for a while, and what has
        been left unread is not the next reply.
        """
        try:
            self._channel.settimeout(0)
            self._channel.recv(1)
        except self.NOTHING_THERE:
            self._channel.settimeout(None)
            return not self._unread
        except OSError:
            pass
        return False

    def exchange(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        """Send a request and read its whole reply."""
        return decoded(b"".join(self.stream(method, path, body)) or b"null")

    def stream(self, method: str, path: str, body: object = None) -> Iterator[bytes]:
        """Send a request at once and give its reply's body as it comes."""
        trouble = self._send(method, path, b"" if body is None else encoded(body))
        # Whoever does not want a body hangs up on it, but may have said why.
        status, self.headers = self._read_head()
        pieces = self._body(self.headers)
        if status != _OK:
            raise _problem(status, b"".join(pieces))
        if trouble is not None:
            raise Broken(str(trouble)) from trouble
        return pieces

    def _send(self, method: str, path: str, body: bytes) -> OSError | None:
        head = (
            f"{method} {PREFIX}{path} HTTP/1.1\r\n"
            f"{self._fields}Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            self._channel.sendall(head.encode("ascii") + body)
        except OSError as error:
            return error
        return None

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
        except OSError as error:
            raise Broken(str(error)) from error
        if not data:
            raise Broken("the daemon hung up")
        self._unread += data


def open_connection(path: str) -> Connection | None:
    """Connect to a socket, however long its path; None when nobody answers there."""
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
            channel.connect(path)
        else:
            _connect_from_folder(channel, path)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        channel.close()
        return None
    except OSError as error:
        channel.close()
        raise GrassError(f"{path}: {error.strerror}") from error
    _check_peer(channel, path)
    return Connection(channel)


def _check_peer(channel: _socket.socket, path: str) -> None:
    """Tell nothing, environments above all, to a stranger who listens there."""
    credentials = channel.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    uid = int.from_bytes(credentials[4:8], sys.byteorder)
    if uid not in (0, os.geteuid()):
        channel.close()
        raise Forbidden(
            f"the daemon at {path} belongs to another user (uid {uid})",
            "set GRASS_HOME to a folder of your own",
        )


def _connect_from_folder(channel: _socket.socket, path: str) -> None:
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        channel.connect(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)


def quoted(text: str) -> str:
    """Escape a word for use in a path or a query."""
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
        for byte in os.fsencode(text)
    )


def _problem(status: int, body: bytes) -> GrassError:
    try:
        told = decoded(body)
        kind = error_classes().get(told["code"], GrassError)
        return kind(told["detail"], told.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return ProtocolError(f"the daemon answered with status {status}")
