"""A daemon on a real socket that says what a test has written down for it."""

import json
import socket
import threading
from pathlib import Path
from typing import Any

CUT = b"<hangs up>"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Daemon:
    """Answers each request with the next reply; one that ends in CUT is the last."""

    def __init__(self, path: Path, replies: list[bytes]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._replies = iter(replies)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return
            with channel, channel.makefile("rb") as stream:
                while self._answer(channel, stream):
                    pass

    def _answer(self, channel: socket.socket, stream: Any) -> bool:
        first = stream.readline()
        if not first:
            return False
        size = 0
        while (line := stream.readline().strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                size = int(line.partition(b":")[2])
        body = json.loads(stream.read(size) or b"null")
        self.requests.append({"line": first.decode().strip(), "body": body})
        reply = next(self._replies)
        channel.sendall(reply.removesuffix(CUT))
        return not reply.endswith(CUT)


def sized(body: bytes, status: str = "200 OK") -> bytes:
    """Write a reply that has a length."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status.encode(),
        len(body),
        body,
    )
