"""What one placement costs the scheduler alone, behind a short and a long line.

A full worker: a job ends, the next one is placed, another one arrives. Shapes differ in
the memory they ask for; the cores are what everybody waits for. A short line of many
shapes is dear in its own way, as nearly every job brings a shape and takes it along
when it leaves; so a long line is compared with the cheapest short one.
"""

import time
from collections import deque
from functools import partial

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.sizes import Sizes
from grass.model.amount_text import WHOLE
from grass.model.resources import Request
from grass.scheduler import Scheduler

_CORES = 16
_SHAPES = (1, 1_000)
_WARM_UP = 200


def placement(sizes: Sizes) -> Benchmark:
    """Return a short and a long line for each number of shapes."""
    lines = (sizes.short_line, sizes.long_line)
    return Benchmark(
        "placement",
        [
            partial(_cost, shapes, line, sizes.placement_turns)
            for shapes in _SHAPES
            for line in lines
        ],
        [_claim(shapes, *lines) for shapes in _SHAPES],
        "us",
        [
            f"mean of {sizes.placement_turns:,} placements a round, in one process",
            "the ratio is to the cheaper of the short lines",
        ],
    )


def _claim(shapes: int, short: int, long: int) -> Claim:
    return Claim(
        f"one placement, {long:,} queued against {short:,}, {_shapes(shapes)}",
        lambda f: f[_label(shapes, long)] / min(f[_label(n, short)] for n in _SHAPES),
        bar=1.3,
        goal=1.1,
        unit="x",
        at_most=True,
    )


def _label(shapes: int, line: int) -> str:
    return f"{line:,} queued, {_shapes(shapes)}"


def _shapes(count: int) -> str:
    return "1 shape" if count == 1 else f"{count:,} shapes"


def _cost(shapes: int, line: int, turns: int) -> Figures:
    site = _Site(shapes, line)
    site.turn(_WARM_UP)
    started = time.perf_counter()
    site.turn(turns)
    taken = time.perf_counter() - started
    if len(site.running) != _CORES or site.scheduler.waiting() != line:
        raise RuntimeError("the worker is not full or the line is not as long")
    return {_label(shapes, line): taken / turns * 1e6}


class _Site:
    """One full worker and a line of jobs behind it."""

    def __init__(self, shapes: int, line: int) -> None:
        self.scheduler = Scheduler()
        self.scheduler.set_queue(
            "default", paused=False, max_running=None, open_to_all=True
        )
        cpus = {str(unit): WHOLE for unit in range(_CORES)}
        self.scheduler.add_worker("w", {"cpu": cpus, "ram": {"0": 10**6 * WHOLE}})
        self._requests: list[Request] = [
            (("cpu", WHOLE), ("ram", amount * WHOLE)) for amount in range(1, shapes + 1)
        ]
        self._jobs = 0
        for _ in range(_CORES + line):
            self._enqueue()
        self.running = deque(started.job for started in self.scheduler.decide(0.0))

    def turn(self, times: int) -> None:
        """So many times: one job ends, the next is placed, another arrives."""
        for _ in range(times):
            self.scheduler.release(self.running.popleft())
            self.running.extend(one.job for one in self.scheduler.decide(0.0))
            self._enqueue()

    def _enqueue(self) -> None:
        self._jobs += 1
        request = self._requests[self._jobs % len(self._requests)]
        self.scheduler.enqueue(self._jobs, "default", request)
