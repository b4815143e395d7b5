"""The blocking client: one method for each thing a daemon can be asked.

A client connects when it is first used, starting a daemon if need be, and keeps its
connection. A call that a restart of the daemon cut off is sent again where that cannot
do harm: an enqueue carries a key by which the daemon knows it, and reading changes
nothing. Replies are the API's documents.
"""

from __future__ import annotations

import os
import time

from grass.client import autostart
from grass.client.connection import Broken, Connection, quoted
from grass.client.surroundings import (
    caller_directory,
    caller_environment,
    caller_umask,
)
from grass.config import Home, home
from grass.errors import NoDaemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Self, TypeVar

    from grass.client.wire import Document

    T = TypeVar("T")

PATIENCE_S = 30.0
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_PAGE = 1000


class Client:
    """A caller's way to the daemon of one state directory."""

    def __init__(self, place: Home | None = None, *, may_start: bool = True) -> None:
        """Choose the daemon; nothing is connected yet."""
        self.home = home() if place is None else place
        self._connect = autostart.connect if may_start else autostart.connect_running
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Hang up."""
        self.close()

    def close(self) -> None:
        """Hang up; a later call connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def enqueue(self, command: Sequence[str] | str, **settings: object) -> int:
        """Add one job and return its id once it is durable."""
        return int(self.enqueue_many([command], **settings)["first"])

    def enqueue_many(
        self, commands: Iterable[Sequence[str] | str], **settings: object
    ) -> Document:
        """Add jobs with the same settings, all or none; gives `first` and `last`."""
        jobs = [
            {"command": one if isinstance(one, str) else list(one)} for one in commands
        ]
        return self.enqueue_jobs(jobs, settings)

    def enqueue_jobs(self, jobs: list[Document], defaults: Document) -> Document:
        """Add jobs given as documents; what one leaves out is taken from `defaults`."""
        body = {
            "jobs": jobs,
            "defaults": defaults,
            "key": os.urandom(16).hex(),
            "environment": caller_environment(os.environ),
            "directory": caller_directory(),
            "umask": caller_umask(),
        }
        return self._patiently(lambda: self._once("POST", "/jobs", body))

    def overview(self, queue: str | None = None) -> Document:
        """Read the daemon, workers, queues, and the jobs worth looking at."""
        return self._read("/overview" + _query(queue=queue))

    def jobs(
        self, *, states: Sequence[str] = (), queue: str | None = None
    ) -> Iterator[Document]:
        """Read all jobs, the oldest first, a page at a time."""
        after = None
        while True:
            wanted = _query(
                queue=queue, order="oldest", limit=_PAGE, after=after, state=states
            )
            page = self._read("/jobs" + wanted)
            yield from page["jobs"]
            after = page["next"]
            if after is None:
                return

    def job(self, selector: int | str) -> Document:
        """Read the one job that a selector names."""
        return self._read(f"/jobs/{quoted(str(selector))}")

    def output(
        self,
        selector: int | str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        stderr: bool = False,
    ) -> Iterator[bytes]:
        """Read what a job wrote; with `follow`, until it has ended.

        Following survives a restart of the daemon, so it needs an id for a selector.
        """
        wanted = _query(
            follow="1" if follow else None,
            attempt=attempt,
            stream="stderr" if stderr else None,
        )
        path = f"/jobs/{quoted(str(selector))}/output{wanted}"
        return self._followed(path) if follow else self._again(self._stream(path))

    def cancel(
        self, select: Sequence[str], *, grace_s: float | None = None, signal: int = 15
    ) -> Document:
        """End jobs; answered once the wish is durable, not when they are gone."""
        body = {"select": list(select), "grace_s": grace_s, "signal": signal}
        return self._write("POST", "/jobs/cancel", body)

    def wait(
        self, select: Sequence[str], timeout_s: float | None = None
    ) -> list[Document]:
        """Return the selected jobs once all have ended."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s

        def once() -> list[Document]:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            body = {"select": list(select), "timeout_s": left}
            found: list[Document] = self._once("POST", "/jobs/wait", body)["jobs"]
            return found

        # After a restart `all` or `last` may mean other jobs; ids do not.
        named_by_id = all(one.replace("-", "").isdecimal() for one in select)
        return self._patiently(once) if named_by_id else self._only_once(once)

    def queue(self, name: str) -> Document:
        """Read a queue's name, prefix and whether it is paused."""
        return self._read(f"/queues/{quoted(name)}")

    def create_queue(self, name: str, body: Document) -> Document:
        """Create a queue; the same again is fine."""
        return self._again(lambda: self._once("PUT", f"/queues/{quoted(name)}", body))

    def delete_queue(self, name: str) -> Document:
        """Remove a queue that has no unfinished jobs."""
        return self._write("DELETE", f"/queues/{quoted(name)}")

    def pause(self, queue: str | None = None) -> Document:
        """Start no more jobs, of one queue or of all."""
        return self._write("POST", "/pause", {"queue": queue})

    def resume(self, queue: str | None = None) -> Document:
        """Start jobs again."""
        return self._write("POST", "/resume", {"queue": queue})

    def stop(self, *, jobs: bool = False) -> Document:
        """Have the daemon stop; `jobs` ends the running ones first."""
        return self._write("POST", "/daemon/stop", {"jobs": jobs})

    def prune(self, older_s: float, *, dry_run: bool = False) -> Document:
        """Forget jobs that ended that long ago, with their output."""
        body = {"older_s": older_s, "dry_run": dry_run}
        return self._write("POST", "/jobs/prune", body)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect(self.home)
        return self._connection

    def _once(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        try:
            return self._connected().exchange(method, path, body)
        except Broken:
            self.close()
            raise

    def _stream(self, path: str) -> Callable[[], Iterator[bytes]]:
        def call() -> Iterator[bytes]:
            try:
                return self._connected().stream("GET", path)
            except Broken:
                self.close()
                raise

        return call

    def _followed(self, path: str) -> Iterator[bytes]:
        seen = 0
        while True:
            known = seen
            try:
                for piece in self._patiently(self._stream(path)):
                    fresh = piece[known:]
                    known -= len(piece) - len(fresh)
                    seen += len(fresh)
                    yield fresh
            except Broken:
                self.close()
            else:
                return

    def _read(self, path: str) -> Document:
        return self._again(lambda: self._once("GET", path))

    def _write(self, method: str, path: str, body: object = None) -> Document:
        return self._only_once(lambda: self._once(method, path, body))

    def _only_once(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except Broken:
            raise _interrupted() from None

    def _again(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except Broken:
            return self._only_once(call)

    def _patiently(self, call: Callable[[], T]) -> T:
        """Repeat a call that broke off until a daemon has answered it."""
        deadline, pause = None, _FIRST_PAUSE_S
        while True:
            began = time.monotonic()
            try:
                return call()
            except Broken:
                now = time.monotonic()
                if deadline is None or now - began > PATIENCE_S:
                    deadline, pause = now + PATIENCE_S, _FIRST_PAUSE_S
            except NoDaemon:
                # Somebody else may be about to start it, but not after `grass stop`.
                if deadline is None or os.path.exists(self.home.stopped):
                    raise
            if time.monotonic() > deadline:
                raise _interrupted() from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _interrupted() -> NoDaemon:
    return NoDaemon(
        "the daemon went away before it answered", "see `grass show`, then try again"
    )


def _query(**fields: object) -> str:
    pairs = []
    for name, value in fields.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs += [f"{name}={quoted(str(one))}" for one in values if one is not None]
    return "?" + "&".join(pairs) if pairs else ""
