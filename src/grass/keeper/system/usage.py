"""What an attempt used: bytes written, and memory at its peak."""

from __future__ import annotations

import os
import resource


def peak_memory(kib: int) -> int | None:
    """Return a job's peak, unless the keeper's own hides it.

    A new process begins with the memory of the one that made it, and the kernel counts
    that into its peak: of a job that stayed below the keeper's size nothing is known.
    """
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib << 10 if kib > own else None


class Written:
    """Where an attempt writes, and how long the files were before it did."""

    __slots__ = ("files", "local")

    def __init__(self, files: list[tuple[str, int]], local: bool) -> None:
        self.files = files
        self.local = local

    def sizes(self) -> list[int]:
        """Return what was written to each; unknown on a disk that may hang is 0."""
        if not self.local:
            return [0]
        return [_size(path) - offset for path, offset in self.files]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
