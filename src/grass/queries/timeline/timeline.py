"""Who held which units when: bars in lanes, and hours of each owner.

A lane is a GPU; of a worker without one it is all its cores. What has ended comes from
the store, the last end first, and what runs from memory. Only the longest bars of a
span are told, as shorter ones would not be seen; hours count all of them. Attempts of a
job that is to run again count once it has started again or ended. Attempts of jobs that
were forgotten count in hours, from sums.
"""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappush, heappushpop
from typing import NamedTuple

import msgspec

from grass.broker.core.state import State
from grass.broker.core.workers.units import known_capacity
from grass.model.amount_text import WHOLE
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.resources import Allocation, Capacity, unit_order
from grass.model.usage.held_sums import HOUR_US, HeldSum, SumKey
from grass.store.interface import AttemptSpan, Store

GPU, CPU = "gpu", "cpu"
ALL = ""
"""The unit of a lane that stands for all of its kind."""
PAGE = 2_000
MOST_READ = 20_000
MOST_COUNTED = 100_000
"""The most attempts that are read, for bars alone and for hours."""
MOST_AGAIN = 1_000
"""For how many running jobs earlier attempts are looked up."""
_decoder = msgspec.json.Decoder(Allocation)


class Lane(NamedTuple):
    """Where bars are drawn: a unit of a worker, by its id."""

    worker: str
    kind: str
    unit: str


class Held(NamedTuple):
    """An attempt in one lane."""

    span: AttemptSpan
    lane: Lane
    amount: int


class Total(msgspec.Struct):
    """What attempts of one owner held of a lane."""

    amount_us: int = 0
    attempts: int = 0


class Window(NamedTuple):
    """A span of time, and a worker's id if only that one counts."""

    begin: int
    end: int
    worker: str | None = None

    def within(self, span: AttemptSpan) -> int:
        """Return how many microseconds of an attempt are in this window."""
        return min(span.finished_at, self.end) - max(span.started_at, self.begin)

    def has(self, span: AttemptSpan) -> bool:
        """Whether an attempt is of the worker, and ran in this window."""
        if self.worker is not None and span.worker != self.worker:
            return False
        return span.started_at < self.end and span.finished_at >= self.begin


class Lanes:
    """The lanes of all known workers, with their capacities."""

    def __init__(self, capacities: Mapping[str, Capacity]) -> None:
        self._capacities = capacities
        self.known: dict[Lane, int] = {}
        for worker, capacity in capacities.items():
            gpus = capacity.get(GPU, {})
            for unit in sorted(gpus, key=unit_order):
                self.known[Lane(worker, GPU, unit)] = gpus[unit]
            if not gpus:
                cores = sum(capacity.get(CPU, {}).values())
                self.known[Lane(worker, CPU, ALL)] = cores

    def held(self, span: AttemptSpan) -> Iterator[Held]:
        """Yield what an attempt held: of each GPU, and of all cores."""
        given = span.allocation
        shares, memory = given.get(GPU, {}), given.get("vram", {})
        for unit in {**shares, **memory}:
            amount = shares.get(unit) or self._share(span.worker, unit, memory)
            yield Held(span, Lane(span.worker, GPU, unit), amount)
        cores = sum(given.get(CPU, {}).values())
        yield Held(span, Lane(span.worker, CPU, ALL), cores)

    def shows(self, lane: Lane) -> bool:
        """Whether bars are drawn in a lane; GPUs of forgotten workers are."""
        return lane in self.known or lane.kind == GPU

    def _share(self, worker: str, unit: str, memory: Mapping[str, int]) -> int:
        """Return the share of a GPU of which only memory was asked for."""
        has = self._capacities.get(worker, {}).get("vram", {}).get(unit)
        return min(WHOLE, WHOLE * memory[unit] // has) if has else WHOLE


class Collected:
    """The longest bars, and the hours of all."""

    def __init__(self, window: Window, lanes: Lanes, most: int) -> None:
        self.totals: dict[tuple[str, Lane], Total] = {}
        self.left_out = 0
        self.complete_from: int | None = None
        """Only jobs that ended after this time count; None: all do."""
        self.names: dict[int, str] = {}
        self._window, self._lanes, self._most = window, lanes, most
        self._longest: list[tuple[int, int, int, list[Held]]] = []

    @property
    def bars(self) -> list[Held]:
        """The bars, the oldest first."""
        found = [held for *_, some in self._longest for held in some]
        return sorted(found, key=lambda one: (one.span.started_at, one.span.job))

    def add(self, span: AttemptSpan) -> None:
        """Count an attempt, if it ran in the window."""
        if not self._window.has(span):
            return
        took = max(0, self._window.within(span))
        shown = list[Held]()
        for held in self._lanes.held(span):
            self._count(held, took, 1)
            if self._lanes.shows(held.lane):
                shown.append(held)
        if shown:
            self._keep((took, span.job, span.number, shown))

    def add_sum(self, key: SumKey, held: HeldSum) -> None:
        """Count forgotten attempts, as far as they ran in the window."""
        allocation = _decoder.decode(key.allocation)
        span = AttemptSpan(
            *(0, 0, key.owner, JobState.SUCCEEDED, key.worker, allocation),
            *(held.began_at, held.ended_at, held.ended_at),
        )
        if not self._window.has(span):
            return
        took = held.held_us
        if held.ended_at > held.began_at:
            within = max(0, self._window.within(span))
            took = took * within // (held.ended_at - held.began_at)
        for one in self._lanes.held(span):
            self._count(one, took, held.attempts)

    def _count(self, held: Held, took: int, attempts: int) -> None:
        if held.amount or self._lanes.shows(held.lane):
            total = self.totals.setdefault((held.span.owner, held.lane), Total())
            total.amount_us += took * held.amount
            total.attempts += attempts

    def _keep(self, bar: tuple[int, int, int, list[Held]]) -> None:
        if len(self._longest) < self._most:
            heappush(self._longest, bar)
        else:
            heappushpop(self._longest, bar)
            self.left_out += 1


def lanes_of(state: State, worker: str | None) -> Lanes:
    """Return the lanes of one worker, or of all."""
    return Lanes(
        {
            one.id: known_capacity(state, one)
            for one in sorted(state.workers.values(), key=lambda one: one.name)
            if worker is None or one.id == worker
        }
    )


def running_spans(state: State, now: int) -> list[AttemptSpan]:
    """Return the attempts that hold units, up to now."""
    return [
        _span(one, state.jobs[one.job].owner, JobState.RUNNING, now)
        for one in state.attempts.values()
        if one.after is None
    ]


def collect(
    store: Store,
    collected: Collected,
    running: list[AttemptSpan],
    since: int,
    most: int,
) -> Collected:
    """Read what ended since a time, at most this many attempts; add what runs."""
    for span in (*running, *_earlier(store, running)):
        collected.add(span)
    last, read = None, 0
    while read < most and (page := store.attempts_since(since, PAGE, last)):
        for span in page:
            collected.add(span)
        last, read = page[-1], read + len(page)
    if last is not None and store.attempts_since(since, 1, last):
        collected.complete_from = last.job_finished_at
    jobs = sorted({held.span.job for held in collected.bars})
    collected.names = {job.id: job.name for job in store.outcomes(jobs)}
    return collected


def collect_bars(
    store: Store, collected: Collected, running: list[AttemptSpan], since: int
) -> Collected:
    """Collect what bars are drawn of."""
    return collect(store, collected, running, since, MOST_READ)


def collect_totals(
    store: Store, collected: Collected, running: list[AttemptSpan], since: int
) -> Collected:
    """Do the same for hours: of more attempts, and of forgotten ones as well."""
    collect(store, collected, running, since, MOST_COUNTED)
    for key, held in store.held_since(since).items():
        collected.add_sum(key, held)
    return collected


def _earlier(store: Store, running: Iterable[AttemptSpan]) -> Iterator[AttemptSpan]:
    """Yield the attempts before those that run, of the same jobs."""
    again = [one.job for one in running if one.number > 1][:MOST_AGAIN]
    for details in store.details(again):
        for one in details.attempts:
            if one.finished_at is not None:
                lost = one.state is AttemptState.LOST
                state = JobState.LOST if lost else JobState.FAILED
                yield _span(one, details.job.owner, state, one.finished_at)


def _span(attempt: Attempt, owner: str, state: JobState, until: int) -> AttemptSpan:
    allocation: Allocation = attempt.allocation
    return AttemptSpan(
        attempt.job,
        attempt.number,
        owner,
        state,
        attempt.worker,
        allocation,
        attempt.started_at,
        until,
        until,
    )


def hours(total: Total) -> float:
    """Return the hours of whole units that a total comes to."""
    return total.amount_us / WHOLE / HOUR_US
