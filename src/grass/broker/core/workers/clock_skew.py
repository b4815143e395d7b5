"""Clocks of workers that differ from the broker's.

Nothing is decided by them. But people read times in what jobs write, and a clock that
is wrong by more than a minute is worth a word.
"""

from grass.model.worker import Worker

MOST_SKEW_S = 60.0


def note(worker: Worker, wall_us: int, now_us: int) -> None:
    """Note what a worker's wall clock shows now; 0: it does not say."""
    worker.skew_s = (wall_us - now_us) / 1e6 if wall_us else 0.0


def told_skew_s(worker: Worker) -> float | None:
    """Tell how far a worker's clock is ahead, if that is worth a word."""
    return worker.skew_s if abs(worker.skew_s) > MOST_SKEW_S else None
