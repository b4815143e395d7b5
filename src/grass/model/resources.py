"""Kinds, units, capacities, requests and allocations, as values.

A capacity is what a worker or a queue's view has, a request what a job asks for, an
allocation which units it was given. All three hold amounts; the scheduler knows what is
free. `capacity_from` and `request_from` parse what people write.
"""

import re
from collections.abc import Mapping
from typing import Literal

from grass.errors import UsageError
from grass.model import json5
from grass.model.amount_text import WHOLE, amount_text
from grass.model.amounts import (
    LARGEST,
    capacity_amount,
    decimal_number,
    request_amount,
)

Units = dict[str, int]
"""Unit name to amount, within one kind."""

Capacity = dict[str, Units]
Allocation = dict[str, Units]

Request = tuple[tuple[str, int], ...]
"""Kind and amount, sorted by kind, nothing zero: equal requests are equal values."""

GPU_KINDS = frozenset({"gpu", "vram"})
"""Kinds whose units are GPUs: those of one name are one device."""

AUTO = "auto"
"""An amount of memory of a GPU that is looked up in a profile."""
AUTO_VRAM = -1
"""The same as an amount of `vram`, in the default request of a queue or a setting."""

Policy = Literal["spread", "pack"]
"""Whether a job takes the unit and worker with most free, or the tightest fit."""

MOST_UNITS = 4096
ANY_MEMORY = 2**20 * WHOLE
"""A pebibyte: what a unit has of which nobody knows yet how much memory it has."""
RESERVED_KINDS = frozenset(
    {"home", "broker", "id", "name", "attempt", "project", "index", "all", "last"}
)
_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_UNIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

ONE_CPU: Request = (("cpu", WHOLE),)


def capacity_from(
    value: str | Mapping[str, object], what: str = "capacity"
) -> Capacity:
    """Read a capacity: `{gpu:4}`, `{ram:[512]}` or `{gpu:{'2':1,'4':1}}`."""
    given = json5.read_object(value, what) if isinstance(value, str) else value
    return {kind_name(kind): _units(kind, units) for kind, units in given.items()}


def request_from(value: str | Mapping[str, object], what: str = "request") -> Request:
    """Read a request: `{gpu:0.5, ram:"8G"}`. Zero amounts ask for nothing."""
    given = json5.read_object(value, what) if isinstance(value, str) else value
    amounts = {
        kind_name(kind): request_amount(asked, kind) for kind, asked in given.items()
    }
    return tuple(sorted((kind, asked) for kind, asked in amounts.items() if asked))


def default_request_from(
    value: str | Mapping[str, object], what: str = "request"
) -> Request:
    """Read a default request, whose memory of a GPU may be looked up: `vram:"auto"`."""
    given = json5.read_object(value, what) if isinstance(value, str) else value
    if given.get("vram") != AUTO:
        return request_from(given, what)
    asked = request_from({**given, "vram": 0}, what)
    return tuple(sorted((*asked, ("vram", AUTO_VRAM))))


def split_auto(default: Request) -> tuple[Request, bool]:
    """Return a default request without memory to look up, and whether it had that."""
    asked = tuple(one for one in default if one != ("vram", AUTO_VRAM))
    return asked, asked != default


def request_json(request: Request) -> dict[str, int | float | str]:
    """Return a request with decimals, for JSON."""
    return {
        kind: AUTO if asked == AUTO_VRAM else decimal_number(asked)
        for kind, asked in request
    }


def request_text(request: Request) -> str:
    """Return a request in words: `gpu 0.5, ram 8G`."""
    return ", ".join(f"{kind} {amount_text(asked, kind)}" for kind, asked in request)


def units_json(capacity: Capacity) -> dict[str, dict[str, int | float]]:
    """Return a capacity or allocation with decimals, for JSON."""
    return {
        kind: {unit: decimal_number(has) for unit, has in units.items()}
        for kind, units in capacity.items()
    }


def unit_order(name: str) -> tuple[int, int, str]:
    """Return the sort key of natural order: 0, 1, 2, 10, then names."""
    return (0, int(name), name) if name.isdecimal() else (1, 0, name)


def check_name(name: str, what: str) -> str:
    """Return a queue's or project's name if it is valid."""
    if not _KIND.match(name) or len(name) > 128:
        raise UsageError(
            f"{what} name `{name}` is not allowed",
            "use letters, digits, `_`, `.` and `-`, starting with a letter",
        )
    return name


def check_units(capacity: Capacity) -> None:
    """Raise if kinds, units or amounts are invalid."""
    for kind, units in capacity.items():
        kind_name(kind)
        if len(units) > MOST_UNITS:
            raise UsageError(f"{kind} has {len(units)} units")
        for unit, amount in units.items():
            _unit(kind, unit)
            if not 0 < amount <= LARGEST:
                raise UsageError(f"{kind} {unit} has an amount of {amount}")


def kind_name(name: str) -> str:
    """Return the name of a kind; raise if it cannot be one."""
    if not _KIND.match(name) or len(name) > 64:
        raise UsageError(
            f"`{name}` is not a resource kind", "use letters, digits, _ . -"
        )
    if name in RESERVED_KINDS:
        raise UsageError(f"`{name}` is reserved and cannot be a resource kind")
    return name


def _units(kind: str, value: object) -> Units:
    if isinstance(value, Mapping):
        named = {_unit(kind, name): has for name, has in value.items()}
    elif isinstance(value, list):
        named = {str(index): has for index, has in enumerate(value)}
    else:
        named = dict.fromkeys(map(str, range(_count(kind, value))), 1)
    if len(named) > MOST_UNITS:
        raise UsageError(f"{kind} has {len(named)} units", f"at most {MOST_UNITS} work")
    return {name: _positive(kind, has) for name, has in named.items()}


def _count(kind: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer() and 0 <= value <= MOST_UNITS:
        value = int(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise UsageError(f"{kind} has more units than any machine")
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        hint = f"for one unit of {value} write {{{kind}:[{value}]}}"
    elif isinstance(value, str):
        hint = f"for one unit of {value} write {{{kind}:['{value}']}}"
    else:
        hint = f"write {{{kind}:4}}"
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"{kind} must be a whole number of units, not {value}", hint)
    if value > MOST_UNITS:
        raise UsageError(f"{kind} has {value} units, more than {MOST_UNITS}", hint)
    return value


def _unit(kind: str, name: object) -> str:
    if not isinstance(name, str) or not _UNIT.match(name) or len(name) > 64:
        raise UsageError(f"`{name}` is not a name for a unit of {kind}")
    return name


def _positive(kind: str, value: object) -> int:
    amount = capacity_amount(value, kind)
    if amount == 0:
        raise UsageError(f"a unit of {kind} has an amount of 0", "leave it out")
    return amount
