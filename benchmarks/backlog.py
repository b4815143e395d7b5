"""Jobs per second end to end with a long line behind them, and with none.

The line is of jobs of lower priority that wait for the same slots. Both contenders make
the same calls: enqueue while paused, resume, wait; all three are timed. Both daemons
are up at the same time and have run jobs before, and a round takes them in the order
A B B A, so that a machine that grows slower or faster meanwhile favours neither.
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
        [lambda: _both(full, jobs, line)],
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
        [f"twice {jobs:,} jobs `true` each, two at a time, in the order A B B A"],
    )


def _both(full: str, jobs: int, line: int) -> Figures:
    with fresh_home(slots=2) as empty, fresh_home(slots=2) as filled:
        for fresh in (empty, filled):
            fresh.client.pause()
            _seconds(fresh, jobs)
        _fill(filled, line)
        took_s = {id(empty): 0.0, id(filled): 0.0}
        for fresh in (empty, filled, filled, empty):
            took_s[id(fresh)] += _seconds(fresh, jobs)
        rates = [2 * jobs / took_s[id(fresh)] for fresh in (empty, filled)]
    return {_EMPTY: rates[0], full: rates[1]}


def _seconds(fresh: FreshHome, jobs: int) -> float:
    """Run jobs through a paused daemon; it is paused again afterwards."""
    started = time.perf_counter()
    ids = fresh.client.enqueue_many([["true"]] * jobs, **ONE_SLOT)
    fresh.client.resume()
    fresh.wait(ids)
    took_s = time.perf_counter() - started
    fresh.client.pause()
    return took_s


def _fill(fresh: FreshHome, line: int) -> None:
    for done in range(0, line, _CHUNK):
        commands = [["true"]] * min(_CHUNK, line - done)
        fresh.client.enqueue_many(commands, priority=-1, **ONE_SLOT)
