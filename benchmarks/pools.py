"""Short jobs through shared Slurm pilots against `sbatch` of each, and per-job pilots.

A real Slurm with three nodes of four cores on this host. The time of a throughput
counts from the first call until the last job has ended, the start of workers included.
HyperQueue's automatic allocation is not measured: its package for Python, which the
peers are installed from, has neither the program `hq` nor a call for it.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.homes import GrassHome
from tests.support.slurm import SlurmCluster

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes

_SHARED, _SBATCH = "Grass, shared pilots", "`sbatch` of each"
_OWN, _OWN_SBATCH = "Grass, a pilot of its own", "`sbatch` of the same script"
_LOOK_S = 0.02


def pools(sizes: Sizes) -> Benchmark:
    """Return the pilots and Slurm alone."""
    jobs, starts = sizes.pool_jobs, sizes.pool_starts
    return Benchmark(
        "pools",
        [lambda: _throughputs(jobs), lambda: _starts(starts)],
        [
            Claim(
                "jobs/s through shared Slurm pilots, against `sbatch` of each",
                lambda f: f[_SHARED] / f[_SBATCH],
                bar=5.0,
                goal=8.0,
                unit="x",
            ),
            Claim(
                "from `enqueue` to the first line of a pilot's job, less `sbatch`",
                lambda f: f[_OWN] - f[_OWN_SBATCH],
                bar=1.0,
                goal=0.7,
                unit="s",
                at_most=True,
            ),
        ],
        "jobs/s and s",
        [
            f"{jobs} jobs of 0.1 s on three nodes of four cores",
            f"{starts} pilots one after another, the median of each round",
            "HyperQueue left out: its package for Python has no automatic allocation",
        ],
    )


@contextmanager
def _site() -> Iterator[tuple[SlurmCluster, GrassHome, Path]]:
    """Give a Slurm, and a daemon whose commands reach it."""
    with scratch_folder() as folder:
        cluster = SlurmCluster(folder / "slurm")
        home = GrassHome(folder)
        home.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
        home.environment["PATH"] += ":/usr/sbin:/sbin"
        cluster.start()
        try:
            bound = ("--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
            home.ok("start", *bound)
            yield cluster, home, folder
        finally:
            cluster.run("scancel", "--name=grass-uni")
            home.end()
            cluster.stop()


def _throughputs(jobs: int) -> Figures:
    with _site() as (cluster, home, folder):
        took_s = _sbatch_all(cluster, folder, jobs)
        _add(home, folder, "--mode=shared", "--cpus=4", "--max-workers=3")
        began = time.perf_counter()
        home.ok("enqueue", "--array", f"1-{jobs}", "--pool=uni", "--", "sleep", "0.1")
        home.ok("wait", "all")
        shared_s = time.perf_counter() - began
        assert home.client.overview()["daemon"]["jobs"]["succeeded"] == jobs
    return {_SHARED: jobs / shared_s, _SBATCH: jobs / took_s}


def _sbatch_all(cluster: SlurmCluster, folder: Path, jobs: int) -> float:
    script = folder / "short.sh"
    script.write_text("#!/bin/sh\nexec sleep 0.1\n")
    words = ["sbatch", "--parsable", "--output=/dev/null", "--job-name=short"]
    began = time.perf_counter()
    for _ in range(jobs):
        cluster.run(*words, str(script))
    # There is nothing to wait on: `sbatch --wait` looks every other second itself.
    while cluster.run("squeue", "-h", "-n", "short", "-o", "%i"):
        time.sleep(_LOOK_S)
    return time.perf_counter() - began


def _starts(starts: int) -> Figures:
    with _site() as (cluster, home, folder):
        _add(home, folder, "--mode=per-job", "--max-workers=12")
        script = folder / "stamp.sh"
        script.write_text("#!/bin/sh\ndate +%s.%N\n")
        script.chmod(0o755)
        own = [_enqueued_s(home, script) for _ in range(starts)]
        plain = [_submitted_s(cluster, folder, script, n) for n in range(starts)]
    return {_OWN: statistics.median(own), _OWN_SBATCH: statistics.median(plain)}


def _enqueued_s(home: GrassHome, script: Path) -> float:
    began = time.time()
    job = home.enqueue("--pool=uni", "--time-limit=20m", "--", str(script))
    home.wait(job)
    return float(home.logs(job)) - began


def _submitted_s(
    cluster: SlurmCluster, folder: Path, script: Path, number: int
) -> float:
    output = folder / f"stamp-{number}"
    began = time.time()
    cluster.run("sbatch", f"--output={output}", str(script))
    while not (output.exists() and output.read_text().endswith("\n")):
        time.sleep(_LOOK_S)
    return float(output.read_text()) - began


def _add(home: GrassHome, folder: Path, *options: str) -> None:
    place = f"--folder={folder / 'pilots'}"
    (folder / "pilots").mkdir()
    home.ok("pool", "add", "uni", "--slurm", "--time=30m", place, *options)
