"""`python -m benchmarks.follower_process URL COUNT`: reads as so many tabs do.

URL is a link that `POST /web` answers with: it logs in, and all calls have its cookie.
Every tab has a stream of its own, of which it drops what it gets, and makes the calls
that the overview makes beside it: when running jobs may end, and why others wait. Which
jobs these are is read from the stream of one tab. A line is printed once each has
got its first frame, and at the end, when stdin is closed, how many bytes the streams
had, how many calls were made, and how many overviews a second one tab got.
"""

import http.client
import json
import selectors
import socket
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

TOPICS = "overview,jobs,devices,events"
_API = "/api/v1"
_RUNNING, _WAITING = 12, 5
"""How many jobs of either kind the overview asks about."""
_PAUSE_S, _SLOWER = 1.0, 10
"""A tab rests so long after its calls, and so many times as long as they took."""
_PIECE = 1 << 18


class Shown:
    """The jobs that the overview shows now, and whether it is over."""

    def __init__(self) -> None:
        self.running: list[int] = []
        self.waiting: list[int] = []
        self.begun, self.over = threading.Event(), threading.Event()
        self.calls = self.frames = 0
        self.began = time.perf_counter()
        self._rest = b""

    @property
    def frames_per_s(self) -> float:
        """How many overviews came in a second, in the middle."""
        return self.frames / (time.perf_counter() - self.began)

    def take(self, data: bytes) -> None:
        """Read the overviews in a piece of a stream."""
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        told = [one for one in frames if b"event: overview\n" in one]
        self.frames += len(told)
        if told:
            jobs = json.loads(told[-1].partition(b"data: ")[2])["jobs"]
            ids = [(one["id"], one["state"]) for one in jobs]
            self.running = [id for id, at in ids if at == "running"][:_RUNNING]
            self.waiting = [id for id, at in ids if at == "queued"][:_WAITING]
            self.begun.set()


class Tab:
    """The calls of one tab, over a connection of its own."""

    def __init__(self, netloc: str, headers: dict[str, str], shown: Shown) -> None:
        self._connection = http.client.HTTPConnection(netloc)
        self._headers, self._shown = headers, shown
        self._known: set[int] = set()
        self._waiting: list[int] = []

    def run(self) -> None:
        """Make the calls again and again."""
        self._shown.begun.wait()
        took_s = self._look()
        while not self._shown.over.wait(max(_PAUSE_S, _SLOWER * took_s)):
            took_s = self._look()

    def _look(self) -> float:
        """Make the calls that are due, and return how long they took."""
        began = time.perf_counter()
        self._estimate()
        self._explain()
        return time.perf_counter() - began

    def _estimate(self) -> None:
        running = self._shown.running
        for id in [one for one in running if one not in self._known]:
            self._call("POST", "/jobs/estimate", {"select": [str(id)]})
        self._known = set(running)

    def _explain(self) -> None:
        if self._shown.waiting != self._waiting:
            self._waiting = self._shown.waiting
            for id in self._waiting:
                self._call("GET", f"/jobs/{id}/explain", None)

    def _call(self, method: str, path: str, body: Any) -> None:
        data = None if body is None else json.dumps(body)
        self._connection.request(method, _API + path, data, self._headers)
        self._connection.getresponse().read()
        self._shown.calls += 1


def main() -> None:
    """Follow until stdin is closed."""
    url, count = urlsplit(sys.argv[1]), int(sys.argv[2])
    headers = _logged_in(url.netloc, f"{url.path}?{url.query}")
    chosen, shown = selectors.DefaultSelector(), Shown()
    ask = f"GET {_API}/stream?topics={TOPICS} HTTP/1.1\r\nHost: {url.netloc}\r\n"
    ask += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    for _ in range(count):
        connection = socket.create_connection((url.hostname, url.port))
        connection.sendall(ask.encode())
        chosen.register(connection, selectors.EVENT_READ, connection)
    chosen.register(sys.stdin, selectors.EVENT_READ, None)
    tabs = [Tab(url.netloc, headers, shown) for _ in range(count)]
    threads = [threading.Thread(target=tab.run) for tab in tabs]
    for thread in threads:
        thread.start()
    try:
        got = _follow(chosen, count, shown)
        frames_per_s = shown.frames_per_s
    finally:
        shown.over.set()
        shown.begun.set()
    for thread in threads:
        thread.join()
    print(got, shown.calls, f"{frames_per_s:.2f}")


def _logged_in(netloc: str, path: str) -> dict[str, str]:
    """Return the headers of a tab that is logged in."""
    connection = http.client.HTTPConnection(netloc)
    connection.request("GET", path)
    cookie = connection.getresponse().getheader("set-cookie", "").partition(";")[0]
    connection.close()
    return {
        "Cookie": cookie,
        "Origin": f"http://{netloc}",
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json",
    }


def _follow(chosen: selectors.DefaultSelector, count: int, shown: Shown) -> int:
    got, begun, first = 0, set[int](), -1
    while True:
        for key, _ in chosen.select():
            if key.data is None:
                return got
            data = key.data.recv(_PIECE)
            if not data:
                raise SystemExit("a stream ended")
            got += len(data)
            first = key.fd if first < 0 else first
            if key.fd == first:
                shown.take(data)
            if len(begun) < count and b"event: overview" in data:
                begun.add(key.fd)
                if len(begun) == count:
                    print("ready", flush=True)


if __name__ == "__main__":
    main()
