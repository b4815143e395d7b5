"""The attempts of this machine, and the units that each of them holds or inherits.

What always holds: no unit is given out beyond its capacity, even if the broker errs; an
attempt that waits for another one holds nothing itself, and gets that one's units at
the moment it exits, so that no other attempt can take them.

This machine may have worked for another broker before. Its attempts go on, and their
exits are kept until that broker connects again, up to a limit, as it may never do so.
"""

from itertools import chain, repeat

import msgspec

from grass.keeper.protocol import (
    ContinueVerb,
    GiveBackVerb,
    Notes,
    SignalVerb,
    StartVerb,
    StateEntry,
    StopVerb,
    SuspendVerb,
    Verb,
    cluster_of,
)
from grass.link.attempt_verbs import PassedOn
from grass.link.messages import (
    RECALLED,
    Exited,
    GiveBack,
    Recall,
    Report,
    Signal,
    Start,
    Started,
    Stop,
    Suspend,
)
from grass.log_lines import LogEvent, log_event
from grass.model.resources import Allocation, Capacity

NAME_IS_TAKEN = "another attempt of this number is still there"
"""The reason of a `Returned` by which the broker learns of one it did not place."""
MOST_KEPT = 500
"""How many exits are kept for brokers that this machine does not work for now."""
MOST_REFUSALS = 1_000
"""How many returned starts are remembered."""


class WorkerAttempt(msgspec.Struct):
    """An attempt of this machine, as the worker knows it."""

    notes: Notes
    """Its units, its output, and when it was placed."""
    after: str | None = None
    """Whose units it gets; until then it holds nothing."""
    start: StartVerb | None = None
    """The verb for the keeper, until the attempt has started."""
    started: Started | None = None
    since: float | None = None
    """When it started, in seconds since boot."""
    ticks: int = 0
    """The same, as the kernel counts for processes."""
    stopping: bool = False
    suspended: bool = False
    recalled: bool = False
    sent: bool = False
    """Whether any keeper may have received its start."""
    unchecked: bool = False
    """Whether its start waits for a look at the devices, or for blobs."""
    fetching: bool = False
    """Whether blobs that it names are not here yet."""
    begun: bool = True
    """For one that a daemon before this one started: whether the keeper recorded it."""
    exited: Exited | None = None
    grace_s: float = 15.0
    time_limit_s: float | None = None
    """Of one whose processes are searched for; the keeper has those of others."""

    @property
    def may_be_returned(self) -> bool:
        """Tell whether it may not have begun; the keeper knows."""
        asked = self.start is not None or not self.begun
        return asked and self.started is None and self.exited is None

    def was_placed(self, at: int) -> bool:
        """Tell whether this is the attempt placed then, or that is unknown."""
        return at == self.notes.placed_at or 0 in (at, self.notes.placed_at)

    def start_again(self) -> list[Verb]:
        """Return the verbs for a new keeper, if the old one did not start it.

        It waits for its present predecessor, and is suspended or stopped as asked.
        """
        if self.start is None:
            return []
        start = self.start
        if (start.after, self.notes.after) != (self.after, self.after):
            notes = self.notes._replace(after=self.after)
            start = start._replace(after=self.after, meta=notes)
        verbs: list[Verb] = [start]
        if self.suspended:
            verbs.append(SuspendVerb(self.start.id))
        if self.stopping:
            verbs.append(stop_verb(Stop(self.start.id, 0.0)))
        return verbs

    def verb_of(self, message: PassedOn) -> Verb:
        """Note what the broker asks for, and return the keeper's verb for it."""
        if isinstance(message, Stop):
            self.stopping = True
            return stop_verb(message)
        if isinstance(message, GiveBack):
            return GiveBackVerb(message.attempt, message.exit_code)
        if isinstance(message, Signal):
            return SignalVerb(message.attempt, message.signal)
        self.suspended = isinstance(message, Suspend)
        kind = SuspendVerb if self.suspended else ContinueVerb
        return kind(message.attempt)

    def report(self, attempt: str, now_s: float) -> Report:
        """Return what a `Hello` says of an attempt that has not ended."""
        started, notes = self.started, self.notes
        report = Report(
            attempt,
            notes.allocation,
            running=started is not None,
            stopping=self.stopping,
            suspended=self.suspended,
            placed_at=notes.placed_at,
            title=notes.title,
        )
        if started is not None:
            report.pid, report.started_at = started.pid, started.at
            report.output, report.output_offset = started.output, started.output_offset
            report.stderr, report.stderr_offset = started.stderr, started.stderr_offset
            report.usage = started.usage
            if self.since is not None:
                report.ran_s = max(0.0, now_s - self.since)
        return report


def stop_verb(message: Stop) -> StopVerb:
    """Return the verb that stops an attempt."""
    stop = message.signal, message.grace_s, message.reason
    return StopVerb(message.attempt, *stop)


def dropped_event(dropped: list[str]) -> list[LogEvent]:
    """Return what is logged when exits of other brokers' attempts were dropped."""
    if not dropped:
        return []
    first, count = dropped[0], len(dropped)
    return [log_event("exits.dropped", exits=count, attempt=first, limit=MOST_KEPT)]


class AttemptTable:
    """The attempts, the units they hold, and who waits for whom."""

    def __init__(self) -> None:
        self.attempts: dict[str, WorkerAttempt] = {}
        self.units = AllocatedUnits()
        self.followers: dict[str, str] = {}
        """Which attempt gets whose units."""
        self.cluster: str | None = None
        """The cluster of the present broker; None: none has answered yet."""
        self._returned: dict[str, int] = {}

    def is_running(self, attempt: str) -> bool:
        """Tell whether an attempt is known and has not ended."""
        known = self.attempts.get(attempt)
        return known is not None and known.exited is None

    def note_returned(self, attempt: str, placed_at: int) -> None:
        """Note that a placement is never begun here: the broker is told so."""
        if placed_at:
            self._returned.pop(attempt, None)
            self._returned[attempt] = placed_at
        if len(self._returned) > MOST_REFUSALS:
            del self._returned[next(iter(self._returned))]

    def was_returned(self, attempt: str, placed_at: int) -> bool:
        """Tell whether the broker may have placed the job again by now."""
        return bool(placed_at) and self._returned.get(attempt) == placed_at

    def predecessor(self, message: Start) -> WorkerAttempt | None:
        """Return the attempt that a start must wait for, if that has not ended."""
        found = self.attempts.get(message.after or "")
        return None if found is None or found.exited is not None else found

    def refusal(self, message: Start, predecessor: WorkerAttempt | None) -> str | None:
        """Return why a start is not accepted, or None."""
        if message.attempt in self.attempts:
            return NAME_IS_TAKEN
        if self.was_returned(message.attempt, message.placed_at):
            # Sent again after a hello that the broker read before the answer.
            return RECALLED
        if predecessor is not None:
            # The keeper may have dropped the predecessor, and would not wait for it.
            dropped = predecessor.recalled and predecessor.after is not None
            return RECALLED if dropped else None
        excess = self.units.excess(message.allocation)
        return None if excess is None else f"{excess} is given out already"

    def recalled(self, message: Recall) -> tuple[list[str], list[tuple[str, int]]]:
        """Mark what a broker asks back; return it, and what is not known here."""
        known, unknown = list[str](), list[tuple[str, int]]()
        times = chain(message.placed_at, repeat(0))
        for name, at in zip(message.attempts, times, strict=False):
            attempt = self.attempts.get(name)
            if attempt is not None and attempt.was_placed(at):
                attempt.recalled = True
                known.append(name)
            else:
                unknown.append((name, at))
        return known, unknown

    def reserved(self) -> dict[str, Allocation]:
        """Return what each attempt that has not ended has reserved for itself."""
        return {
            name: one.notes.allocation
            for name, one in self.attempts.items()
            if one.exited is None and one.after is None
        }

    def is_foreign(self, attempt: str) -> bool:
        """Tell whether an attempt is of another broker than the present one."""
        return self.cluster is not None and cluster_of(attempt) != self.cluster

    def forgotten(self, listed: list[StateEntry]) -> list[str]:
        """Name the exits that were forgotten while there was no keeper.

        Only then another attempt can have such a name now.
        """
        exits = [one for one in listed if one.state == "exited"]
        known = [(one, self.attempts.get(one.id)) for one in exits]
        return [
            one.id
            for one, attempt in known
            if attempt is not None and not attempt.was_placed(one.meta.placed_at)
        ]

    def forget(self, attempts: list[str]) -> list[str]:
        """Remove exits that a broker has stored: its own, of no other broker."""
        own = [attempt for attempt in attempts if not self.is_foreign(attempt)]
        for attempt in own:
            self.attempts.pop(attempt, None)
        return own

    def drop_oldest(self) -> list[str]:
        """Remove the exits of other brokers' attempts that exceed the limit."""
        kept = [
            (one.exited.at, name)
            for name, one in self.attempts.items()
            if one.exited is not None and self.is_foreign(name)
        ]
        dropped = [name for _, name in sorted(kept)[: max(0, len(kept) - MOST_KEPT)]]
        for name in dropped:
            del self.attempts[name]
        return dropped

    def add(self, name: str, attempt: WorkerAttempt) -> None:
        """Add an attempt, with units of its own or behind another one."""
        self.attempts[name] = attempt
        if attempt.after is None:
            self.units.allocate(attempt.notes.allocation)
        else:
            self.followers[attempt.after] = name

    def shrink(self, name: str, allocation: Allocation) -> None:
        """Free what an attempt holds beyond this; it never gets more."""
        attempt = self.attempts.get(name)
        if attempt is None or attempt.exited is not None or attempt.after is not None:
            return
        held = attempt.notes.allocation
        if not _contains(held, allocation):
            return
        self.units.free(held)
        self.units.allocate(allocation)
        attempt.notes = attempt.notes._replace(allocation=allocation)

    def free_units(self, name: str, attempt: WorkerAttempt) -> None:
        """Free an attempt's units, and give them to the one that waits for it."""
        follower = self.followers.pop(name, None)
        if attempt.after is not None:
            self.followers.pop(attempt.after, None)
        else:
            self.units.free(attempt.notes.allocation)
        if follower is not None and follower in self.attempts:
            self.attempts[follower].after = attempt.after
            if attempt.after is None:
                self.units.allocate(self.attempts[follower].notes.allocation)
            else:
                self.followers[attempt.after] = follower


def _contains(held: Allocation, other: Allocation) -> bool:
    return all(
        amount <= held.get(kind, {}).get(unit, 0)
        for kind, amounts in other.items()
        for unit, amount in amounts.items()
    )


class AllocatedUnits:
    """Allocated amounts per unit, never above its capacity."""

    def __init__(self) -> None:
        self._capacity: Capacity = {}
        self._allocated: dict[tuple[str, str], int] = {}

    def set_capacity(self, capacity: Capacity) -> None:
        """Set the capacity; what is allocated stays so."""
        self._capacity = capacity

    def excess(self, allocation: Allocation) -> str | None:
        """Return the first unit whose capacity this would exceed."""
        for kind, amounts in allocation.items():
            known = self._capacity.get(kind, {})
            for unit, amount in amounts.items():
                if self._allocated.get((kind, unit), 0) + amount > known.get(unit, 0):
                    return f"{kind} {unit}"
        return None

    def missing(self, unit: str, withheld: int) -> int:
        """Return how much memory of a GPU is allocated that is not there."""
        known = self._capacity.get("vram", {}).get(unit, 0)
        return max(0, self._allocated.get(("vram", unit), 0) + withheld - known)

    def allocate(self, allocation: Allocation) -> None:
        """Add these amounts."""
        for kind, amounts in allocation.items():
            for unit, amount in amounts.items():
                before = self._allocated.get((kind, unit), 0)
                self._allocated[kind, unit] = before + amount

    def free(self, allocation: Allocation) -> None:
        """Subtract these amounts."""
        for kind, amounts in allocation.items():
            for unit, amount in amounts.items():
                left = self._allocated[kind, unit] - amount
                if left:
                    self._allocated[kind, unit] = left
                else:
                    del self._allocated[kind, unit]
