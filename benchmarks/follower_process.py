"""`python -m benchmarks.follower_process SOCKET COUNT`: reads as so many pages do.

Every follower is a connection of its own that follows what a page follows, and drops
what it gets. A line is printed once each has got its first frame, and at the end, when
stdin is closed, how many bytes they got.
"""

import selectors
import socket
import sys

TOPICS = "overview,jobs,devices,events"
_ASK = f"GET /api/v1/stream?topics={TOPICS} HTTP/1.1\r\nHost: grass\r\n\r\n"
_PIECE = 1 << 18


def main() -> None:
    """Follow until stdin is closed."""
    path, count = sys.argv[1], int(sys.argv[2])
    chosen = selectors.DefaultSelector()
    for _ in range(count):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        connection.sendall(_ASK.encode())
        chosen.register(connection, selectors.EVENT_READ, connection)
    chosen.register(sys.stdin, selectors.EVENT_READ, None)
    print(_follow(chosen, count))


def _follow(chosen: selectors.DefaultSelector, count: int) -> int:
    got, begun = 0, set[int]()
    while True:
        for key, _ in chosen.select():
            if key.data is None:
                return got
            data = key.data.recv(_PIECE)
            if not data:
                raise SystemExit("a stream ended")
            got += len(data)
            if len(begun) < count and b"event: overview" in data:
                begun.add(key.fd)
                if len(begun) == count:
                    print("ready", flush=True)


if __name__ == "__main__":
    main()
