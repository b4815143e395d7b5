"""From the samples of a job type to the memory that its next attempt is given: pure.

Among the peaks that were measured the cheapest is chosen: more than an attempt uses is
wasted, and one that gets too little fails and runs again. A margin is added. An attempt
that ran out of memory says only that more is needed than it had, and one that failed
otherwise that it needed at least its peak. A type whose memory keeps growing is given
what its longest attempt would have used after half as long again.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from grass.model.amount_text import WHOLE, amount_text
from grass.model.amounts import GIB
from grass.model.usage.profiles import MeasuredRun

MIB = 2**20
LEAST_MARGIN = 256 * MIB
MARGIN_PART = 20
"""The margin is at least this part of the memory: a twentieth."""
AFTER_OUT_OF_MEMORY = 1.5
"""How much more is given than what was not enough."""
GROWTH_PART = 20
"""Memory grows if each of the last two spans added at least this part of the peak."""
LEAST_GROWTH = 64 * MIB
LONGER = 0.5
"""How much longer than the longest attempt the next may run, if memory grows."""
_COMPLETE = ("succeeded", "running")


class Prediction(NamedTuple):
    """What the next attempt is given."""

    memory: int
    """In bytes."""
    why: str
    grows: bool = False

    @property
    def amount(self) -> int:
        """The memory as an amount of vram, rounded up."""
        return -(-self.memory * WHOLE // GIB)


def predicted(samples: Sequence[MeasuredRun]) -> Prediction | None:
    """Return what the next attempt is given; None: nothing is known."""
    if not any(one.end in _COMPLETE for one in samples):
        return None
    measured = [one for one in samples if one.end != "out-of-memory"]
    found = _of_growth(measured) or _of_peaks(measured)
    bound = _lower_bound(samples)
    if bound is not None and bound.memory > found.memory:
        return bound._replace(grows=found.grows)
    return found


def _of_peaks(samples: Sequence[MeasuredRun]) -> Prediction:
    peaks = sorted(one.peak for one in samples)
    base = _cheapest(peaks)
    spread = max(0, _percentile(peaks, 0.99) - base)
    margin = max(base // MARGIN_PART, LEAST_MARGIN, spread)
    runs = "1 run" if len(peaks) == 1 else f"{len(peaks)} runs"
    so_far = " so far" if all(one.end == "running" for one in samples) else ""
    why = f"at most {size(peaks[-1])} in {runs}{so_far}"
    spare = base + margin - peaks[-1]
    if spare > 0:
        why += f", and {size(spare)} to spare"
    return Prediction(base + margin, why)


def _cheapest(peaks: Sequence[int]) -> int:
    """Return the peak that costs least if all had been given it; they are sorted.

    One that used less wastes the rest; one that used more runs again, so it costs what
    it was given and what it uses: all together the number of peaks times the memory
    given, and the sum of the peaks above it, less that of the others.
    """
    costs = (
        (len(peaks) * peak - 2 * so_far, -peak)
        for peak, so_far in zip(peaks, accumulate(peaks), strict=True)
    )
    return -min(costs)[1]


def _percentile(numbers: Sequence[int], part: float) -> int:
    return numbers[max(0, math.ceil(part * len(numbers)) - 1)]


def _lower_bound(samples: Sequence[MeasuredRun]) -> Prediction | None:
    """Return what is needed after attempts that had too little, unless one had more."""
    short = [one for one in samples if one.end == "out-of-memory"]
    if not short:
        return None
    worst = max(short, key=lambda one: one.peak)
    if any(one.peak > worst.peak and one.end in _COMPLETE for one in samples):
        return None
    why = (
        f"job {worst.job} ran out of memory with {size(worst.peak)}: half as much more"
    )
    return Prediction(int(worst.peak * AFTER_OUT_OF_MEMORY), why)


def _of_growth(samples: Sequence[MeasuredRun]) -> Prediction | None:
    """Follow the curve of a type whose memory keeps growing with time."""
    longest = max(samples, key=lambda one: one.ran_s)
    slope = growth(longest)
    if slope is None:
        return None
    peak = max(one.peak for one in samples)
    memory = peak + slope * longest.ran_s * LONGER
    margin = max(memory / MARGIN_PART, LEAST_MARGIN)
    why = (
        f"its memory grows by {size(int(slope * 3600))} an hour: {size(longest.peak)}"
        f" after {_lasting(longest.ran_s)}, reserved for"
        f" {_lasting(longest.ran_s * (1 + LONGER))}"
    )
    return Prediction(int(memory + margin), why, grows=True)


def growth(sample: MeasuredRun) -> float | None:
    """Return by how many bytes a second memory grew to the end; None: it did not.

    Two spans must have grown: from a quarter of the time to the half, and from there
    on. A single step, such as the first evaluation, is no growth.
    """
    last: int = len(sample.marks) - 1
    while last > 0 and 2**last > 0.75 * sample.ran_s:
        last -= 1
    if last < 1:
        return None
    before, half, end = sample.marks[last - 1], sample.marks[last], sample.peak
    least = max(LEAST_GROWTH, sample.peak // GROWTH_PART)
    if half - before < least or end - half < least:
        return None
    return float((end - half) / (sample.ran_s - 2**last))


def _lasting(time_s: float) -> str:
    for unit, length_s in (("d", 86400), ("h", 3600), ("m", 60)):
        if time_s >= 2 * length_s:
            return f"{time_s / length_s:.0f}{unit}"
    return f"{time_s:.0f}s"


def size(memory: int) -> str:
    """Write a number of bytes as people do."""
    return amount_text(-(-memory * WHOLE // GIB), "vram")
