"""Which of several GPUs are nearest to each other, and which cores are near them.

A job that takes several whole GPUs gets those that NVLink or the PCI tree puts nearest.
Of sets that are equally near, the one that is farthest from the GPUs left over, so that
those are near each other for the next job. Nearness only orders units: it never keeps
a job from starting. A job that waits for GPUs to drain gets as many as possible that no
job holds, and of such sets the nearest.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

from grass.model.gpu_details import FAR, GpuDetails
from grass.model.resources import Allocation, Units

MOST_COMBINED = 8
"""Up to this many GPUs every set is tried: 70 sets at most."""
MOST_COMPARED = 16
"""Further GPUs are not compared; they are taken only where these are too few."""

HELD = 10_000
"""A GPU that a job holds counts as so far from each other one."""

Apart = dict[str, dict[str, int]]
"""How far each GPU is from each other one."""


def nearest_first(
    units: Units,
    whole: Units,
    amount: int,
    gpus: Mapping[str, GpuDetails],
    held: Collection[str] = (),
) -> Units:
    """Return the whole GPUs that an amount takes, nearest to each other; or none."""
    if not gpus:
        return {}
    size = max(units.values(), default=0)
    ready = [one for one, free in units.items() if free == size == whole.get(one)]
    count = amount // size if size else 0
    if not 1 < count < len(ready):
        return {}
    chosen = _nearest(ready[:MOST_COMPARED], count, gpus, held)
    return {unit: units[unit] for unit in chosen}


def near_cores_first(
    cores: Units, allocation: Allocation, gpus: Mapping[str, GpuDetails]
) -> Units:
    """Return cores with those first that are on the side of the given GPUs."""
    given = allocation.get("gpu") or allocation.get("vram") or {}
    sides = (gpus[unit].cores for unit in given if unit in gpus)
    near = frozenset[str]().union(*sides)
    return {core: free for core, free in cores.items() if core in near} | cores


def _nearest(
    units: list[str],
    count: int,
    gpus: Mapping[str, GpuDetails],
    held: Collection[str],
) -> tuple[str, ...]:
    """Return the nearest set of this many GPUs; the first of several in their order."""
    if count >= len(units):
        return tuple(units)
    extra = {one: HELD if one in held else 0 for one in units}
    apart = {
        one: {
            two: _distance(gpus, one, two) + extra[one] + extra[two]
            for two in units
            if two != one
        }
        for one in units
    }
    outlying = {one: sum(row.values()) for one, row in apart.items()}

    def rank(chosen: tuple[str, ...]) -> tuple[int, int]:
        inside = sum(apart[one][two] for one, two in combinations(chosen, 2))
        return inside, -sum(outlying[one] for one in chosen)

    return min(_sets(units, count, apart), key=rank)


def _sets(units: list[str], count: int, apart: Apart) -> Iterable[tuple[str, ...]]:
    """Yield the sets that are compared: all, or the one that grows from each GPU."""
    if len(units) <= MOST_COMBINED:
        return combinations(units, count)
    return (_grown(first, count, apart) for first in units)


def _grown(first: str, count: int, apart: Apart) -> tuple[str, ...]:
    chosen, left = [first], dict(apart[first])
    while len(chosen) < count:
        nearest = min(left, key=left.__getitem__)
        del left[nearest]
        chosen.append(nearest)
        for one in left:
            left[one] += apart[nearest][one]
    return tuple(chosen)


def _distance(gpus: Mapping[str, GpuDetails], one: str, two: str) -> int:
    details = gpus.get(one)
    return FAR if details is None else details.distance(two)
