"""Output of pruned jobs: it must be removed, and no other may be.

Several calls may share a batch: a machine is forgotten, jobs are pruned, and it comes
back. So the lines of the journal are followed in their order: output is removed from
the machines that were known when its job was pruned.
"""

import json

from grass.store.changes import Changes
from tests.simulation.memory_store import MemoryDisk


class PrunedOutput:
    """Which output must be removed, by worker."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk
        self._doomed: dict[str, set[str]] = {}

    def of(self, worker: str) -> set[str]:
        """Return the output that a worker must have removed at rest."""
        return self._doomed.get(worker, set())

    def written(self, changes: Changes) -> None:
        """Follow a batch that is not on the disk yet."""
        known = set(self._disk.workers)
        for line in changes.events:
            if line.kind == "worker-connected":
                known.add(json.loads(line.data)["worker"])
            elif line.kind == "worker-forgotten":
                worker = json.loads(line.data)["worker"]
                known.discard(worker)
                self._doomed.pop(worker, None)
            elif line.kind == "pruned":
                for first, last in json.loads(line.data)["ids"]:
                    for job in range(first, last + 1):
                        self._expect_removal(job, known)

    def _expect_removal(self, job: int, known: set[str]) -> None:
        for attempt in self._disk.attempts.get(job, {}).values():
            if attempt.output is not None and attempt.worker in known:
                self._doomed.setdefault(attempt.worker, set()).add(attempt.output)
