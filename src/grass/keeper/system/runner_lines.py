"""The lines to runners: tasks are sent, answers are read, and nothing waits.

A line that is hung up, from either end, stays so; its runner is then a process like any
other. What a runner answered before counts, so its line is read once more when it is
hung up and when the runner was reaped.
"""

from __future__ import annotations

import os
import socket
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.core import keeper_events as events
from grass.keeper.protocol import Usage
from grass.keeper.runner_line import TAKEN, encoded, read_answer, task_of
from grass.keeper.system.poller import utc_us

if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.keeper.core import effects
    from grass.keeper.process_table import ProcessTable
    from grass.keeper.protocol import StartVerb
    from grass.keeper.system.poller import Feed, Poller

_CHUNK = 1 << 13
_LONGEST_ANSWER = 1 << 20


class RunnerLine:
    """The line to one runner, and what is known of that."""

    __slots__ = (
        *("attempt", "cgroup", "channel", "pid", "received"),
        *("theirs", "ticks", "told", "unsent"),
    )

    def __init__(self) -> None:
        self.channel, self.theirs = socket.socketpair()
        self.channel.setblocking(False)
        self.pid = self.ticks = 0
        self.attempt = ""
        """What it was sent last."""
        self.received = bytearray()
        self.unsent = b""
        self.cgroup: str | None = None
        self.told = False
        """Whether its last answer had the result, which is in no file then."""

    def send(self, start: StartVerb, outputs: list[int]) -> None:
        """Send a task and its output; raises OSError if the runner is gone."""
        data = encoded(task_of(start))
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", outputs))
        sent = self.channel.sendmsg([data], [rights] if outputs else [])
        self.attempt, self.unsent = start.id, data[sent:]

    def flush(self) -> None:
        """Send what did not fit before."""
        with suppress(BlockingIOError, InterruptedError):
            self.unsent = self.unsent[self.channel.send(self.unsent) :]

    def receive(self) -> bytes | None:
        """Return an answer that is complete, or nothing; None at the end."""
        try:
            chunk = self.channel.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return b""
        self.received += chunk
        if not chunk or len(self.received) > _LONGEST_ANSWER:
            return None
        if self.received[-1:] != b"\n":
            return b""
        line = bytes(self.received)
        self.received.clear()
        return line


class RunnerLines:
    """All runners of this keeper that have not ended."""

    def __init__(
        self, table: ProcessTable, remove_cgroup: Callable[[str], None]
    ) -> None:
        """Begin with none; `connect` must follow."""
        self._table = table
        self._remove_cgroup = remove_cgroup
        self._open: dict[int, RunnerLine] = {}
        self._hung_up: set[int] = set()

    def connect(
        self, poller: Poller, feed: Feed, before_answer: Callable[[int], None]
    ) -> None:
        """Set how to wait for a descriptor and where events go.

        `before_answer` is called with a runner's pid before its answer is passed on.
        """
        self._poller = poller
        self._feed = feed
        self._before_answer = before_answer

    def new(self) -> RunnerLine:
        """Make the line to a runner that is to be started; raises OSError."""
        line = RunnerLine()
        try:
            self._poller.watch(line.channel.fileno(), lambda: self._ready(line))
        except OSError:
            line.channel.close()
            line.theirs.close()
            raise
        return line

    def drop(self, line: RunnerLine) -> None:
        """Close the line to a runner that could not be started."""
        self._poller.unwatch(line.channel.fileno())
        line.channel.close()

    def started(self, line: RunnerLine, start: StartVerb, pid: int, ticks: int) -> None:
        """Send a new runner its first task."""
        line.pid, line.ticks = pid, ticks
        self._open[pid] = line
        with suppress(OSError):
            # One that has ended already is reaped soon.
            line.send(start, [])
            self._watch_rest(line)

    def hand(self, pid: int, start: StartVerb, outputs: list[int]) -> RunnerLine | None:
        """Send a task to an idle runner; None if it is gone."""
        line = self._open.get(pid)
        if line is None:
            return None
        try:
            line.send(start, outputs)
        except OSError:
            self._close(line)
            return None
        self._watch_rest(line)
        self._table.apart.discard(pid)
        return line

    def _watch_rest(self, line: RunnerLine) -> None:
        if line.unsent:
            self._poller.watch_writable(line.channel.fileno(), wanted=True)

    def hang_up(self, effect: effects.HangUp) -> events.Answered | None:
        """End a line; the runner reads that, at the latest after its task.

        Returns what it had answered that was not read before: its task is done then,
        whatever signal ends the runner.
        """
        line = self._open.get(effect.pid)
        if line is None:
            return None
        answered = self._read(line)
        if effect.taken and line.told:
            with suppress(OSError):
                line.channel.send(TAKEN)
        self._close(line)
        return answered

    def _close(self, line: RunnerLine) -> None:
        if self._open.pop(line.pid, None) is not None:
            self._poller.unwatch(line.channel.fileno())
            line.channel.close()
            self._hung_up.add(line.pid)

    def is_kept(self, pid: int) -> bool:
        """Tell whether a process is a runner whose line is open."""
        return pid in self._open

    def is_left(self, pid: int) -> bool:
        """Tell whether a process is a runner that must still end."""
        return pid in self._hung_up

    def rest(self, pid: int, cgroup: str | None) -> None:
        """Note that a runner is idle; its cgroup stays."""
        self._open[pid].cgroup = cgroup
        self._table.apart.add(pid)

    def child_ended(self, pid: int) -> None:
        """Read what a runner answered before it ended, and drop it."""
        line = self._open.get(pid)
        if line is not None:
            self._ready(line)
            self._close(line)
            if pid in self._table.apart and line.cgroup is not None:
                self._remove_cgroup(line.cgroup)
        self._hung_up.discard(pid)
        self._table.apart.discard(pid)

    def _ready(self, line: RunnerLine) -> None:
        answered = self._read(line)
        if answered is not None:
            self._feed(answered)

    def _read(self, line: RunnerLine) -> events.Answered | None:
        """Return an answer that has come; a line that has ended is closed."""
        try:
            if line.unsent:
                line.flush()
                if not line.unsent:
                    self._poller.watch_writable(line.channel.fileno(), wanted=False)
            text = line.receive()
            if text is None:
                self._close(line)
            elif text:
                return self._answered(line, text)
        except OSError:
            self._close(line)
        return None

    def _answered(self, line: RunnerLine, text: bytes) -> events.Answered | None:
        try:
            answer = read_answer(text)
            used = Usage(answer.user_s, answer.system_s, answer.max_rss)
        except (ValueError, TypeError):
            self._close(line)
            return None
        if answer.id != line.attempt:
            self._close(line)
            return None
        self._before_answer(line.pid)
        status = answer.code << 8
        line.told = bool(answer.result)
        ended = answer.reason, answer.result
        return events.Answered(line.pid, status, used, utc_us(), *ended)


def close_theirs(line: RunnerLine | None) -> None:
    """Close the runner's end, which it has by now."""
    if line is not None:
        line.theirs.close()


def number_of(line: RunnerLine | None) -> int | None:
    """Return the descriptor of the runner's end."""
    return None if line is None else line.theirs.fileno()


def most_idle() -> int:
    """Return how many runners may be idle at once: two for each core."""
    return 2 * len(os.sched_getaffinity(0))
