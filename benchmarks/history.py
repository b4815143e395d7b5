"""A long history: how soon a page of it is answered, by any filter and in any order.

The jobs have ended, in two ways, with names, owners and priorities that differ. Asked
is what the page of jobs asks, over the daemon's socket; the slowest pair of a filter
and an order counts, of each the median.
"""

import statistics
import time

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import ONE_SLOT, FreshHome, fresh_home
from benchmarks.sizes import Sizes

_FILTERS = {
    "no filter": "",
    "a state": "&state=cancelled",
    "a rare state": "&state=succeeded",
    "a queue and a state": "&queue=bench&state=cancelled",
    "a project": "&select=@p3",
    "an owner": "&owner=nobody",
    "a range of ids": "&select=10-90000",
    "a text in names": "&select=name~n-77",
}
_ORDERS = [
    sign + key
    for key in ("id", "name", "started", "ended", "duration", "priority")
    for sign in ("", "-")
]
_TIMES = 3
_PROJECTS = 20


def history(sizes: Sizes) -> Benchmark:
    """Return the slowest order of each filter."""
    return Benchmark(
        "history",
        [lambda: _slowest(sizes.history)],
        [
            Claim(
                f"a page of {sizes.history:,} jobs, any filter in any order",
                lambda f: max(f.values()),
                bar=300,
                goal=100,
                unit="ms",
                at_most=True,
            )
        ],
        "ms",
        [f"{len(_ORDERS)} orders each, {_TIMES} times, the slowest order's median"],
    )


def _slowest(jobs: int) -> Figures:
    with fresh_home(slots=2) as fresh:
        _fill(fresh, jobs)
        return {
            name: max(_milliseconds(fresh, text, order) for order in _ORDERS)
            for name, text in _FILTERS.items()
        }


def _fill(fresh: FreshHome, jobs: int) -> None:
    """Have a few jobs run, and very many cancelled."""
    fresh.run(100, ["true"])
    fresh.client.pause()
    for number in range(_PROJECTS):
        ids = fresh.client.enqueue_jobs(
            [
                {"command": ["true"], "name": f"n-{one}", "priority": one % 7}
                for one in range(jobs // _PROJECTS)
            ],
            {"project": f"p{number}", **ONE_SLOT},
        )
        fresh.client.cancel([f"{ids['first']}-{ids['last']}"])


def _milliseconds(fresh: FreshHome, text: str, order: str) -> float:
    taken = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        fresh.client.read(f"/jobs?limit=100&order={order}{text}")
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)
