"""A daemon played by a test: answers by route, and remembers what it was asked."""

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

Answer = Any
"""A document, or bytes to send as they are, or a function of the request's body."""

DONE = {"jobs": [7], "warnings": [], "changed": True}
PROBLEM = "problem"


def problem(code: str, detail: str, hint: str = "") -> dict[str, str]:
    """Give an error as a daemon does."""
    return {PROBLEM: code, "code": code, "detail": detail, "hint": hint}


class FakeDaemon:
    """A daemon with one answer for each route."""

    def __init__(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(home / "grass.sock"))
        self._begin(listener)

    def _begin(self, listener: socket.socket) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, Any]] = []
        """Each request: method and path, and its body."""
        self.tokens: list[str | None] = []
        """What each request showed for a token."""
        self.cut_after = 0
        """So many replies are the last of their connections."""
        self.refusal: bytes | None = None
        """Said to every request before its body is read, and then the line is cut."""
        self._open: list[socket.socket] = []
        listener.listen()
        self._listener = listener
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.stop_listening()
        self._listener.close()
        self._thread.join()

    def stop_listening(self) -> None:
        """Let no other connection in; those that are open stay."""
        self._listener.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        """Close every connection, as a daemon does with one that is idle."""
        for channel in self._open:
            channel.shutdown(socket.SHUT_WR)

    def bodies(self, route: str) -> list[Any]:
        """Return what was sent to a route."""
        return [body for asked, body in self.asked if asked == route]

    def _accept(self) -> socket.socket:
        return self._listener.accept()[0]

    def _serve(self) -> None:
        while True:
            try:
                channel = self._accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=[channel], daemon=True).start()

    def _converse(self, channel: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            channel,
            channel.makefile("rb") as stream,
        ):
            self._open.append(channel)
            while first := stream.readline():
                size, token = 0, None
                while (line := stream.readline().strip()) != b"":
                    name, _, value = line.partition(b": ")
                    if name.lower() == b"content-length":
                        size = int(value)
                    if name.lower() == b"authorization":
                        token = value.decode().removeprefix("Bearer ")
                self.tokens.append(token)
                if self.refusal is not None:
                    channel.sendall(self.refusal)
                    return
                method, path, _ = first.decode().split(" ")
                body = json.loads(stream.read(size) or b"null")
                channel.sendall(
                    self._answer(f"{method} {path[len('/api/v1') :]}", body)
                )
                if self.cut_after > 0:
                    self.cut_after -= 1
                    return

    def _answer(self, route: str, body: Any) -> bytes:
        self.asked.append((route, body))
        told = self.answers.get(
            route, problem("not-found", f"there is no answer to {route}")
        )
        if isinstance(told, list):
            told = told.pop(0)
        if callable(told):
            told = told(body)
        if isinstance(told, bytes):
            return told
        status = b"400 No" if PROBLEM in told else b"200 OK"
        text = json.dumps(told).encode()
        return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (
            status,
            len(text),
            text,
        )
