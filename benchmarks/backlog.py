"""Jobs per second end to end with a long line behind them, and with none.

The line is of jobs of lower priority that wait for the same slots. Both contenders make
the same calls: enqueue while paused, resume, wait; all three are timed.
"""

import time

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import ONE_SLOT, FreshHome, fresh_home
from benchmarks.sizes import Sizes

_EMPTY = "empty queue"
_CHUNK = 10_000


def backlog(sizes: Sizes) -> Benchmark:
    """Return the empty and the full queue."""
    jobs, line = sizes.backlog_jobs, sizes.long_line
    full = f"{line:,} queued"
    return Benchmark(
        "backlog",
        [lambda: _rate(_EMPTY, jobs, 0), lambda: _rate(full, jobs, line)],
        [
            Claim(
                f"jobs/s end to end, {line:,} queued against none",
                lambda f: f[full] / f[_EMPTY],
                bar=0.8,
                goal=0.95,
                unit="x",
            )
        ],
        "jobs/s",
        [f"{jobs:,} jobs `true`, two at a time"],
    )


def _rate(label: str, jobs: int, line: int) -> Figures:
    with fresh_home(slots=2) as fresh:
        fresh.client.pause()
        _fill(fresh, line)
        started = time.perf_counter()
        ids = fresh.client.enqueue_many([["true"]] * jobs, **ONE_SLOT)
        fresh.client.resume()
        fresh.wait(ids)
        return {label: jobs / (time.perf_counter() - started)}


def _fill(fresh: FreshHome, line: int) -> None:
    for done in range(0, line, _CHUNK):
        commands = [["true"]] * min(_CHUNK, line - done)
        fresh.client.enqueue_many(commands, priority=-1, **ONE_SLOT)
