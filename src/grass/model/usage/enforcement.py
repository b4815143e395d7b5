"""What of a request is enforced, and by what a worker can enforce it.

Without enforcement a request is a promise: a job that uses more takes it from others. A
worker says what it can enforce, and a job that wants it is told where that is nothing.
"""

from typing import Literal

from grass.model.amount_text import WHOLE
from grass.model.resources import GPU_KINDS, Request

Enforcement = Literal["warn", "stop"]
"""What happens to a job that uses more memory of a shared GPU than it reserved."""

MPS = "mps"
"""A share of a GPU is a cap on its multiprocessors and its memory."""
GPU_MEMORY = "gpu-memory"
"""Libraries are told their share, and a job that uses more is warned or stopped."""
HOST_MEMORY, CORES = "memory", "cpu"
"""By cgroup."""
FEATURES = (MPS, GPU_MEMORY, HOST_MEMORY, CORES)

_SHARE = "share of a GPU's multiprocessors"
_BY = {
    "GPUs": {MPS, GPU_MEMORY},
    _SHARE: {MPS},
    "memory": {HOST_MEMORY},
    "cores": {CORES},
}


def wanted(request: Request, threads: int | None) -> list[str]:
    """Name what is to be enforced of a request.

    Cores are enforced only where a job has asked for them itself: one that says nothing
    is counted as one core, and may well use more.
    """
    kinds = dict(request)
    found = [
        ("GPUs", not GPU_KINDS.isdisjoint(kinds)),
        (_SHARE, 0 < kinds.get("gpu", 0) < WHOLE),
        ("memory", "ram" in kinds),
        ("cores", threads is not None and "cpu" in kinds),
    ]
    return [what for what, asked in found if asked]


def can_enforce(what: str, features: tuple[str, ...]) -> bool:
    """Tell whether a worker with these features enforces this part of a request."""
    return not _BY[what].isdisjoint(features)
