"""The memory that processes of an attempt have together, each page counted once.

Pages of files and shared memory are told for each process, and the most that one has
counts for all. A process that was forked also shares the pages that neither side has
written since. Only a *walk* through its page tables tells which are its own
(`smaps_rollup`): 28 ms for each GiB, measured. So of a *family*, processes that were
forked and run one program, the largest counts in full, and of each other one what was
its own in its last walk and what it has grown since. One that had no walk yet counts
with the mean of its family, or with nothing: the most that was used is never too much.
Walks are so seldom that they take a small part of a core.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from grass.keeper.process_table import Stat

PAGE = os.sysconf("SC_PAGE_SIZE")
WALK_SHARE = 0.001
"""Which part of a core walks may take."""
SMALL = (16 << 20) // PAGE
"""A process of fewer pages counts in full, without a walk."""

ProcessKey = tuple[int, int]
"""The pid of a process, and when it started."""


class Walk(NamedTuple):
    """What a walk found, in pages."""

    at_s: float
    own: int
    unshared: int
    """What it had then beside files and shared memory, pages of a fork included."""


class Member(NamedTuple):
    """A process of a family."""

    key: ProcessKey
    unshared: int


class ProcessMemory:
    """Counts memory, and remembers the walks of all attempts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._walks: dict[ProcessKey, Walk] = {}
        self._candidates: dict[Member, tuple[bool, float]] = {}
        """What may be walked next; the least goes first."""
        self._walk_at = float("-inf")

    def pages(self, stats: list[Stat]) -> int:
        """Return the pages that the processes of an attempt have together."""
        if len(stats) <= 1:
            return sum(one.resident for one in stats)
        shared = {one.pid: _shared(one.pid) for one in stats}
        families: dict[int, list[Member]] = {}
        for one in stats:
            # A program that is run anew has its stack elsewhere. 0: it is not told.
            member = Member(
                (one.pid, one.ticks), max(0, one.resident - shared[one.pid])
            )
            families.setdefault(one.start_stack or -one.pid, []).append(member)
        return max(shared.values()) + sum(map(self._together, families.values()))

    def walk_if_due(self) -> None:
        """Walk through one of the processes that were counted since the last call."""
        candidates, self._candidates = self._candidates, {}
        began = self._clock()
        if not candidates or began < self._walk_at:
            return
        (pid, _), unshared = chosen = min(candidates, key=lambda one: candidates[one])
        own = _own(pid)
        known = self._walks.items()
        self._walks = {
            key: one for key, one in known if os.path.exists(f"/proc/{key[0]}")
        }
        walk = Walk(began, unshared if own is None else min(own, unshared), unshared)
        self._walks[chosen.key] = walk
        self._walk_at = self._clock() + (self._clock() - began) / WALK_SHARE

    def _together(self, family: list[Member]) -> int:
        """Return the pages of a family that are of no file and not shared memory."""
        members = sorted(family, key=lambda one: -one.unshared)
        total = sum(one.unshared for one in members[:1])
        total += sum(one.unshared for one in members[1:] if one.unshared < SMALL)
        large = [one for one in members[1:] if one.unshared >= SMALL]
        walks = {one: self._walks[one.key] for one in large if one.key in self._walks}
        for one in large:
            at_s = walks[one].at_s if one in walks else float("-inf")
            self._candidates[one] = bool(walks), at_s
        return total + sum(_estimates(large, walks))


def _estimates(members: Iterable[Member], walks: dict[Member, Walk]) -> Iterator[int]:
    """Yield how many of its pages each process has for itself."""
    walked = sum(one.unshared for one in walks.values())
    mean = sum(one.own for one in walks.values()) / walked if walked else 0.0
    for one in members:
        walk = walks.get(one)
        if walk is None:
            yield int(one.unshared * mean)
        else:
            grown = max(0, one.unshared - walk.unshared)
            yield min(one.unshared, walk.own + grown)


def _shared(pid: int) -> int:
    """Return the pages of a process that are of a file or shared."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[2])
    except (OSError, IndexError, ValueError):
        return 0


def _own(pid: int) -> int | None:
    """Return the pages that a process has written and no other has; None: unknown."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            _, found, rest = file.read().partition(b"Private_Dirty:")
    except OSError:
        return None
    return int(rest.split(None, 1)[0]) * 1024 // PAGE if found else None
