"""What an attempt uses, as it was measured: memory, cores, and of each GPU.

Sizes are bytes, processor use is in cores, and a GPU's utilization in percent. What is
not known is None, never a guess.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

N = TypeVar("N", int, float)


class UnitUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an attempt uses of one GPU."""

    memory: int | None = None
    utilization: float | None = None


class ResourceUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an attempt uses at one moment, or the most of each that it used."""

    memory: int = 0
    cpu: float | None = None
    gpus: dict[str, UnitUse] = {}
    """By the name of the unit."""
    note: str = ""
    """How it was measured, where that is worth a word."""


class AttemptUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an attempt uses now, and the most that it used."""

    now: ResourceUse | None = None
    peak: ResourceUse | None = None


class UsagePoint(msgspec.Struct, frozen=True, array_like=True):
    """One line of a history: what was used during a span of time.

    Sizes are the most in that span, all else is its mean.
    """

    at_s: float
    """When the span ended, in seconds since the start."""
    span_s: float
    memory: int
    cpu: float | None = None
    gpus: dict[str, tuple[int | None, float | None]] = {}
    """Memory and utilization of each unit."""


def usage_path(output: str | None) -> str | None:
    """Return where the history of an attempt is whose output Grass named: beside it."""
    name = (output or "").removesuffix(".log")
    return f"{name}.usage" if name and name != output else None


def most(uses: Iterable[ResourceUse]) -> ResourceUse:
    """Return the most of each that was used."""
    memory, cpu, note = 0, None, ""
    gpus: dict[str, UnitUse] = {}
    for use in uses:
        memory, cpu = max(memory, use.memory), larger(cpu, use.cpu)
        note = use.note or note
        for unit, one in use.gpus.items():
            known = gpus.get(unit, one)
            gpus[unit] = UnitUse(
                larger(known.memory, one.memory),
                larger(known.utilization, one.utilization),
            )
    return ResourceUse(memory, cpu, gpus, note)


def is_within(use: ResourceUse, limit: ResourceUse) -> bool:
    """Tell whether nothing of what was used is more than this."""
    return (
        use.memory <= limit.memory
        and _at_most(use.cpu, limit.cpu)
        and use.note in ("", limit.note)
        and all(
            (most_of := limit.gpus.get(unit)) is not None
            and _at_most(one.memory, most_of.memory)
            and _at_most(one.utilization, most_of.utilization)
            for unit, one in use.gpus.items()
        )
    )


def _at_most(number: float | None, limit: float | None) -> bool:
    return number is None or (limit is not None and number <= limit)


def larger(one: N | None, other: N | None) -> N | None:
    """Return the larger of two numbers; one that is not known does not count."""
    known = [number for number in (one, other) if number is not None]
    return max(known, default=None)
