"""How fast output is read: the size of chunks, and a throttle while jobs come and go.

Most of what a chunk costs does not depend on its size, so chunks are large where a link
is fast. But a heartbeat may have to wait for a chunk that is being sent, so over a slow
link they are small.

A reader of a gigabyte would take all the time of the event loop, which the broker
shares with its readers, and of the worker's cores. So while jobs start and end, readers
are throttled, except for small reads. Readers pause one after the other, each after its
own chunk and in proportion to its size: all of them together keep the rate however many
there are, and none waits for what another one read before it came.
"""

LEAST, MOST = 16 * 1024, 256 * 1024
FAST_S, SLOW_S = 0.05, 0.2
"""A chunk that takes less makes the next one larger; one that takes more, smaller."""
BYTES_PER_S = 8 * 1024 * 1024
"""What all readers together get while jobs come and go."""
UNTHROTTLED = 16 * 1024
"""Up to this many bytes need no pause: a line that is followed, a short output."""
ACTIVE_S = 0.05
"""After this time without a commit, jobs are assumed not to come and go."""


class ChunkSizes:
    """The length of the next chunk, for each worker."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}

    def length(self, worker: str) -> int:
        """Return how many bytes to ask for."""
        return self._lengths.get(worker, LEAST)

    def received(self, worker: str, size: int, took_s: float) -> None:
        """Adapt to how long a chunk of that size took."""
        length = self.length(worker)
        if took_s > SLOW_S:
            self._lengths[worker] = max(LEAST, length // 2)
        elif took_s < FAST_S and size >= length:
            self._lengths[worker] = min(MOST, 2 * length)

    def forget(self, worker: str) -> None:
        """Begin anew: the worker may come back over another link."""
        self._lengths.pop(worker, None)


class Throttle:
    """Tells readers how long to pause; times are those of a monotonic clock."""

    def __init__(self) -> None:
        self._committed_at = float("-inf")
        self._taken_until = float("-inf")

    def committed(self, now: float) -> None:
        """Note that something was committed."""
        if not self._is_active(now):
            # The readers that paused have gone on since.
            self._taken_until = now
        self._committed_at = now

    def pause_until(self, size: int, now: float) -> float:
        """Return until when a reader of this many bytes pauses."""
        if not self._is_active(now):
            return now
        self._taken_until = max(self._taken_until, now) + size / BYTES_PER_S
        return now if size <= UNTHROTTLED else self._taken_until

    def pause_s(self, until: float, now: float) -> float:
        """Return how long to sleep before asking again; 0: go on."""
        active_s = self._committed_at + ACTIVE_S - now
        return max(0.0, min(until - now, active_s))

    def _is_active(self, now: float) -> bool:
        return now < self._committed_at + ACTIVE_S
