"""Which units of one kind give an amount: one of them, or whole ones and a rest.

Functions of free amounts. Of the units that fit, a `Pick` takes one: the tightest, or
the one with most free. Ties go to the first unit, so a caller chooses by the order of
the units it passes. A unit is whole while no job holds any of it: then it offers what
`whole` says, which is less than its size where some of it is withheld.
"""

from collections.abc import Callable

from grass.model.resources import Units
from grass.scheduler.worker_units import KindUnits

Pick = Callable[[Units, int], str | None]
"""Chooses one of the units that can give an amount."""


def take_kind(
    units: Units, kind_units: KindUnits, whole: Units, amount: int, pick: Pick
) -> Units | None:
    """Choose units of one kind, or None."""
    if amount <= kind_units.largest:
        unit = pick(units, amount)
        return None if unit is None else {unit: amount}
    return _take_several(units, whole, amount, pick)


def largest_on_one(units: Units) -> int:
    """Return the largest amount that one unit can give."""
    return max(units.values(), default=0)


def largest_on_several(units: Units, whole: Units) -> int:
    """Return the largest amount that whole units and a part of one more can give."""
    in_whole = partial = 0
    for unit, free in units.items():
        if free == whole.get(unit):
            in_whole += free
        elif free > partial:
            partial = free
    return in_whole + partial


def tightest(units: Units, amount: int) -> str | None:
    """Return the unit that has least left after giving an amount, or None."""
    chosen, least = None, 0
    for unit, free in units.items():
        if free == amount:
            return unit
        if free > amount and (chosen is None or free < least):
            chosen, least = unit, free
    return chosen


def loosest(units: Units, amount: int) -> str | None:
    """Return the unit that has most left after giving an amount, or None."""
    chosen, most = None, amount - 1
    for unit, free in units.items():
        if free > most:
            chosen, most = unit, free
    return chosen


def largest_whole(units: Units, whole: Units) -> str | None:
    """Return the largest unit of which no job holds any, or None."""
    chosen, most = None, 0
    for unit, free in units.items():
        if free > most and free == whole.get(unit):
            chosen, most = unit, free
    return chosen


def _take_several(units: Units, whole: Units, amount: int, pick: Pick) -> Units | None:
    left = dict(units)
    taken: Units = {}
    while True:
        unit = pick(left, amount)
        if unit is not None:
            taken[unit] = amount
            return taken
        unit = largest_whole(left, whole)
        if unit is None:
            return None
        taken[unit] = left.pop(unit)
        amount -= taken[unit]
