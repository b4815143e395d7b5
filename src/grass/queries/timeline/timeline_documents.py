"""The timeline as people and programs see it."""

from collections.abc import Iterable
from functools import partial

import msgspec

from grass.broker.shell.service import Broker
from grass.model.amount_text import WHOLE
from grass.model.amounts import decimal_number
from grass.model.jobs.lifecycle import JobState
from grass.model.times import rfc3339
from grass.queries.cluster_documents import ForgottenNames
from grass.queries.timeline.timeline import (
    Collected,
    Held,
    Lane,
    Lanes,
    Total,
    Window,
    collect_bars,
    collect_totals,
    hours,
    lanes_of,
    running_spans,
)
from grass.queries.timeline.timeline_outlook import Expected, outlook

MOST_BARS = 10_000


class LaneReply(msgspec.Struct):
    """A unit of a worker; an empty `unit` is all of its kind."""

    worker: str
    kind: str
    unit: str
    capacity: float | None
    """None: the worker was forgotten."""


class BarReply(msgspec.Struct):
    """An attempt in a lane, or what is expected there."""

    job: int
    name: str
    owner: str
    state: str
    worker: str
    kind: str
    unit: str
    amount: float
    from_: str | None = msgspec.field(name="from")
    to: str | None
    """None: it still runs."""
    predicted: bool = False
    attempt: int | None = None


class TotalReply(msgspec.Struct):
    """What the attempts of one owner held of a unit."""

    owner: str
    worker: str
    kind: str
    unit: str
    hours: float
    """Of whole units: half of a GPU for two hours is one."""
    attempts: int


class TimelineReply(msgspec.Struct):
    """Who held which units in a span of time."""

    from_: str | None = msgspec.field(name="from")
    to: str | None
    lanes: list[LaneReply]
    bars: list[BarReply]
    left_out: int
    """How many shorter attempts are not among the bars."""
    complete_from: str | None
    """Older attempts were too many to be read; None: all were."""
    totals: list[TotalReply] = []


class NameLookup:
    """The names of workers by id, also of forgotten ones."""

    def __init__(self, broker: Broker, forgotten: ForgottenNames) -> None:
        self._broker, self._forgotten = broker, forgotten
        self._known: dict[str, str] = {}

    async def read(self, workers: Iterable[str]) -> None:
        """Look up the names that are needed."""
        asked = set(workers)
        found = await self._forgotten.of(self._broker, asked)
        for id in asked:
            worker = self._broker.state.workers.get(id)
            self._known[id] = found.get(id, id) if worker is None else worker.name

    def of(self, worker: str) -> str:
        """Return a worker's name."""
        return self._known[worker]


async def timeline(
    broker: Broker,
    window: Window,
    now: int,
    forgotten: ForgottenNames,
    *,
    most_bars: int,
    with_totals: bool,
) -> TimelineReply:
    """Return the bars and lanes of a window, and with totals who held how much."""
    lanes = lanes_of(broker.state, window.worker)
    running = running_spans(broker.state, now)
    empty = Collected(window, lanes, most_bars)
    read = collect_totals if with_totals else collect_bars
    collected = await broker.scan(
        partial(read, collected=empty, running=running, since=window.begin)
    )
    expected = list[Expected]()
    if window.end > now:
        own = [one for one in running if window.has(one)]
        expected = await outlook(broker, lanes, own, now)
    shown = {**lanes.known, **dict.fromkeys(_others(collected, lanes))}
    names = NameLookup(broker, forgotten)
    totals = collected.totals if with_totals else {}
    await names.read(lane.worker for lane in (*shown, *(lane for _, lane in totals)))
    return TimelineReply(
        rfc3339(window.begin),
        rfc3339(window.end),
        [_lane(lane, capacity, names) for lane, capacity in shown.items()],
        [_bar(one, collected, names) for one in collected.bars]
        + [_expected(one, names) for one in expected if one.begin < window.end],
        collected.left_out,
        rfc3339(collected.complete_from),
        [_total(owner, lane, one, names) for (owner, lane), one in totals.items()],
    )


def _others(collected: Collected, lanes: Lanes) -> Iterable[Lane]:
    """Return lanes of workers and units that are no more."""
    return (held.lane for held in collected.bars if held.lane not in lanes.known)


def _lane(lane: Lane, capacity: int | None, names: NameLookup) -> LaneReply:
    amount = None if capacity is None else decimal_number(capacity)
    return LaneReply(names.of(lane.worker), lane.kind, lane.unit, amount)


def _bar(held: Held, collected: Collected, names: NameLookup) -> BarReply:
    span, runs = held.span, held.span.state is JobState.RUNNING
    return BarReply(
        job=span.job,
        name=collected.names.get(span.job, ""),
        owner=span.owner,
        state=span.state,
        worker=names.of(span.worker),
        kind=held.lane.kind,
        unit=held.lane.unit,
        amount=held.amount / WHOLE,
        from_=rfc3339(span.started_at),
        to=None if runs else rfc3339(span.finished_at),
        attempt=span.number,
    )


def _expected(one: Expected, names: NameLookup) -> BarReply:
    return BarReply(
        job=one.job,
        name=one.name,
        owner=one.owner,
        state=one.state,
        worker=names.of(one.lane.worker),
        kind=one.lane.kind,
        unit=one.lane.unit,
        amount=one.amount / WHOLE,
        from_=rfc3339(one.begin),
        to=rfc3339(one.end),
        predicted=True,
    )


def _total(owner: str, lane: Lane, total: Total, names: NameLookup) -> TotalReply:
    worker = names.of(lane.worker)
    return TotalReply(owner, worker, lane.kind, lane.unit, hours(total), total.attempts)
