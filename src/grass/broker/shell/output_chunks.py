"""How much of an output to ask a worker for at once: as much as comes soon.

Most of what a piece costs does not depend on its size, so pieces are large where a
link is quick. But a heartbeat may have to wait for a piece that is on its way, so over
a slow link they are small.
"""

LEAST, MOST = 16 * 1024, 256 * 1024
SOON_S, LATE_S = 0.05, 0.2
"""Within which time a piece allows for a larger one, and after which for a smaller."""


class Strides:
    """The length of the next piece, for each worker."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}

    def length(self, worker: str) -> int:
        """Tell how much to ask for."""
        return self._lengths.get(worker, LEAST)

    def came(self, worker: str, size: int, took_s: float) -> None:
        """Note how long a piece of that size was on its way."""
        length = self.length(worker)
        if took_s > LATE_S:
            self._lengths[worker] = max(LEAST, length // 2)
        elif took_s < SOON_S and size >= length:
            self._lengths[worker] = min(MOST, 2 * length)

    def forget(self, worker: str) -> None:
        """Begin anew: it may come back over another link."""
        self._lengths.pop(worker, None)
