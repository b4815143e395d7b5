"""How long others wait while a verb is about very many jobs, and what `prune` costs.

Jobs wait in a paused daemon. They are held, released, cancelled and pruned, each by one
call; meanwhile single jobs are enqueued one after the other, and the longest of these
calls is the figure. The cost of `prune` is that of a call alone, with few jobs in one
home and many in another.
"""

import threading
import time
from collections.abc import Callable

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import ONE_SLOT, FreshHome, fresh_home
from benchmarks.sizes import Sizes
from grass.client.client import Client
from grass.config import LOCAL

_CHUNK = 10_000
_FEW, _MANY = "prune, few", "prune, many"
_VERBS: dict[str, Callable[[Client], object]] = {
    "hold": lambda client: client.hold(["all"]),
    "release": lambda client: client.release(["all"]),
    "cancel": lambda client: client.cancel(["all"]),
    "prune": lambda client: client.prune(0.0),
}


def verbs(sizes: Sizes) -> Benchmark:
    """Return one home with few jobs, and one with many."""
    few, many = sizes.few_jobs, sizes.many_jobs
    claims = [
        Claim(
            f"the longest enqueue during `{verb}` of {many:,} jobs",
            lambda f, verb=verb: f[verb],  # type: ignore[misc]
            bar=100,
            goal=50,
            unit="ms",
            at_most=True,
        )
        for verb in _VERBS
    ]
    cost = Claim(
        f"cost of `prune` per job, {many:,} against {few:,}",
        lambda f: f[_MANY] / f[_FEW],
        bar=1.5,
        goal=1.1,
        unit="x",
        at_most=True,
    )
    return Benchmark(
        "verbs",
        [lambda: _disturbed(many), lambda: _costs(few, many)],
        [*claims, cost],
        "ms",
    )


def _disturbed(jobs: int) -> Figures:
    with fresh_home(slots=1) as fresh:
        fresh.client.pause()
        _fill(fresh, jobs)
        return {verb: _longest_ms(fresh, act) for verb, act in _VERBS.items()}


def _longest_ms(fresh: FreshHome, act: Callable[[Client], object]) -> float:
    """Enqueue one job after the other until a verb is done."""

    def run() -> None:
        with Client(fresh.client.home, may_start=False, broker=LOCAL) as client:
            act(client)

    took_s = [0.0]
    verb = threading.Thread(target=run)
    verb.start()
    while verb.is_alive():
        started = time.perf_counter()
        fresh.client.enqueue(["true"], **ONE_SLOT)
        took_s.append(time.perf_counter() - started)
    return 1000 * max(took_s)


def _costs(few: int, many: int) -> Figures:
    return {_FEW: _cost_ms(few), _MANY: _cost_ms(many)}


def _cost_ms(jobs: int) -> float:
    """Give the time that `prune` takes for each of so many ended jobs."""
    with fresh_home(slots=1) as fresh:
        fresh.client.pause()
        _fill(fresh, jobs)
        fresh.client.cancel(["all"])
        started = time.perf_counter()
        done = fresh.client.prune(0.0)
        took_s = time.perf_counter() - started
    if done["jobs"] != jobs:
        raise RuntimeError(f"{done} are not {jobs} jobs")
    return 1000 * took_s / jobs


def _fill(fresh: FreshHome, jobs: int) -> None:
    for done in range(0, jobs, _CHUNK):
        fresh.client.enqueue_many([["true"]] * min(_CHUNK, jobs - done), **ONE_SLOT)
