"""What the broker's memory holds for the features of jobs, each in a struct.

`State` holds one of each; the modules beside this one work on them.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

import msgspec

from grass.model.jobs.lifecycle import JobState
from grass.model.range_index import RangeIndex
from grass.store.changes import AnsweredCall, Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from grass.broker.core.jobs.bulk_calls import BulkCall
    from grass.broker.core.jobs.bulk_enqueue import Arrival

CALLS_KEPT_US = 4 * 3_600 * 1_000_000
"""How long the store keeps a call. A repeated one is recognised for an hour, also where
the clocks of two brokers that lead one after the other are an hour apart, or jump."""
CALLS_AT_HAND_US = 300 * 1_000_000
"""How long it is in memory; from then on only the store knows it (`model.ids`)."""


class DependencyGroup(msgspec.Struct):
    """Jobs of one spec, which have the same dependencies."""

    owner: str
    """Whose limit counts its entries: the owner of its first job."""
    entries: int
    """How many it has in the index."""
    open: int = 0
    """How many dependencies are not met: one for each job and need."""
    unmeetable: str | None = None
    """Why the dependencies can never be met any more."""
    members: dict[int, None] = {}


class Dependencies(msgspec.Struct):
    """Which jobs depend on which others."""

    ends: dict[int, JobState]
    """How jobs ended that are still named as a dependency."""
    dependents: RangeIndex = msgspec.field(default_factory=RangeIndex)
    """By job: specs of groups, minus the first jobs of arrivals, or 0 for a call."""
    entries: Counter[str] = msgspec.field(default_factory=Counter)
    """How many entries the groups of each owner have in the index."""
    groups: dict[int, DependencyGroup] = {}
    """Jobs that wait, or are held, by their spec."""
    unchecked: deque[list[int]] = msgspec.field(default_factory=deque)
    """Jobs whose dependencies are all met, or cannot be, and not acted upon yet."""


class StartTimes(msgspec.Struct):
    """When jobs may start that wait for a time."""

    heap: list[tuple[int, int]] = []
    """Times and jobs."""
    checked_us: int = 0
    """The wall clock when the heap was last checked."""


class ArrayState(msgspec.Struct):
    """What the broker remembers of an array."""

    queues: set[str] = set()
    """Where its members wait or run; they may have been moved."""
    unfinished: int = 0
    fails: int = 0
    stored: bool = False
    """Whether the store keeps its failures."""


class Arrays(msgspec.Struct):
    """Arrays by their first job."""

    stored_fails: dict[int, int]
    """Failures as the store has them, of arrays that are not active yet."""
    active: dict[int, ArrayState] = {}
    """Arrays with an unfinished member."""


class BulkWork:
    """Large calls that are done in slices."""

    def __init__(self) -> None:
        self.enqueues: deque[Arrival] = deque()
        self.verbs: deque[BulkCall] = deque()
        self.before_start: list[tuple[set[int], Callable[[int], None]]] = []
        """Jobs that a call acts on before they start, and what it does."""

    @property
    def busy(self) -> bool:
        """Tell whether slices are left to do."""
        return bool(self.enqueues or self.verbs)


class AnsweredCalls:
    """Replies to calls with an idempotency key, for as long as a repeat is likely."""

    def __init__(self, known: Iterable[AnsweredCall], now_us: int) -> None:
        since = now_us - CALLS_AT_HAND_US
        self.by_key = {one.key: one for one in known if one.at >= since}

    def add(self, answered: AnsweredCall, changes: Changes) -> None:
        """Keep a call; the oldest one goes if its time is over."""
        self.by_key[answered.key] = answered
        changes.calls.append(answered)
        key, oldest = next(iter(self.by_key.items()))
        if oldest.at < answered.at - CALLS_AT_HAND_US:
            del self.by_key[key]


class Removals(msgspec.Struct):
    """Output that workers are to remove."""

    last: int
    """The largest number that was given out."""
    waiting: dict[str, dict[int, int]] = {}
    """The bytes of each removal, by worker and number."""
    sent: dict[str, int] = {}
    """What each worker was sent and has not answered."""
    failed: dict[str, set[int]] = {}
    """What each worker could not remove."""
    silent: set[str] = set()
    """Workers that confirm nothing."""
    logged: set[str] = set()
    """Workers whose failed removals have been logged."""
