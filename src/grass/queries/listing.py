"""Which jobs a view shows: running ones, the next ones, and those that ended lately.

All of it is read from one commit of the store, so that no job is shown twice and no
more jobs run than units allow. Members of an array count as one row: a long array does
not hide other jobs. Of such a row all running members are read, and a few others.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.store.interface import ArrayTotals, JobDetails, JobFilter, Order, Store

RUNNING_SHOWN, WAITING_SHOWN, RECENT_SHOWN = 1000, 20, 10
"""How many rows an overview has at most, of each kind."""
FOLLOWED_RUNNING = 200
"""How many running jobs are sent to those who follow, each time that one changes."""
MEMBERS_SHOWN = 3
"""How many members of an array are read that start next, and that ended last."""
_WAITING = (JobState.QUEUED, JobState.WAITING, JobState.HELD)

Counts = dict[JobState, int]


class RowLimits(msgspec.Struct, frozen=True):
    """How many rows of each kind are shown, and whether arrays are one row each."""

    running: int = RUNNING_SHOWN
    waiting: int = WAITING_SHOWN
    """Of each state in which jobs wait."""
    ended: int = RECENT_SHOWN
    members: bool = False
    """Whether each member of an array is a row."""
    in_all: int | None = None


class ArrayView(msgspec.Struct):
    """An array as a whole, with the member that stands for it."""

    totals: ArrayTotals
    shown: JobDetails


class Listing(msgspec.Struct):
    """Jobs in the order in which they are shown, and what was left out."""

    jobs: list[JobDetails]
    arrays: list[ArrayView]
    totals: Counts
    """All jobs that match, by state."""

    @property
    def left_out(self) -> Counts:
        """How many matching jobs are not listed, by state."""
        shown = Counter(shown_state(one.job, last_attempt(one)) for one in self.jobs)
        left = {state: count - shown[state] for state, count in self.totals.items()}
        return {state: count for state, count in left.items() if count > 0}


class Picture(msgspec.Struct):
    """Everything that an overview takes from the store, of one commit."""

    listing: Listing
    last_event: int
    queues: dict[str, Counts]

    @property
    def totals(self) -> Counts:
        """All jobs, by state."""
        counts: Counter[JobState] = Counter()
        for of_queue in self.queues.values():
            counts.update(of_queue)
        return dict(counts)


def last_attempt(details: JobDetails) -> Attempt | None:
    """Return the attempt that counts, if there was any."""
    return details.attempts[-1] if details.attempts else None


def is_ahead(job: Job, last: Attempt | None) -> bool:
    """Tell whether a job was only sent ahead: it runs once another one has ended."""
    running = job.state is JobState.RUNNING
    return running and last is not None and last.after is not None


def shown_state(job: Job, last: Attempt | None) -> JobState:
    """Return a job's state as people see it."""
    return JobState.QUEUED if is_ahead(job, last) else job.state


def listing(store: Store, wanted: JobFilter, rows: RowLimits) -> Listing:
    """Read what a view shows, from one commit."""
    return _Reading(store, wanted, rows).listing()


def picture(
    store: Store, queue: str | None, *, members: bool, running: int = RUNNING_SHOWN
) -> Picture:
    """Read what an overview shows, of one queue or of all."""
    found = listing(store, JobFilter(queue=queue), RowLimits(running, members=members))
    queues = store.queue_counts()
    for one in found.jobs:
        if is_ahead(one.job, last_attempt(one)):
            _move_to_queued(queues[one.job.queue])
    return Picture(found, store.last_event(), queues)


class _Reading:
    """The reading of one view."""

    def __init__(self, store: Store, wanted: JobFilter, rows: RowLimits) -> None:
        self._store = store
        self._wanted = wanted
        self._rows = rows
        self._totals = store.counts(wanted)
        self._jobs: dict[int, JobDetails] = {}
        self._arrays: dict[int, JobDetails] = {}
        """Arrays in the order in which they appear, with the first job of each."""
        self._ahead: list[JobDetails] = []
        """Jobs that are running in the store, but were only sent ahead."""
        self._used = 0
        """Rows so far."""

    def listing(self) -> Listing:
        totals = self._totals
        ended = sum(totals.get(state, 0) for state in ENDED)
        self._add_running()
        for _ in self._ahead:
            _move_to_queued(totals)
        if _may_be_queued(self._wanted):
            self._add(self._ahead[: self._room(len(self._ahead))])
        else:
            totals.pop(JobState.QUEUED, None)
        for state in self._asked(_WAITING):
            most = self._room(self._rows.waiting, kept=min(ended, self._rows.ended))
            self._add(self._first(state, most))
        self._add(self._last(self._room(self._rows.ended)))
        counts = {state: totals[state] for state in JobState if totals.get(state)}
        return Listing(list(self._jobs.values()), self._summaries(), counts)

    def _room(self, most: int, kept: int = 0) -> int:
        """Return how many more rows may be added; some are kept for later ones."""
        in_all = self._rows.in_all
        return most if in_all is None else max(0, in_all - self._used - kept)

    def _asked(self, states: tuple[JobState, ...]) -> tuple[JobState, ...]:
        """Return those of some states that are asked for, and that a job is in."""
        asked = self._wanted.states
        wanted = (state for state in states if not asked or state in asked)
        return tuple(state for state in wanted if self._totals.get(state))

    def _add_running(self) -> None:
        """Add the running jobs, but for those that were only sent ahead."""
        if not self._asked((JobState.RUNNING,)):
            return
        # Also for a view of few rows: the totals say how many were only sent ahead.
        most = max(self._rows.running, RUNNING_SHOWN)
        running = self._page((JobState.RUNNING,), Order.NEXT, most)
        parts: tuple[list[JobDetails], list[JobDetails]] = ([], [])
        for one in running:
            parts[is_ahead(one.job, last_attempt(one))].append(one)
        self._add(parts[0][: self._rows.running])
        self._ahead = parts[1]

    def _add(self, found: list[JobDetails]) -> None:
        for one in found:
            if one.job.id in self._jobs:
                continue
            self._jobs[one.job.id] = one
            array = None if self._rows.members else one.job.array
            if array is None or array not in self._arrays:
                self._used += 1
            if array is not None:
                self._arrays.setdefault(array, one)

    def _page(
        self,
        states: tuple[JobState, ...],
        order: Order,
        most: int,
        array: int | None = None,
    ) -> list[JobDetails]:
        asked = replace(self._wanted, states=states, order=order, array=array)
        return self._store.jobs(asked, most) if most > 0 else []

    def _first(self, state: JobState, most: int) -> list[JobDetails]:
        """Return the jobs of a state that start next, an array as one row."""
        if self._rows.members and self._wanted.selection.by_id:
            return self._page((state,), Order.NEXT, most)
        return self._merged((state,), Order.NEXT, most)

    def _last(self, most: int) -> list[JobDetails]:
        """Return the jobs that ended last, an array as one row."""
        states = self._asked(tuple(sorted(ENDED)))
        if self._rows.members or not states:
            return self._page(states, Order.FINISHED, most) if states else []
        return self._merged(states, Order.FINISHED, most)

    def _merged(
        self, states: tuple[JobState, ...], order: Order, most: int
    ) -> list[JobDetails]:
        """Return jobs of no array and members of arrays, in one order."""
        place = _end_order if order is Order.FINISHED else _start_order
        rows = [[one] for one in self._page(states, order, most, array=0)]
        rows += self._members(states, order, most)
        if self._rows.members:
            rows = [[one] for row in rows for one in row]
        rows.sort(key=lambda row: place(row[0].job))
        return [one for row in rows[:most] for one in row]

    def _members(
        self, states: tuple[JobState, ...], order: Order, most: int
    ) -> Iterator[list[JobDetails]]:
        """Yield the first members of each array that has some."""
        asked = replace(self._wanted, states=states, order=order)
        count = most if self._rows.members else MEMBERS_SHOWN
        for array in self._store.arrays(asked, most) if most > 0 else []:
            yield self._page(states, order, count, array)

    def _summaries(self) -> list[ArrayView]:
        totals = self._store.array_totals(list(self._arrays), self._wanted)
        for one in self._ahead:
            if one.job.array in totals:
                _move_to_queued(totals[one.job.array].states)
        if not _may_be_queued(self._wanted):
            for each in totals.values():
                each.states.pop(JobState.QUEUED, None)
        return [ArrayView(totals[one], shown) for one, shown in self._arrays.items()]


def _may_be_queued(wanted: JobFilter) -> bool:
    """Tell whether a filter may match jobs that are queued as people see it."""
    may_be = all(
        any(one.state in {None, JobState.QUEUED} for one in group)
        for group in wanted.selection.groups
    )
    return may_be and (not wanted.states or JobState.QUEUED in wanted.states)


def _move_to_queued(counts: Counts) -> None:
    counts[JobState.RUNNING] -= 1
    counts[JobState.QUEUED] = counts.get(JobState.QUEUED, 0) + 1


def _start_order(job: Job) -> tuple[int, int]:
    return -job.priority, job.id


def _end_order(job: Job) -> tuple[int, int]:
    return -(job.finished_at or 0), -job.id
