"""Which GPUs may take jobs, from the journal alone: none from a fault to its end.

A fault ends with the later of two lines: the GPU works, and somebody acknowledges it.
"""

import json

from grass.model.jobs.job import Attempt
from grass.scheduler.worker_units import gpus_in
from grass.store.changes import Changes
from tests.simulation.world import Violation

FAILED, WORKS, ACKNOWLEDGED = "gpu-failed", "gpu-works", "gpu-acknowledged"


class FaultyGpus:
    """The GPUs whose fault is not over, by worker and unit."""

    def __init__(self) -> None:
        self._missing: dict[tuple[str, str], set[str]] = {}
        """What must be in the journal before a GPU takes a job again."""

    def written(self, changes: Changes) -> None:
        """Read the lines of a batch."""
        for line in changes.events:
            if line.kind not in (FAILED, WORKS, ACKNOWLEDGED, "worker-forgotten"):
                continue
            data = json.loads(line.data)
            if line.kind == "worker-forgotten":
                self._forget(data["worker"])
                continue
            key = (data["worker"], data["unit"].removeprefix("gpu:"))
            if line.kind == FAILED:
                self._missing[key] = {WORKS, ACKNOWLEDGED}
            elif key in self._missing:
                self._missing[key].discard(line.kind)

    def check(self, placed: Attempt) -> None:
        """Check a new attempt, which was placed after all calls of its batch."""
        for unit in gpus_in(placed.allocation):
            if placed.after is None and self._missing.get((placed.worker, unit)):
                raise Violation(f"job {placed.job} is placed on faulty gpu {unit}")

    def _forget(self, worker: str) -> None:
        self._missing = {
            key: left for key, left in self._missing.items() if key[0] != worker
        }
