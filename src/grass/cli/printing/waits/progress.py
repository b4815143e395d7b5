"""The line that `wait` shows on a terminal: a bar, counts, and what is to be expected.

It is drawn by a thread with a connection of its own. It reads the jobs once, and from
then on only those that have an event, or whose worker has one. For `all` it reads the
daemon's counts. An error here ends the line, never the waiting.
"""

from __future__ import annotations

import os
import threading

from grass.cli.printing.event_collector import EventCollector
from grass.cli.printing.streams import counted, warn
from grass.cli.printing.styled import painted
from grass.cli.printing.waits import status_line
from grass.cli.printing.waits.outlook import Outlook
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
_TICK_S = 1.0
_CHUNK = 50
_BAR_CELLS = 20
_OF_WORKERS = frozenset({"worker-connected", "worker-disconnected"})
_FAILURES = ("failed", "lost")
UNREACHABLE = "running, its worker unreachable"


class Tally:
    """How many of the jobs are done, how many of these failed, and how many run."""

    def __init__(
        self, total: int, done: int, bad: int, running: int, away: int
    ) -> None:
        self.total = total
        self.done = done
        self.bad = bad
        self.running = running
        self.away = away

    def __str__(self) -> str:
        """Return the counts as a sentence."""
        failed = f" ({self.bad} failed)" if self.bad else ""
        lost_sight = f" ({self.away} unreachable)" if self.away else ""
        waiting = self.total - self.running - self.done
        return (
            f"{self.done} of {counted(self.total, 'job')} done{failed},"
            f" {self.running} running{lost_sight}, {waiting} waiting"
        )


class JobProgress:
    """Shows how far jobs are, for as long as a `with` block lasts."""

    def __init__(self, client: Client, select: Sequence[str]) -> None:
        self._client = client
        self._select = select
        self._states: dict[int, str] = {}
        self._drawn = ""
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
        status_line.draw("")

    def interject(self, text: str) -> None:
        """Print a warning above the line."""
        status_line.draw("")
        warn(text)
        if not self._ended.is_set():
            status_line.draw(self._drawn)

    def _run(self) -> None:
        try:
            with self._client.beside(may_start=False) as client:
                self._collector = EventCollector(client)
                outlook = Outlook(client, self._select)
                if self._select == ["all"]:
                    self._count(client, outlook)
                    return
                self._read_all(client)
                self._keep_up(client, outlook)
        except (GrassError, Broken, OSError):
            status_line.draw("")

    def _count(self, client: Client, outlook: Outlook) -> None:
        before = client.overview()
        now = before
        while not self._ended.is_set():
            counts = tally_of_all(before, now)
            left = (one for one in now["jobs"] if one["state"] in UNFINISHED_STATES)
            first = next(left, None)
            expected = outlook.text(first and first["id"], runs=counts.running > 0)
            self._draw(line(counts, f"{counts}{expected}"))
            if self._happened():
                now = client.overview()

    def _read_all(self, client: Client) -> None:
        self._states = dict.fromkeys(client.select(self._select)["jobs"], "done")
        self._note(client.jobs(states=_FAILURES, select=self._select))
        self._read_unfinished(client)

    def _read_unfinished(self, client: Client) -> None:
        self._note(client.jobs(states=UNFINISHED_STATES, select=self._select))

    def _keep_up(self, client: Client, outlook: Outlook) -> None:
        while not self._ended.is_set():
            counts = tally(self._states)
            expected = outlook.text(_next_up(self._states), runs=counts.running > 0)
            self._draw(line(counts, f"{_about(self._states, counts)}{expected}"))
            events = self._happened()
            if any(event["kind"] in _OF_WORKERS for event in events):
                self._read_unfinished(client)
            touched = {event["job"] for event in events} & self._states.keys()
            ids = as_ranges(touched)
            for at in range(0, len(ids), _CHUNK):
                self._note(client.jobs(select=ids[at : at + _CHUNK]))

    def _happened(self) -> list[Document]:
        """Return the events since the last call; none after a second without one."""
        assert self._collector is not None
        events = self._collector.take(_TICK_S)
        if not events or self._ended.wait(_PAUSE_S):
            return events
        return events + self._collector.take(0)

    def _draw(self, text: str) -> None:
        if not self._ended.is_set():
            self._drawn = text
            status_line.draw(text)

    def _note(self, jobs: Iterable[Document]) -> None:
        for job in jobs:
            if self._ended.is_set():
                return
            if job["id"] in self._states:
                away = job.get("unreachable")
                self._states[job["id"]] = UNREACHABLE if away else job["state"]


def tally(states: Mapping[int, str]) -> Tally:
    """Count how many jobs are done, running and waiting."""
    found = list(states.values())
    away = found.count(UNREACHABLE)
    running = found.count("running") + away
    done = sum(state not in (*UNFINISHED_STATES, UNREACHABLE) for state in found)
    bad = sum(map(found.count, _FAILURES))
    return Tally(len(found), done, bad, running, away)


def tally_of_all(before: Document, now: Document) -> Tally:
    """Count the same for all jobs, from a daemon's counts at the begin and now."""
    first, counts = before["daemon"]["jobs"], now["daemon"]["jobs"]
    ends = {
        state: max(0, count - first.get(state, 0))
        for state, count in counts.items()
        if state not in UNFINISHED_STATES
    }
    left = sum(counts.get(state, 0) for state in UNFINISHED_STATES)
    done, bad = sum(ends.values()), sum(ends.get(state, 0) for state in _FAILURES)
    away = sum(bool(job.get("unreachable")) for job in now["jobs"])
    return Tally(left + done, done, bad, counts.get("running", 0), away)


def line(counts: Tally, text: str) -> str:
    """Lay out the line for this terminal, with a bar where there are several jobs."""
    shown = bar(counts.done, counts.total) if counts.total > 1 else ""
    rest = status_line.fitted(text, used=len(shown) + bool(shown))
    if shown and "NO_COLOR" not in os.environ:
        shown = painted(shown, "green")
    return f"{shown} {rest}" if shown else rest


def bar(done: int, total: int) -> str:
    """Draw what part of jobs is done; full only when all of them are."""
    filled = done * _BAR_CELLS // total
    signs = status_line.signs()
    return signs.full * filled + signs.empty * (_BAR_CELLS - filled)


def _about(states: Mapping[int, str], counts: Tally) -> str:
    if len(states) > 1:
        return str(counts)
    return "".join(f"job {number} is {state}" for number, state in states.items())


def _next_up(states: Mapping[int, str]) -> int | None:
    """Return the first job that has not ended."""
    return next((job for job in states if states[job] in UNFINISHED_STATES), None)
