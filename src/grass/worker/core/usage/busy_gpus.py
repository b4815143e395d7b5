"""Which GPUs are too busy for one more job whose memory is learned.

A GPU is busy from the time when the mean of its utilization over ten seconds reaches a
bar, until it is a tenth below it: one that is near the bar is not told again and again.
Looks are not evenly spaced, so each counts for the time since the one before. A GPU
that no process uses is not busy, whatever was measured a moment ago.
"""

from collections.abc import Iterable

from grass.devices.readings import GpuReading
from grass.model.amount_text import WHOLE

WINDOW_S = 10.0
FIRST_S = 1.0
"""For how long the first look counts."""
CALM_TENTHS = 9
"""A busy GPU is busy until its utilization is below this many tenths of the bar."""


class _Load:
    """The utilization of one GPU lately."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, float, int]] = []
        """When, for how long it counts, and the percent that it told."""

    def mean(self, percent: int, now_s: float) -> float:
        """Take in a look, and return the mean of the last seconds."""
        span_s = now_s - self._looks[-1][0] if self._looks else FIRST_S
        self._looks = [one for one in self._looks if one[0] > now_s - WINDOW_S]
        if span_s > 0:
            self._looks.append((now_s, min(span_s, WINDOW_S), percent))
        total_s = sum(span for _, span, _ in self._looks)
        return sum(span * told for _, span, told in self._looks) / total_s


class BusyGpus:
    """The GPUs whose utilization has reached a bar; without a bar, none."""

    def __init__(self, bar: int | None = None) -> None:
        """`bar` is a share in ten-thousandths."""
        self._bar = bar
        self._loads: dict[str, _Load] = {}
        self._busy: frozenset[str] = frozenset()

    def sampled(self, gpus: Iterable[GpuReading], now_s: float) -> frozenset[str]:
        """Take in a look, and return the units that are busy."""
        if self._bar is None:
            return self._busy
        used = {one.unit: one.utilization for one in gpus if _is_used(one)}
        known, self._loads = self._loads, {}
        busy = set()
        for unit, percent in used.items():
            if percent is not None:
                load = self._loads[unit] = known.get(unit) or _Load()
                if load.mean(percent, now_s) * WHOLE / 100 >= self._bar_of(unit):
                    busy.add(unit)
        self._busy = frozenset(busy)
        return self._busy

    def _bar_of(self, unit: str) -> float:
        assert self._bar is not None
        return self._bar * CALM_TENTHS / 10 if unit in self._busy else self._bar


def _is_used(reading: GpuReading) -> bool:
    return bool(reading.processes) or reading.pids_hidden
