"""Jobs go before output: while they come and go, output is read at a measured pace.

Whoever reads a gigabyte takes all the time that a machine has. The broker shares its
one loop with the readers, and a worker its cores with the jobs, so a reader would slow
down whatever starts and ends meanwhile. When nothing does, nobody is held back, and a
little is given at once at any time.

Readers rest one after the other, each after its own piece and for as long as that is
worth. So all of them together keep the pace however many there are, and none waits for
what another one read before it came.
"""

BYTES_PER_S = 8 * 1024 * 1024
"""What all readers together get while jobs come and go."""
LITTLE = 16 * 1024
"""So few bytes are given without a rest: a line that is followed, a short output."""
LASTS_S = 0.05
"""After so long without a change, jobs are taken not to come and go."""


class Pace:
    """Tells readers how long to rest; times are those of a clock that cannot jump."""

    def __init__(self) -> None:
        self._changed_at = float("-inf")
        self._taken_until = float("-inf")

    def changed(self, now: float) -> None:
        """Note that something was committed."""
        if not self._jobs_move(now):
            # Those who rested have gone on since.
            self._taken_until = now
        self._changed_at = now

    def took(self, size: int, now: float) -> float:
        """Tell until when whoever gets so many bytes is to rest."""
        if not self._jobs_move(now):
            return now
        self._taken_until = max(self._taken_until, now) + size / BYTES_PER_S
        return now if size <= LITTLE else self._taken_until

    def rest_s(self, until: float, now: float) -> float:
        """Tell how long to sleep before asking again; nothing: go on."""
        lasts_s = self._changed_at + LASTS_S - now
        return max(0.0, min(until - now, lasts_s))

    def _jobs_move(self, now: float) -> bool:
        return now < self._changed_at + LASTS_S
