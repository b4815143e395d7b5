"""Functions and arguments of simulated tasks: a few small blobs, named by many jobs."""

import hashlib
from random import Random

from msgspec.structs import replace

from grass.model.jobs.spec import JobPatch
from grass.model.jobs.task_call import Arguments, TaskCall

_CONTENTS = [bytes(range(size)) for size in (0, 3, 4, 9, 17, 40)]
_DATA = {hashlib.sha256(data).hexdigest(): data for data in _CONTENTS}


def blob_data(name: str) -> bytes:
    """Return the bytes of a blob."""
    return _DATA[name]


class TaskBlobs:
    """Which jobs of a run name blobs; in some runs none does."""

    def __init__(self, seed: int, *, is_used: bool) -> None:
        # A source of its own: runs without blobs have the history they had.
        self._rng = Random(f"task blobs {seed}")
        share = self._rng.choice((0.0, 0.6, 1.0))
        self._share = share if is_used else 0.0
        self._names = self._rng.sample(sorted(_DATA), self._rng.randint(1, len(_DATA)))

    def prunes(self, until_us: int) -> list[int]:
        """Return when all tasks that have ended are forgotten."""
        count = self._rng.choice((0, 10, 30)) if self._share else 0
        return [self._rng.randint(0, until_us) for _ in range(count)]

    def with_task(self, patch: JobPatch) -> JobPatch:
        """Have some tasks name a function that is to be uploaded."""
        is_task = any(name == "TASK" for name, _ in patch.env or ())
        if not is_task or self._rng.random() >= self._share:
            return patch
        return replace(patch, task=TaskCall(self._rng.choice(self._names), "3.11"))

    def arguments(self) -> Arguments:
        """Return the arguments of a task, small or a blob."""
        if self._rng.random() < 0.5:
            return Arguments(b"some")
        return Arguments(blob=self._rng.choice(self._names))
