"""Streams that go on, also over a restart of the daemon."""

from __future__ import annotations

import time

from grass.client.caller import query
from grass.client.connection import Broken
from grass.client.wire import decoded
from grass.errors import Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grass.client.caller import Caller
    from grass.client.wire import Document

LOOK_S = 1.0
"""How often to ask whether a worker is back."""


def follow_output(
    caller: Caller,
    path: str,
    wanted: dict[str, object],
    on_away: Callable[[Document], None],
) -> Iterator[bytes]:
    """Give what a job writes until it has ended.

    After a break the daemon is asked to begin where it began the first time, also if
    that was some lines from an end that has moved since; what was seen is left out.
    While the job's worker is unreachable it is waited for; `on_away` is told the job.
    """
    seen, cut_off_at = 0, None
    while True:
        known = seen
        headers, pieces = _reached(caller, path, wanted, cut_off_at, on_away)
        if "grass-begin" in headers:
            wanted = {**wanted, "tail": None, "begin": headers["grass-begin"]}
        try:
            for piece in pieces:
                fresh = piece[known:]
                known -= len(piece) - len(fresh)
                seen += len(fresh)
                yield fresh
        except Broken:
            caller.close()
            cut_off_at = time.monotonic()
        else:
            return


def _reached(
    caller: Caller,
    path: str,
    wanted: dict[str, object],
    cut_off_at: float | None,
    on_away: Callable[[Document], None],
) -> tuple[dict[str, str], Iterator[bytes]]:
    """Begin to read, once the job's worker can be asked."""
    given_up = False
    while True:
        try:
            return _open(caller, path + query(**wanted), cut_off_at)
        except Unreachable:
            # It may be back by now; but what has ended is not waited for.
            if given_up:
                raise
            given_up = not _await_worker(caller, path, on_away)


def _await_worker(
    caller: Caller, path: str, on_away: Callable[[Document], None]
) -> bool:
    """Wait while a running job's worker is unreachable; tell whether it was."""
    job = _job(caller, path)
    if not job.get("unreachable"):
        return False
    on_away(job)
    while job.get("unreachable"):
        time.sleep(LOOK_S)
        job = _job(caller, path)
    return True


def _job(caller: Caller, path: str) -> Document:
    path = path.removesuffix("/output")
    document: Document = caller.patiently(
        lambda: caller.once("GET", path), time.monotonic()
    )
    return document


def follow_events(
    caller: Caller, after: int | None, wanted: dict[str, object]
) -> Iterator[Document]:
    """Give events as they are written, until the daemon was stopped for good."""
    last, cut_off_at = after, None
    while True:
        path = "/events/stream" + query(after=last, **wanted)
        _, pieces = _open(caller, path, cut_off_at)
        try:
            for fields in _messages(pieces):
                if b"id" in fields:
                    last = int(fields[b"id"])
                if b"data" in fields:
                    yield decoded(fields[b"data"])
        except Broken:
            pass
        # What ended is the daemon, not the journal: another one may take over.
        caller.close()
        cut_off_at = time.monotonic()


def _open(
    caller: Caller, path: str, cut_off_at: float | None
) -> tuple[dict[str, str], Iterator[bytes]]:
    return caller.patiently(lambda: caller.stream(path), cut_off_at)


def _messages(pieces: Iterator[bytes]) -> Iterator[dict[bytes, bytes]]:
    """Take server-sent events apart; each ends with an empty line."""
    unread = b""
    for piece in pieces:
        *whole, unread = (unread + piece).split(b"\n\n")
        for text in whole:
            lines = (line.partition(b": ") for line in text.split(b"\n"))
            yield {name: value for name, _, value in lines}
