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


class FarEnd:
    """A daemon that knows only what it is told: the answer to each route."""

    def __init__(self, home: Path) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, Any]] = []
        """Each request: method and path, and its body."""
        home.mkdir(exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(home / "grass.sock"))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def bodies(self, route: str) -> list[Any]:
        """Return what was sent to a route."""
        return [body for asked, body in self.asked if asked == route]

    def _serve(self) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=[channel], daemon=True).start()

    def _converse(self, channel: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            channel,
            channel.makefile("rb") as stream,
        ):
            while first := stream.readline():
                size = 0
                while (line := stream.readline().strip().lower()) != b"":
                    if line.startswith(b"content-length:"):
                        size = int(line.partition(b":")[2])
                method, path, _ = first.decode().split(" ")
                body = json.loads(stream.read(size) or b"null")
                channel.sendall(
                    self._answer(f"{method} {path[len('/api/v1') :]}", body)
                )

    def _answer(self, route: str, body: Any) -> bytes:
        self.asked.append((route, body))
        told = self.answers.get(route, problem("not-found", f"nobody plays {route}"))
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
