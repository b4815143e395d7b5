"""Jobs per second on two workers over TLS, and on one in the broker's own process.

The same number of slots on the same machine: what differs is that broker and workers
are three processes that speak over encrypted connections.
"""

import time

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import FreshHome, fresh_home
from benchmarks.sizes import Sizes
from benchmarks.small_cluster import small_cluster

_NEAR, _FAR = "one worker in the broker's process", "two workers over TLS"
_WARM_UP = 200


def remote(sizes: Sizes) -> Benchmark:
    """Return the near and the far workers."""
    jobs = sizes.remote_jobs
    return Benchmark(
        "remote",
        [lambda: _both(jobs)],
        [
            Claim(
                "jobs/s, two workers over TLS against one in-process",
                lambda f: f[_FAR] / f[_NEAR],
                bar=0.7,
                goal=0.9,
                unit="x",
            )
        ],
        "jobs/s",
        [f"twice {jobs // 2:,} jobs `true` each, two at a time, in the order A B B A"],
    )


def _both(jobs: int) -> Figures:
    with fresh_home(slots=2) as near, small_cluster(workers=2, slots=1) as far:
        for fresh in (near, far):
            fresh.run(_WARM_UP, ["true"])
        took_s = {id(near): 0.0, id(far): 0.0}
        for fresh in (near, far, far, near):
            took_s[id(fresh)] += _seconds(fresh, jobs // 2)
        rates = [2 * (jobs // 2) / took_s[id(fresh)] for fresh in (near, far)]
    return {_NEAR: rates[0], _FAR: rates[1]}


def _seconds(fresh: FreshHome, jobs: int) -> float:
    started = time.perf_counter()
    fresh.run(jobs, ["true"])
    return time.perf_counter() - started
