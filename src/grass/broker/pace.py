"""Jobs go before output: while they come and go, output is read at a measured pace.

Whoever reads a gigabyte takes all the time that a machine has. The broker shares its
one loop with the readers, and a worker its cores with the jobs, so a reader would slow
down whatever starts and ends meanwhile. When nothing does, nobody is held back.
"""

BYTES_PER_S = 8 * 1024 * 1024
"""What all readers together get while jobs come and go."""
LASTS_S = 0.05
"""After so long without a change, jobs are taken not to come and go."""


class Pace:
    """Tells readers how long to rest; times are those of a clock that cannot jump."""

    def __init__(self) -> None:
        """Hold nobody back."""
        self._changed_at = float("-inf")
        self._paid_until = float("-inf")

    def changed(self, now: float) -> None:
        """Note that something was committed."""
        self._changed_at = now

    def took(self, size: int, now: float) -> None:
        """Note that a reader was given so many bytes."""
        self._paid_until = max(self._paid_until, now) + size / BYTES_PER_S

    def rest_s(self, now: float) -> float:
        """Tell how long to wait before the next piece, after which to ask again."""
        lasts_s = self._changed_at + LASTS_S - now
        return max(0.0, min(self._paid_until - now, lasts_s))
