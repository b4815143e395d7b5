"""When daemon and keeper lived, and what follows for an exit that is not known.

An attempt may be called lost only if nobody who lived could have learned how its
process ended: its keeper was killed, and either this kernel tells nobody but the parent
or no daemon held the process when it ended and was there to say so afterwards. Nor is
anything known of a process whose pid the killed keeper had no time to write down, or no
room. What never ran is never lost, but where its keeper was killed as it was to start.
A machine that goes down takes its jobs along, but no end that its keeper has seen.
"""

import os
import select
import time
from collections.abc import Sequence
from typing import NamedTuple

from tests.fault.witness import Attempt, Life

KERNEL = tuple(int(part) for part in os.uname().release.split(".")[:2])
KERNEL_TELLS = KERNEL >= (6, 15)
"""Whether the exit code of a process whose parent was killed can be learned."""

HELD_AFTER_S = 1.0
"""By then a daemon has surely opened a process that it was told of."""
SLACK_S = 1.0
"""How late a busy machine may be with what takes no time."""
LONGEST_COLLECTING_S = 10.0
NOTICED_S = 10.0
"""How long after a disk has room again a daemon may still wait to commit."""


class Span(NamedTuple):
    """From one moment to another."""

    begin: float
    end: float
    rebooted: bool = False
    """Whether the machine went down with its keeper, and all jobs."""

    def has(self, moment: float) -> bool:
        """Tell whether a moment lies within, or close by."""
        return self.begin - SLACK_S <= moment <= self.end + SLACK_S


class Timeline:
    """What the one who kills has seen."""

    def __init__(self) -> None:
        self.collected_after_s = _collecting_s()
        """How long an orphan that ended waits for init; until then nobody is told."""
        self.daemons: list[Span] = []
        self.gaps: list[Span] = []
        """While no keeper watched any process."""
        self.full: list[Span] = []
        """While nothing could be written down."""
        self._full_since: float | None = None
        self._daemon_since: float | None = None
        self.blind: list[Span] = []
        """While only the keeper knew of ends, before the machine went down."""
        self._gap_since: float | None = None
        self._gap_is_reboot = False

    def daemon_ready(self) -> None:
        if self._daemon_since is None:
            self._daemon_since = time.time()

    def daemon_killed(self) -> None:
        if self._daemon_since is not None:
            self.daemons.append(Span(self._daemon_since, time.time()))
        self._daemon_since = None

    def keeper_still(self) -> None:
        """The keeper will not wake up again: from now on it notices nothing."""
        if self._gap_since is None:
            self._gap_since = time.time()

    def keeper_watches(self) -> None:
        """Another keeper was seen at work."""
        if self._gap_since is not None:
            gap = Span(self._gap_since, time.time(), self._gap_is_reboot)
            self.gaps.append(gap)
        self._gap_since, self._gap_is_reboot = None, False

    def machine_down(self) -> None:
        """Everything is about to end at once."""
        now = time.time()
        if self._daemon_since is None and self.daemons and self._gap_since is None:
            self.blind.append(Span(self.daemons[-1].end, now - SLACK_S))
        self.daemon_killed()
        if self._gap_since is None:
            self._gap_since, self._gap_is_reboot = now, True

    def only_keeper_saw(self, moment: float) -> bool:
        """Tell whether a moment since the last daemon is so long ago that it counts."""
        gone = self._daemon_since is None and self.daemons and self._gap_since is None
        return bool(gone) and self.daemons[-1].end < moment < time.time() - SLACK_S

    def disk_full(self) -> None:
        """Note that the disk is about to be filled."""
        if self._full_since is None:
            self._full_since = time.time()

    def disk_has_room(self) -> None:
        """Note that the disk has room again; whoever waits for it has noticed soon."""
        if self._full_since is not None:
            self.full.append(Span(self._full_since, time.time() + NOTICED_S))
        self._full_since = None

    def end(self) -> None:
        """Close what is open."""
        self.daemon_killed()
        self.keeper_watches()

    def could_be_told(self, one: Attempt, life: Life | None) -> bool:
        """Tell whether somebody knew how a process ended that is called lost."""
        if _ended_with_its_machine(one, life, self.gaps):
            return False
        if life is None or life.started_at is None or life.ended_at is None:
            return not any(gap.has(one.started_at) for gap in self.gaps)
        known = Span(life.started_at, one.finished_at)
        killed = [gap for gap in self.gaps if _overlap(gap, known)]
        # What had ended before its machine went down is on record.
        killed = [gap for gap in killed if not _came_later(gap, life.ended_at)]
        if not killed:
            return True
        if not KERNEL_TELLS or any(gap.has(life.started_at) for gap in killed):
            return False
        if any(
            _overlap(full, Span(life.started_at, one.finished_at)) for full in self.full
        ):
            # Who knew its pid or its end could not write it down, and was killed.
            return False
        ending = Span(life.ended_at, life.ended_at + self.collected_after_s)
        watched = not any(_overlap(gap, ending) for gap in killed)
        return watched or self._was_held(life.started_at, life.ended_at, one)

    def known_to_keeper_alone(self, life: Life) -> bool:
        """Tell whether a process ended when only its keeper was there to know it."""
        ended = life.ended_at
        return ended is not None and any(s.begin < ended < s.end for s in self.blind)

    def outlived_keeper(self, life: Life) -> bool:
        """Tell whether a process ran on when its keeper was killed."""
        if life.started_at is None or life.ended_at is None:
            return False
        begun, ended = life.started_at, life.ended_at
        return any(begun < gap.begin < ended for gap in self.gaps)

    def _was_held(self, started: float, ended: float, one: Attempt) -> bool:
        return any(
            max(started, daemon.begin) + HELD_AFTER_S <= ended
            and daemon.end >= one.finished_at + SLACK_S
            for daemon in self.daemons
        )


def _ended_with_its_machine(
    one: Attempt, life: Life | None, gaps: Sequence[Span]
) -> bool:
    """Tell whether a machine went down before a process came to its end."""
    if life is not None and life.ended_at is not None:
        return False
    known = Span(one.started_at, one.finished_at)
    return any(gap.rebooted and _overlap(gap, known) for gap in gaps)


def _came_later(gap: Span, ended_at: float) -> bool:
    return gap.rebooted and gap.begin > ended_at + SLACK_S


def _collecting_s() -> float:
    """Measure how long init leaves an orphan that has ended."""
    reader, writer = os.pipe()
    parent = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", "sleep 0.1 >/dev/null & echo $!"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
    )
    os.close(writer)
    with open(reader) as told:
        orphan = os.pidfd_open(int(told.read()))
    os.waitpid(parent, 0)
    select.select([orphan], [], [])
    began = time.monotonic()
    collected = select.epoll()
    collected.register(orphan, select.EPOLLHUP)
    collected.poll(LONGEST_COLLECTING_S if KERNEL_TELLS else 0)
    collected.close()
    os.close(orphan)
    return time.monotonic() - began


def _overlap(one: Span, other: Span) -> bool:
    begin = max(one.begin, other.begin) - SLACK_S
    return begin <= min(one.end, other.end) + SLACK_S
