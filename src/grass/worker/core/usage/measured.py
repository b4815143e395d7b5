"""What was measured of one attempt: now, at most, and points of its history."""

import msgspec

from grass.model.usage.attempt_usage import (
    ResourceUse,
    UnitUse,
    UsagePoint,
    is_within,
    most,
)
from grass.worker.core.usage.samples import AttemptUse

YOUNG_S = 10.0
"""How long an attempt is sampled often: it takes most of its memory then."""
RATE_S = 0.95
"""Processor use is the mean of at least so long."""


class Measured(msgspec.Struct):
    """What is known of one attempt's usage."""

    now: ResourceUse | None = None
    peak: ResourceUse | None = None
    points: list[UsagePoint] = []
    """Not yet written."""
    last_s: float | None = None
    """When it was last measured, in seconds since boot."""
    cpu: float | None = None
    cpu_from: tuple[float, float] | None = None
    """When its processor time was what, at the beginning of the next rate."""

    def add(self, at_s: float, age_s: float, use: AttemptUse) -> None:
        """Take in a look at its processes and GPUs."""
        self._note_rate(at_s, age_s, use.cpu_s)
        gpus = _gpus_of(use)
        self._set(ResourceUse(use.memory, self.cpu, gpus, use.note))
        span_s = age_s if self.last_s is None else at_s - self.last_s
        self.last_s = at_s
        self.points.append(
            UsagePoint(
                round(age_s, 2),
                round(min(span_s, age_s), 2),
                use.memory,
                self.cpu,
                {unit: (one.memory, one.utilization) for unit, one in gpus.items()},
            )
        )

    def note_gpus(self, use: AttemptUse) -> None:
        """Take in a look at its GPUs alone."""
        if self.now is None:
            return
        before = {unit: one.memory for unit, one in self.now.gpus.items()}
        if before != use.gpu_memory:
            memory = self.now.memory
            self._set(ResourceUse(memory, self.cpu, _gpus_of(use), use.note))

    def _set(self, now: ResourceUse) -> None:
        self.now = now
        if self.peak is None:
            self.peak = now
        elif not is_within(now, self.peak):
            self.peak = most([self.peak, now])

    def _note_rate(self, at_s: float, age_s: float, cpu_s: float) -> None:
        """Compute the cores in use, over at least a second."""
        if self.cpu_from is None:
            # From its start on; after a restart of the daemon from now on.
            began = age_s < YOUNG_S and self.peak is None
            self.cpu_from = (at_s - age_s, 0.0) if began else (at_s, cpu_s)
        from_s, before_s = self.cpu_from
        if at_s - from_s >= RATE_S:
            self.cpu = round(max(0.0, cpu_s - before_s) / (at_s - from_s), 2)
            self.cpu_from = at_s, cpu_s


def _gpus_of(use: AttemptUse) -> dict[str, UnitUse]:
    memory, busy = use.gpu_memory, use.gpu_utilization
    units = memory.keys() | busy.keys()
    return {unit: UnitUse(memory.get(unit), busy.get(unit)) for unit in sorted(units)}
