"""`grass show` in a shell with very many jobs, and with none.

Half of the jobs have ended; of the others half are one array, and none starts. Pairs,
one command right after the other. What is claimed is how much longer the command takes,
whole, than on a daemon without jobs.
"""

import statistics
import sys
import time
from pathlib import Path
from subprocess import DEVNULL, run

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import ONE_SLOT, FreshHome, environment_of, fresh_home
from benchmarks.sizes import Sizes

_LOOKS = {
    "show": (),
    "show a queue": (ONE_SLOT["queue"],),
    "show a project": ("@rare",),
    "show a name": ("name~rare",),
    "show a state": ("state:failed",),
}
_NONE = "no jobs"


def looks(sizes: Sizes) -> Benchmark:
    """Return the empty and the full daemon as one contender."""
    many = f"{sizes.shown_jobs:,} jobs"
    return Benchmark(
        "looks",
        [lambda: _both(sizes, many)],
        [_more(name, many) for name in _LOOKS],
        "ms",
        [f"{sizes.looks // 5} pairs a round, medians"],
    )


def _more(name: str, many: str) -> Claim:
    return Claim(
        f"`{name}` with {many}, more than with none",
        lambda f: f[f"{name}, {many}"] - f[f"{name}, {_NONE}"],
        bar=300,
        goal=100,
        unit="ms",
        at_most=True,
    )


def _both(sizes: Sizes, many: str) -> Figures:
    figures: dict[str, float] = {}
    with fresh_home(slots=2) as empty, fresh_home(slots=2) as full:
        for fresh in (empty, full):
            fresh.client.pause()
        _fill(full, sizes.shown_jobs)
        for fresh in (empty, full):
            _enqueue(fresh, 1, name="rare", project="rare")
        for name, words in _LOOKS.items():
            taken: dict[str, list[float]] = {_NONE: [], many: []}
            for _ in range(max(1, sizes.looks // 5)):
                taken[_NONE].append(_milliseconds(empty, words))
                taken[many].append(_milliseconds(full, words))
            for label, values in taken.items():
                figures[f"{name}, {label}"] = statistics.median(values)
    return figures


def _fill(fresh: FreshHome, jobs: int) -> None:
    """Add jobs: half of them end, a quarter is one array, a quarter single ones."""
    ended = _enqueue(fresh, jobs // 2)
    fresh.client.cancel([f"{ended['first']}-{ended['last']}"])
    fresh.client.enqueue_many([["true"]], array=f"1-{jobs // 4}", **ONE_SLOT)
    _enqueue(fresh, jobs // 4)


def _enqueue(fresh: FreshHome, jobs: int, **settings: object) -> dict[str, int]:
    return fresh.client.enqueue_many([["true"]] * jobs, **ONE_SLOT, **settings)


def _milliseconds(fresh: FreshHome, words: tuple[str, ...]) -> float:
    script = str(Path(sys.executable).parent / "grass")
    started = time.perf_counter()
    run(
        [script, "show", *words],
        env=environment_of(fresh),
        stdout=DEVNULL,
        check=True,
    )
    return (time.perf_counter() - started) * 1000
