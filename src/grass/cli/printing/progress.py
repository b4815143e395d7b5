"""The line that `wait` shows on a terminal: how many are done, running and waiting.

It is drawn by a thread with a connection of its own. It reads the jobs once, and from
then on only those that have an event, or whose worker has one. For `all` it reads the
daemon's counts. An error here ends the line, never the waiting.
"""

from __future__ import annotations

import os
import threading

from grass.cli.printing.event_collector import EventCollector
from grass.cli.printing.streams import counted, warn
from grass.cli.printing.styled import cut
from grass.cli.printing.wording import UNFINISHED_STATES
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.id_ranges import as_ranges
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from grass.client.json_codec import Document

_PAUSE_S = 0.5
_CLEAR = "\r\x1b[K"
_STDERR = 2
_CHUNK = 50
_OF_WORKERS = frozenset({"worker-connected", "worker-disconnected"})
UNREACHABLE = "running, its worker unreachable"


class Progress:
    """Shows how far jobs are, for as long as a `with` block lasts."""

    def __init__(self, client: Client, select: Sequence[str]) -> None:
        self._client = client
        self._select = list(select)
        self._states: dict[int, str] = {}
        self._line = ""
        self._collector: EventCollector | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        """Begin to draw."""
        with CtrlCForMain():
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the line."""
        self._ended.set()
        if self._collector is not None:
            self._collector.close()
        self._thread.join(_PAUSE_S)
        _draw("")

    def interject(self, text: str) -> None:
        """Print a warning above the line."""
        _draw("")
        warn(text)
        if not self._ended.is_set():
            _draw(self._line)

    def _run(self) -> None:
        try:
            with self._client.beside(may_start=False) as client:
                self._collector = EventCollector(client)
                if self._select == ["all"]:
                    self._count(client)
                    return
                self._read_all(client)
                self._keep_up(client)
        except (GrassError, Broken, OSError):
            _draw("")

    def _count(self, client: Client) -> None:
        assert self._collector is not None
        before = client.overview()
        now = before
        while not self._ended.is_set():
            self._line = counted_line(before, now)
            _draw(self._line)
            self._collector.take(None)
            if self._ended.wait(_PAUSE_S):
                return
            self._collector.take(0)
            now = client.overview()

    def _read_all(self, client: Client) -> None:
        self._states = dict.fromkeys(client.select(self._select)["jobs"], "done")
        self._read_unfinished(client)

    def _read_unfinished(self, client: Client) -> None:
        self._note(client.jobs(states=UNFINISHED_STATES, select=self._select))

    def _keep_up(self, client: Client) -> None:
        assert self._collector is not None
        while not self._ended.is_set():
            self._line = line(self._states)
            _draw(self._line)
            events = self._collector.take(None)
            if self._ended.wait(_PAUSE_S):
                return
            events += self._collector.take(0)
            if any(event["kind"] in _OF_WORKERS for event in events):
                self._read_unfinished(client)
            touched = {event["job"] for event in events} & self._states.keys()
            ids = as_ranges(touched)
            for at in range(0, len(ids), _CHUNK):
                self._note(client.jobs(select=ids[at : at + _CHUNK]))

    def _note(self, jobs: Iterable[Document]) -> None:
        for job in jobs:
            if self._ended.is_set():
                return
            if job["id"] in self._states:
                away = job.get("unreachable")
                self._states[job["id"]] = UNREACHABLE if away else job["state"]


def line(states: Mapping[int, str]) -> str:
    """Write how many jobs are done, running and waiting."""
    found = list(states.values())
    away = found.count(UNREACHABLE)
    running = found.count("running") + away
    done = sum(state not in (*UNFINISHED_STATES, UNREACHABLE) for state in found)
    if len(found) == 1:
        return f"job {next(iter(states))} is {found[0]}"
    bad = found.count("failed") + found.count("lost")
    return _sentence(len(found), done, bad, running, away)


def counted_line(before: Document, now: Document) -> str:
    """Write the same for all jobs, from a daemon's counts at the begin and now."""
    first, counts = before["daemon"]["jobs"], now["daemon"]["jobs"]
    ends = {
        state: max(0, count - first.get(state, 0))
        for state, count in counts.items()
        if state not in UNFINISHED_STATES
    }
    left = sum(counts.get(state, 0) for state in UNFINISHED_STATES)
    done, bad = sum(ends.values()), ends.get("failed", 0) + ends.get("lost", 0)
    away = sum(bool(job.get("unreachable")) for job in now["jobs"])
    return _sentence(left + done, done, bad, counts.get("running", 0), away)


def _sentence(total: int, done: int, bad: int, running: int, away: int) -> str:
    failed = f" ({bad} failed)" if bad else ""
    lost_sight = f" ({away} unreachable)" if away else ""
    of, waiting = counted(total, "job"), total - running - done
    return (
        f"{done} of {of} done{failed}, {running} running{lost_sight}, {waiting} waiting"
    )


def _draw(text: str) -> None:
    try:
        width = os.get_terminal_size(_STDERR).columns or 80
    except OSError:
        width = 80
    os.write(_STDERR, (_CLEAR + cut(text, width - 1)).encode())
