"""What is known of a GPU besides its amount: its model, and what is near it.

A worker tells it as the details of a found unit, which are short texts; this module
writes and reads them. A declared GPU has none: its model is unknown, and it is far from
everything. `CUDA_VISIBLE_DEVICES` is made here, too, as it needs the same details.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from grass.model.resources import unit_order
from grass.model.selectors import matches
from grass.model.worker import FoundUnits, Unit

NEARNESS = ("nvlink", "same board", "same switch", "same cpu")
"""How two GPUs are connected, the nearest first; all others are far."""
FAR = len(NEARNESS)
LONGEST_TEXT = 256
"""A detail that would be longer is left out."""
MOST_CORES = 4096
UNITS = "gpu:"
"""How the choice of a GPU begins that names units, not a model."""

Details = Mapping[str, str | int]


class GpuDetails(NamedTuple):
    """One found GPU."""

    model: str = ""
    distances: Mapping[str, int] = {}
    """To other GPUs: an index of `NEARNESS`; one that is not listed is far."""
    cores: frozenset[str] = frozenset()
    """The cores of its side; none: not told."""

    def distance(self, other: str) -> int:
        """Return how far another GPU is."""
        return self.distances.get(other, FAR)


def has_model(model: str, pattern: str) -> bool:
    """Return whether a pattern is found in the name of a GPU, in any case."""
    return matches(f"(?i){pattern}", model)


def named_gpus(pattern: str) -> frozenset[str] | None:
    """Return the GPUs that `gpu:0` or `gpu:0,2` names; None: it is a pattern."""
    if not pattern.startswith(UNITS):
        return None
    return frozenset(pattern.removeprefix(UNITS).split(","))


def found_gpus(found: FoundUnits) -> dict[str, GpuDetails]:
    """Read the details of all GPUs that were found on a machine."""
    return {
        name: GpuDetails(
            str(unit.details.get("name", "")),
            _distances(unit.details),
            _cores(str(unit.details.get("cores", ""))),
        )
        for name, unit in found.get("gpu", {}).items()
    }


def neighbour_details(
    neighbours: Mapping[str, str], cores: Iterable[int] = ()
) -> dict[str, str | int]:
    """Write as details how near other GPUs are, and which cores are of its side."""
    found: dict[str, str | int] = {}
    for nearness in NEARNESS:
        names = [name for name, how in neighbours.items() if how == nearness]
        found[_key(nearness)] = ",".join(sorted(names, key=unit_order))
    found["cores"] = _ranges(sorted(cores))
    return {
        key: text for key, text in found.items() if 0 < len(str(text)) <= LONGEST_TEXT
    }


def visible_devices(gpus: Mapping[str, Unit], units: Iterable[str]) -> str:
    """Return the `CUDA_VISIBLE_DEVICES` that shows these units.

    Many programs read it as numbers, so it is numbers wherever it is sure how CUDA
    counts. Beside MIG instances and lost GPUs it is not: there it is UUIDs.
    """
    names = sorted(units, key=unit_order)
    return ",".join(_visible(name, gpus.get(name)) for name in names)


def _visible(name: str, unit: Unit | None) -> str:
    details = {} if unit is None else unit.details
    return str(details.get("index", details.get("uuid", name)))


def _distances(details: Details) -> dict[str, int]:
    return {
        name: distance
        for distance, nearness in enumerate(NEARNESS)
        for name in str(details.get(_key(nearness), "")).split(",")
        if name
    }


def _key(nearness: str) -> str:
    return nearness.replace(" ", "_")


def _ranges(cores: list[int]) -> str:
    """Write numbers as `0-15,32-62:2`: first and last, and the step where it is 2."""
    parts, at = list[str](), 0
    while at < len(cores):
        step = 2 if cores[at + 1 : at + 2] == [cores[at] + 2] else 1
        last = at
        while last + 1 < len(cores) and cores[last + 1] - cores[last] == step:
            last += 1
        tail = f"-{cores[last]}" if last > at else ""
        parts.append(f"{cores[at]}{tail}" + (":2" if tail and step == 2 else ""))
        at = last + 1
    return ",".join(parts)


def _cores(text: str) -> frozenset[str]:
    """Read what `_ranges` wrote; what is not understood counts as not told."""
    found: set[str] = set()
    for part in filter(None, text.split(",")):
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        numbers = (first, last or first, step or "1")
        if not all(one.isdecimal() and len(one) <= 4 for one in numbers):
            return frozenset()
        low, high, by = map(int, numbers)
        if by < 1 or high >= MOST_CORES:
            return frozenset()
        found.update(map(str, range(low, high + 1, by)))
    return frozenset(found)
