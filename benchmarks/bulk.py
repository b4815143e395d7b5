"""Enqueueing many jobs in one call from Python, each of them durable at its return.

The daemon is paused: the figure is that of taking jobs in, not of running them.
"""

import time

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import ONE_SLOT, fresh_home
from benchmarks.sizes import Sizes

_GRASS = "grass"


def bulk(sizes: Sizes) -> Benchmark:
    """Return the one contender."""
    jobs = sizes.bulk_jobs
    return Benchmark(
        "bulk",
        [lambda: _grass(jobs)],
        [
            Claim(
                f"{jobs:,} jobs enqueued in one call",
                lambda f: f[_GRASS],
                bar=20_000,
                goal=100_000,
                unit="/s",
            )
        ],
        "jobs/s",
    )


def _grass(jobs: int) -> Figures:
    commands = [["true"]] * jobs
    with fresh_home(slots=1) as fresh:
        fresh.client.pause()
        started = time.perf_counter()
        ids = fresh.client.enqueue_many(commands, **ONE_SLOT)
        taken = time.perf_counter() - started
    if ids["last"] - ids["first"] + 1 != jobs:
        raise RuntimeError(f"{ids} are not {jobs} jobs")
    return {_GRASS: jobs / taken}
