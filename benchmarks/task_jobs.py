"""Python functions as jobs: durable, through a broker, beside peers that are not.

Each round has a fresh home, and the functions are enqueued by a fresh process of the
environment that the peers are in: see `task_job_round`.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks import peers
from benchmarks.figures import Benchmark, Claim, Contender, Figures
from benchmarks.fresh_home import fresh_home
from benchmarks.scratch import HERE
from benchmarks.sizes import Sizes
from benchmarks.small_cluster import small_cluster
from benchmarks.tasks import POOL, RAY, contender

_DURABLE = "grass, durable, through the queue"
_CALLS, _COMMANDS = "a function, then its result", "`true`, then its end"
_ARRAY = "grass, to a worker over TLS and back"
_RUNNER, _BARE = "idle runner", "interpreter with cloudpickle"
_SCRIPT = HERE / "task_job_round.py"


def task_jobs(sizes: Sizes) -> Benchmark:
    """Return empty functions by the second."""
    count = sizes.task_jobs
    contenders: list[Contender] = [lambda: {_DURABLE: _local("durable", count)}]
    claims, notes = (
        [],
        [f"{count:,} empty functions, two at a time, with their results"],
    )
    try:
        peers.install_for_tasks(peers.RAY)
    except peers.LeftOut as why:
        notes.append(f"left out: {why}")
    else:
        contenders.append(contender(RAY, "ray-sync", count))
        claims.append(
            Claim(
                "tasks/s, durable, against Ray's, which are not",
                lambda f: f[_DURABLE] / f[RAY],
                bar=1.0,
                goal=1.0,
                unit="x",
            )
        )
    return Benchmark("task-jobs", contenders, claims, "tasks/s", notes)


def task_calls(sizes: Sizes) -> Benchmark:
    """Return how long one call takes from its enqueue to its result."""
    count = sizes.task_calls
    peers.install_for_tasks(peers.NUMPY)
    return Benchmark(
        "task-calls",
        [lambda: _calls(count)],
        [
            Claim(
                "a function and its result, against `true` by one open client",
                lambda f: f[_CALLS] / f[_COMMANDS],
                bar=2.0,
                goal=1.0,
                unit="x",
                at_most=True,
            )
        ],
        "ms",
        [f"{count} of each, one after the other, in the order A B B A"],
    )


def task_job_arrays(sizes: Sizes) -> Benchmark:
    """Return arrays by the second, there and back over TLS."""
    peers.install_for_tasks(peers.NUMPY)
    count = sizes.task_arrays
    return Benchmark(
        "task-job-arrays",
        [lambda: {_ARRAY: _far(count)}, contender(POOL, "pool-array", count)],
        [
            Claim(
                "arrays/s, durable and over TLS, against ProcessPoolExecutor",
                lambda f: f[_ARRAY] / f[POOL],
                bar=0.5,
                goal=1.0,
                unit="x",
            )
        ],
        "arrays/s",
        ["a NumPy array of 100 MB to a process and back, one after the other"],
    )


def runner_memory(_sizes: Sizes) -> Benchmark:
    """Return what a runner takes that waits for the next task."""
    peers.install_for_tasks(peers.NUMPY)
    return Benchmark(
        "runner-memory",
        [_runner],
        [
            Claim(
                "memory of an idle runner, against a bare interpreter with cloudpickle",
                lambda f: f[_RUNNER] / f[_BARE],
                bar=1.3,
                goal=1.1,
                unit="x",
                at_most=True,
            )
        ],
        "MiB",
        ["resident memory"],
    )


def _local(name: str, count: int) -> float:
    with fresh_home(slots=1) as fresh:
        return _round(fresh.folder, name, count)


def _calls(count: int) -> Figures:
    with fresh_home(slots=1) as fresh:
        took = {"one-after-another": 0.0, "commands": 0.0}
        for name in ("commands", "one-after-another", "one-after-another", "commands"):
            took[name] += _round(fresh.folder, name, count) / 2
    return {_CALLS: took["one-after-another"], _COMMANDS: took["commands"]}


def _far(count: int) -> float:
    with _interpreter(), small_cluster(workers=1, slots=1) as far:
        return _round(far.folder, "array", count)


@contextmanager
def _interpreter() -> Iterator[None]:
    """Have workers run functions with the interpreter that has NumPy."""
    os.environ["GRASS_TASKS_PYTHON"] = str(peers.TASKS_PYTHON)
    try:
        yield
    finally:
        del os.environ["GRASS_TASKS_PYTHON"]


def _runner() -> Figures:
    with fresh_home(slots=1) as fresh:
        _round(fresh.folder, "warm", 1)
        keeper = fresh.processes()[1]
        runners = [one for one in keeper.children(recursive=True) if _is_runner(one)]
        idle = max(one.memory_info().rss for one in runners)
    code = "import cloudpickle, sys; print(1, flush=True); sys.stdin.read()"
    words = [str(peers.TASKS_PYTHON), "-c", code]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        bare = psutil.Process(process.pid).memory_info().rss
        process.communicate()
    return {_RUNNER: idle / 2**20, _BARE: bare / 2**20}


def _is_runner(process: psutil.Process) -> bool:
    return "grass.tasks.runner" in " ".join(process.cmdline())


def _round(home: Path, name: str, count: int) -> float:
    environment = {**os.environ, "GRASS_HOME": str(home), "GRASS_AUTOSTART": "0"}
    command: peers.Command = [peers.TASKS_PYTHON, _SCRIPT, name, str(count)]
    return peers.number_after("figure", command, home, environment)
