"""What one placement costs the broker with one worker, and with two hundred.

The broker's core with simulated links: every worker has said hello and is full, and a
long line waits. A turn is what a broker does when a job ends: it takes the report in,
places the next job, and hands over what is to be committed and sent.
"""

import time
from collections import deque
from functools import partial

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.sizes import Sizes
from grass.broker.core.broker_core import BrokerCore
from grass.broker.core.calls import Enqueue, FromWorker, NewJob
from grass.link.messages import Exited, Hello, Start, Started
from grass.model.amount_text import WHOLE
from grass.model.jobs.spec import JobPatch
from grass.model.worker import Unit
from grass.store.interface import Snapshot

_CORES = 16
_SHAPES = (1, 1_000)
_SECOND = 1_000_000
_WARM_UP = 200
_CHUNK = 10_000


def fleet(sizes: Sizes) -> Benchmark:
    """Return one worker and many."""
    many, line = sizes.fleet, sizes.long_line
    return Benchmark(
        "fleet",
        [
            partial(_cost, count, shapes, line, sizes.placement_turns)
            for shapes in _SHAPES
            for count in (1, many)
        ],
        [_claim(many, shapes, line) for shapes in _SHAPES],
        "us",
        [
            f"mean of {sizes.placement_turns:,} turns a round: an end and what follows",
            (
                "with many shapes the cost grows with the workers: what one of them"
                " starts moves a shape's head, and each of the others notices when it"
                " next looks"
            ),
        ],
    )


def _claim(many: int, shapes: int, line: int) -> Claim:
    return Claim(
        f"one placement, {many} workers against 1, {line:,} queued, {_shapes(shapes)}",
        lambda f: f[_label(many, shapes)] / f[_label(1, shapes)],
        bar=2.0,
        goal=1.3,
        unit="x",
        at_most=True,
    )


def _label(workers: int, shapes: int) -> str:
    count = "1 worker" if workers == 1 else f"{workers} workers"
    return f"{count}, {_shapes(shapes)}"


def _shapes(count: int) -> str:
    return "1 shape" if count == 1 else f"{count:,} shapes"


def _cost(workers: int, shapes: int, line: int, turns: int) -> Figures:
    site = _Site(workers, shapes, line + workers * _CORES + turns + _WARM_UP)
    site.turn(_WARM_UP)
    started = time.perf_counter()
    site.turn(turns)
    taken = time.perf_counter() - started
    if len(site.running) != workers * _CORES:
        raise RuntimeError("the workers are not full")
    return {_label(workers, shapes): taken / turns * 1e6}


class _Site:
    """A broker's core, its workers all full, and a line behind them."""

    def __init__(self, workers: int, shapes: int, jobs: int) -> None:
        self._now_us = 1_000 * _SECOND
        self._core = BrokerCore(_nothing_yet(), self._now_us)
        self.running: deque[tuple[str, str]] = deque()
        self._settings = [
            JobPatch(request=(("cpu", WHOLE), ("ram", amount * WHOLE)))
            for amount in range(1, shapes + 1)
        ]
        for number in range(workers):
            self._say(f"w{number:03}", _hello(f"w{number:03}"))
        while jobs:
            some = min(jobs, _CHUNK)
            self._enqueue(some)
            jobs -= some
        self._decide()

    def turn(self, times: int) -> None:
        """So many times: a job ends, and the next one is placed."""
        for _ in range(times):
            # Long jobs: short ones would be handed ahead, which is another matter.
            self._now_us += 3_600 * _SECOND
            worker, attempt = self.running.popleft()
            self._say(worker, Exited(attempt, self._now_us, exit_code=0))
            self._decide()

    def _decide(self) -> None:
        self._core.decide(self._now_us / _SECOND)
        for worker, message in self._core.take().outbox:
            if isinstance(message, Start):
                self.running.append((worker, message.attempt))
                self._say(worker, Started(message.attempt, 7, self._now_us))

    def _enqueue(self, jobs: int) -> None:
        kinds = self._settings
        new = [NewJob(("true",), kinds[at % len(kinds)]) for at in range(jobs)]
        call = Enqueue("uid:0", new)
        self._core.step(call, self._now_us)
        while self._core.busy:
            self._core.advance()
        self._core.take()

    def _say(self, worker: str, message: Hello | Started | Exited) -> None:
        self._core.step(FromWorker(worker, message), self._now_us)


def _hello(name: str) -> Hello:
    cores = {str(number): Unit(WHOLE) for number in range(_CORES)}
    memory = {"0": Unit(10**6 * WHOLE)}
    return Hello(name, name, "boot", {"cpu": cores, "ram": memory}, [], [])


def _nothing_yet() -> Snapshot:
    return Snapshot(
        cluster="0" * 16,
        last_job=0,
        last_spec=0,
        last_env=0,
        paused=False,
        queues=[],
        workers=[],
        jobs=[],
        attempts=[],
        specs={},
        envs=[],
        calls=[],
        counts={},
        output_bytes=0,
    )
