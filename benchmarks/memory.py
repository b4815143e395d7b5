"""Resident memory of an idle daemon and its keeper, shared pages counted in each.

Read twice: right after the start, and after a few jobs have run. The bar holds for the
larger of the two.
"""

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import FreshHome, fresh_home
from benchmarks.sizes import Sizes

_FRESH, _USED = "freshly started", "after some jobs"
_MB = 1_000_000


def memory(sizes: Sizes) -> Benchmark:
    """Return the one contender."""
    jobs = sizes.memory_jobs
    return Benchmark(
        "memory",
        [lambda: _resident(jobs)],
        [
            Claim(
                "idle daemon and keeper, resident",
                lambda f: max(f[_FRESH], f[_USED]),
                bar=70,
                goal=50,
                unit="MB",
                at_most=True,
            )
        ],
        "MB",
        [f"MB of 10^6 bytes; `{_USED}`: {jobs} jobs"],
    )


def _resident(jobs: int) -> Figures:
    with fresh_home(slots=1) as fresh:
        started = _megabytes(fresh)
        fresh.run(jobs, ["true"])
        return {_FRESH: started, _USED: _megabytes(fresh)}


def _megabytes(fresh: FreshHome) -> float:
    processes = fresh.processes()
    if len(processes) != 2:
        raise RuntimeError(f"{len(processes)} processes instead of daemon and keeper")
    return float(sum(one.memory_info().rss for one in processes)) / _MB
