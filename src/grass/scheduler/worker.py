"""One worker: its units, and what is free of them.

Always true: for each unit, free plus the amounts of all holders is the capacity. A view
limits one queue's share of the kinds it names; what follows from that is computed when
it is asked for, so that a change of units costs the same however many queues there are.
A unit that is drained takes nothing new; a unit that was withdrawn while held drains
too, and leaves when it is unused.
Nothing here chooses units (`placement`) or knows other workers (`fleet`).
"""

from typing import NamedTuple

from grass.model.resources import Allocation, Capacity, Units, unit_order
from grass.scheduler.gates import Gate, Queue
from grass.scheduler.shapes import Order

Holder = int | str
"""A job's id, or a lease's name."""

NO_UNITS: Units = {}


class Stock:
    """What one kind amounts to when nobody holds any of it."""

    __slots__ = ("largest", "sizes", "total")

    def __init__(self, sizes: Units) -> None:
        self.sizes = sizes
        self.largest = max(sizes.values(), default=0)
        self.total = sum(sizes.values())


class View:
    """One queue's share of one worker: limits, and what the queue holds of them."""

    __slots__ = (
        "inherited",
        "limits",
        "room",
        "room_of",
        "stocks",
        "stocks_of",
        "used",
    )

    def __init__(self, limits: Capacity) -> None:
        self.limits = ordered(limits)
        self.used: Capacity = {kind: {} for kind in limits}
        self.room: Capacity = {}
        self.room_of = -1
        """The worker's number of moves that `room` was computed at."""
        self.stocks: dict[str, Stock] = {}
        self.stocks_of = -1
        """The worker's number of changes that `stocks` was computed at."""
        self.inherited = False

    def shift(self, allocation: Allocation, sign: int) -> None:
        """Count an allocation of this queue in (1) or out (-1)."""
        for kind, units in allocation.items():
            used = self.used.get(kind)
            if used is not None:
                for unit, amount in units.items():
                    used[unit] = used.get(unit, 0) + sign * amount

    def headroom(self, kind: str) -> Units:
        """Return what the queue could still take if others held nothing."""
        used = self.used[kind]
        return {
            unit: max(0, limit - used.get(unit, 0))
            for unit, limit in self.limits[kind].items()
        }

    def exceeded(self) -> bool:
        """Tell whether the queue holds more than its limits allow."""
        return any(
            amount > self.limits[kind].get(unit, 0)
            for kind, units in self.used.items()
            for unit, amount in units.items()
        )


class Claim(NamedTuple):
    """Units that drain for one overtaken job; jobs of worse order leave them alone."""

    job: int
    order: Order
    queue: str
    worker: str
    allocation: Allocation


class Hold(NamedTuple):
    """What one holder has, and the gates that count it."""

    worker: "Worker"
    allocation: Allocation
    queue: Queue | None
    limiter: Gate | None


class Worker:
    """One machine's units.

    `away`: removed, or not seen yet, but still held from. `known`: whether what it has
    is known though it may be away, so that it counts for what could ever be met.
    """

    __slots__ = (
        "away",
        "capacity",
        "changes",
        "claim",
        "drained",
        "free",
        "holders",
        "known",
        "labels",
        "leaving",
        "moves",
        "name",
        "shut",
        "stocks",
        "views",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.away = True
        self.known = False
        self.labels: frozenset[str] = frozenset()
        self.capacity: Capacity = {}
        self.free: Capacity = {}
        self.holders: dict[Holder, Allocation] = {}
        self.views: dict[str, View] = {}
        self.claim: Claim | None = None
        self.drained: dict[str, set[str]] = {}
        self.leaving: dict[tuple[str, str], int] = {}
        self.shut: dict[str, set[str]] = {}
        self.stocks: dict[str, Stock] = {}
        self.moves = 0
        """Grows whenever `free` or `shut` changes."""
        self.changes = 0
        """Grows whenever `stocks` changes."""

    def stocks_for(self, queue: str) -> dict[str, Stock]:
        """Return what a queue could get here if nobody held anything."""
        view = self.views.get(queue)
        if view is None:
            return self.stocks
        if view.stocks_of != self.changes:
            view.stocks = self._stocks_of(view)
            view.stocks_of = self.changes
        return view.stocks

    def room(self, view: View, kind: str) -> Units:
        """Return what a view's queue may take now of a kind that the view limits."""
        if view.room_of != self.moves:
            view.room = {}
            view.room_of = self.moves
        room = view.room.get(kind)
        if room is None:
            free, shut = self.free.get(kind, NO_UNITS), self.shut.get(kind, ())
            room = view.room[kind] = {
                unit: min(free[unit], left)
                for unit, left in view.headroom(kind).items()
                if unit in free and unit not in shut
            }
        return room

    def units_for(self, kind: str, queue: str, order: Order | None) -> Units:
        """Return what is free for a job of this order; None sees past any claim."""
        free = self.free.get(kind, NO_UNITS)
        view = self.views.get(queue)
        limited = view is not None and kind in view.limits
        claim = self.claim
        if claim is None or order is None or order <= claim.order:
            if view is not None and limited:
                return self.room(view, kind)
            return free if kind not in self.shut else self._open(kind, free)
        claimed = claim.allocation.get(kind, NO_UNITS)
        units = _less(self._open(kind, free), claimed)
        if view is None or not limited:
            return units
        room = self.room(view, kind)
        if claim.queue == queue:
            room = _less(room, claimed)
        return {unit: min(left, units[unit]) for unit, left in room.items()}

    def take(self, allocation: Allocation, queue: str | None) -> None:
        """Subtract from what is free; the caller has checked that it is there."""
        self._shift(allocation, -1, queue)

    def give(self, allocation: Allocation, queue: str | None) -> None:
        """Add back to what is free."""
        self._shift(allocation, 1, queue)

    def lacks(self, allocation: Allocation) -> str | None:
        """Name the first unit that has less free than the allocation wants."""
        for kind, units in allocation.items():
            free = self.free.get(kind, NO_UNITS)
            for unit, amount in units.items():
                if free.get(unit, 0) < amount:
                    return f"{kind} {unit}"
        return None

    def _shift(self, allocation: Allocation, sign: int, queue: str | None) -> None:
        self.moves += 1
        if queue is not None and queue in self.views:
            self.views[queue].shift(allocation, -sign)
        for kind, units in allocation.items():
            free = self.free[kind]
            for unit, amount in units.items():
                free[unit] += sign * amount

    def _stocks_of(self, view: View) -> dict[str, Stock]:
        stocks = dict(self.stocks)
        for kind, limits in view.limits.items():
            sizes = self.stocks[kind].sizes if kind in self.stocks else NO_UNITS
            stocks[kind] = Stock(
                {
                    unit: min(limit, sizes[unit])
                    for unit, limit in limits.items()
                    if unit in sizes
                }
            )
        return stocks

    def _open(self, kind: str, free: Units) -> Units:
        shut = self.shut.get(kind, ())
        return {unit: amount for unit, amount in free.items() if unit not in shut}


def ordered(capacity: Capacity) -> Capacity:
    """Copy a capacity with units in the order in which people count them."""
    return {
        kind: {unit: units[unit] for unit in sorted(units, key=unit_order)}
        for kind, units in capacity.items()
    }


def _less(units: Units, claimed: Units) -> Units:
    return {
        unit: max(0, amount - claimed.get(unit, 0)) for unit, amount in units.items()
    }
