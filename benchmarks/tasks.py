"""Tasks of one program beside Grain, a process pool, Ray and Dask.

All contenders run in one environment, each round in a fresh process: see `task_round`.
"""

import os
import subprocess
import tempfile

from benchmarks import peers
from benchmarks.figures import Benchmark, Claim, Contender
from benchmarks.scratch import HERE
from benchmarks.sizes import Sizes

GRASS_ASYNC, GRAIN = "grass, async functions", "grain-scheduler 0.17, async functions"
GRASS, POOL = "grass, plain functions", "ProcessPoolExecutor"
RAY, DASK = "Ray", "Dask"
_SCRIPT = HERE / "task_round.py"


def tasks(sizes: Sizes) -> Benchmark:
    """Return empty functions by the second."""
    count = sizes.tasks
    contenders = [
        contender(GRASS_ASYNC, "grass-async", count),
        contender(GRASS, "grass-sync", count),
        contender(POOL, "pool-sync", count),
    ]
    claims = [_against(GRASS, POOL, 0.8, 0.8)]
    notes = [f"{count:,} empty functions each; plain ones in two processes"]
    for peer, name, package, claim in (
        (GRAIN, "grain-async", peers.GRAIN, _against(GRASS_ASYNC, GRAIN, 1.5, 5.0)),
        (RAY, "ray-sync", peers.RAY, _against(GRASS, RAY, 3.0, 3.0)),
        (DASK, "dask-sync", peers.DASK, _against(GRASS, DASK, 6.0, 6.0)),
    ):
        try:
            peers.install_for_tasks(package)
        except peers.LeftOut as why:
            notes.append(f"left out: {why}")
            continue
        contenders.append(contender(peer, name, count))
        claims.append(claim)
    return Benchmark("tasks", contenders, claims, "tasks/s", notes)


def task_arrays(sizes: Sizes) -> Benchmark:
    """Return arrays by the second, there and back."""
    peers.install_for_tasks(peers.NUMPY)
    contenders = [
        contender(GRASS, "grass-array", sizes.task_arrays),
        contender(POOL, "pool-array", sizes.task_arrays),
    ]
    notes = ["a NumPy array of 100 MB to a process and back, one after the other"]
    claims = [_against(GRASS, POOL, 0.8, 2.0)]
    return Benchmark("task-arrays", contenders, claims, "arrays/s", notes)


def task_memory(sizes: Sizes) -> Benchmark:
    """Return what a task costs that waits."""
    peers.install_for_tasks(peers.NUMPY)
    contenders = [contender(GRASS, "grass-pending", sizes.pending_tasks)]
    claim = Claim("bytes a task that waits", lambda f: f[GRASS], 1024, 1024, "B", True)
    notes = [f"{sizes.pending_tasks:,} tasks wait, without their arguments"]
    return Benchmark("task-memory", contenders, [claim], "B", notes)


def _against(own: str, peer: str, bar: float, goal: float) -> Claim:
    return Claim(f"{own}, against {peer}", lambda f: f[own] / f[peer], bar, goal, "x")


def contender(figure: str, name: str, count: int) -> Contender:
    """Return one that gives the figure of a round in the peers' environment."""
    return lambda: {figure: _round(name, count)}


def _round(name: str, count: int) -> float:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [peers.TASKS_PYTHON, _SCRIPT, name, str(count)],
            capture_output=True,
            text=True,
            check=False,
            cwd=home,
            env={**os.environ, "GRASS_HOME": home},
        )
    words = done.stdout.split()
    if done.returncode or "figure" not in words:
        raise RuntimeError(f"{name} failed: {done.stderr.strip()[-500:]}")
    return float(words[words.index("figure") + 1])
