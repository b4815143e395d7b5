"""What attempts of forgotten jobs held, as sums.

Attempts are added up if they are of one owner and project, held the same units of one
worker, and began and ended in the same hours: then a part of a sum is taken for a part
of its time, as of a single attempt. Of attempts that ended long before their job was
forgotten the days count instead of the hours, which keeps the sums few.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from grass.model.jobs.job import Attempt, Job
from grass.model.resources import Allocation

HOUR_US = 3600 * 1_000_000
DAY_US = 24 * HOUR_US
RECENT_US = 31 * DAY_US
"""Attempts that ended longer ago are added up by days."""
KEPT_US = 3 * 366 * DAY_US
"""Sums that are older than the newest one by more than this are forgotten."""


class SumKey(NamedTuple):
    """The attempts that are added up."""

    ended_in: int
    """The beginning of the hour or day in which they ended, and began."""
    began_in: int
    owner: str
    project: str
    worker: str
    allocation: str
    """The units that count in a timeline, as JSON."""


class HeldSum(NamedTuple):
    """The sum of some attempts."""

    began_at: int
    """When the first one began."""
    ended_at: int
    """When the last one ended."""
    held_us: int
    attempts: int

    def plus(self, other: "HeldSum") -> "HeldSum":
        """Return the sum of both."""
        return HeldSum(
            min(self.began_at, other.began_at),
            max(self.ended_at, other.ended_at),
            self.held_us + other.held_us,
            self.attempts + other.attempts,
        )


HeldSums = dict[SumKey, HeldSum]

_encoder = msgspec.json.Encoder(order="sorted")


def add(sums: HeldSums, more: Mapping[SumKey, HeldSum]) -> None:
    """Add sums to others."""
    for key, one in more.items():
        sums[key] = sums[key].plus(one) if key in sums else one


def oldest_kept(sums: Iterable[SumKey]) -> int:
    """Return the time before which sums are forgotten, by the newest of these."""
    return max(key.ended_in for key in sums) - KEPT_US


def held_by(job: Job, attempts: Iterable[Attempt], now: int) -> HeldSums:
    """Return what the attempts of an ended job held."""
    sums: HeldSums = {}
    for one in attempts:
        began, ended = one.started_at, one.finished_at
        ended = (job.finished_at or began) if ended is None else ended
        units = _encoder.encode(_counted(one.allocation)).decode()
        slot = HOUR_US if now - ended <= RECENT_US else DAY_US
        slots = ended - ended % slot, began - began % slot
        key = SumKey(*slots, job.owner, job.project, one.worker, units)
        add(sums, {key: HeldSum(began, ended, max(0, ended - began), 1)})
    return sums


def _counted(allocation: Allocation) -> Allocation:
    """Return the shares of GPUs, or their memory where it has none, and all cores."""
    shares = allocation.get("gpu", {})
    memory = allocation.get("vram", {})
    kept = {
        "gpu": shares,
        "vram": {unit: memory[unit] for unit in memory if not shares.get(unit)},
        "cpu": {"": sum(allocation.get("cpu", {}).values())},
    }
    return {kind: {**units} for kind, units in kept.items() if any(units.values())}
