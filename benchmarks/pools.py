"""Short jobs through shared Slurm pilots against `sbatch` of each, and per-job pilots.

A real Slurm with three nodes of four cores on this host. The time of a throughput
counts from the first call until the last job has ended, the start of workers included.
HyperQueue's own automatic allocation cannot be run: its package for Python, which the
peers are installed from, has neither the program `hq`, which an allocation would start
as a worker, nor a call that adds an allocation queue or a worker of another process. So
it is measured with less to do: three allocations of the same size, each with a server
and a worker of its own in one process, and a third of the jobs given to each.
"""

import shlex
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.homes import GrassHome
from tests.support.slurm import SlurmCluster

from benchmarks import peers
from benchmarks.figures import Benchmark, Claim, Contender, Figures
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes

_SHARED, _SBATCH = "Grass, shared pilots", "`sbatch` of each"
_OWN, _OWN_SBATCH = "Grass, a pilot of its own", "`sbatch` of the same script"
_HYPERQUEUE = "HyperQueue, a third of the jobs in each allocation"
_LOOK_S = 0.02
_JOB_S = 0.1
_NODES, _CORES = 3, 4
_MOST_S = 120.0


def pools(sizes: Sizes) -> Benchmark:
    """Return the pilots and Slurm alone, and HyperQueue where it can be had."""
    jobs, starts = sizes.pool_jobs, sizes.pool_starts
    contenders: list[Contender] = [lambda: _throughputs(jobs), lambda: _starts(starts)]
    claims = [
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
    ]
    notes = [
        f"{jobs} jobs of 0.1 s on three nodes of four cores",
        f"{starts} pilots one after another, the median of each round",
    ]
    try:
        peers.install_hyperqueue()
    except peers.LeftOut as why:
        notes.append(f"left out: {why}")
    else:
        contenders.append(lambda: _hyperqueue(jobs))
        claims.insert(1, _AGAINST_HYPERQUEUE)
        notes.append(
            "HyperQueue from PyPI has no `hq`, so no automatic allocation: it has a"
            " server in each of three allocations, which is given a third of the jobs"
        )
    return Benchmark("pools", contenders, claims, "jobs/s and s", notes)


_AGAINST_HYPERQUEUE = Claim(
    "jobs/s through shared Slurm pilots, against HyperQueue in three allocations",
    lambda f: f[_SHARED] / f[_HYPERQUEUE],
    bar=1.0,
    goal=1.2,
    unit="x",
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
        home.ok(
            "enqueue", "--array", f"1-{jobs}", "--pool=uni", "--", "sleep", f"{_JOB_S}"
        )
        home.ok("wait", "all")
        shared_s = time.perf_counter() - began
        assert home.client.overview()["daemon"]["jobs"]["succeeded"] == jobs
    return {_SHARED: jobs / shared_s, _SBATCH: jobs / took_s}


def _sbatch_all(cluster: SlurmCluster, folder: Path, jobs: int) -> float:
    script = folder / "short.sh"
    script.write_text(f"#!/bin/sh\nexec sleep {_JOB_S}\n")
    words = ["sbatch", "--parsable", "--output=/dev/null", "--job-name=short"]
    began = time.perf_counter()
    for _ in range(jobs):
        cluster.run(*words, str(script))
    # There is nothing to wait on: `sbatch --wait` looks every other second itself.
    while cluster.run("squeue", "-h", "-n", "short", "-o", "%i"):
        time.sleep(_LOOK_S)
    return time.perf_counter() - began


def _hyperqueue(jobs: int) -> Figures:
    with _site() as (cluster, _, folder):
        shares = [len(range(node, jobs, _NODES)) for node in range(_NODES)]
        outputs = [folder / f"hyperqueue-{node}" for node in range(_NODES)]
        began = time.time()
        for share, output in zip(shares, outputs, strict=True):
            place = folder / f"{output.name}.cluster"
            place.mkdir()
            command = ("sleep", f"{_JOB_S}")
            words = peers.hyperqueue_command(place, share, _CORES, *command)
            options = [f"--output={output}", f"--cpus-per-task={_CORES}"]
            cluster.run("sbatch", *options, f"--wrap={shlex.join(words)}")
        ended_at = max(map(_last_began_at, outputs)) + _JOB_S
        return {_HYPERQUEUE: jobs / (ended_at - began)}


def _last_began_at(output: Path) -> float:
    """Wait until an allocation has told when its last job began; return when."""
    deadline, said = time.monotonic() + _MOST_S, ""
    while "elapsed" not in said or not said.endswith("\n"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"HyperQueue failed: {said[-500:]}")
        time.sleep(_LOOK_S)
        said = output.read_text() if output.exists() else ""
    return float(said.split()[-1])


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
    """Add a pool as it is where the home directory is shared, in a folder of ours."""
    shared = (f"--folder={folder / 'pilots'}", "--environment=caller")
    (folder / "pilots").mkdir()
    home.ok("pool", "add", "uni", "--slurm", "--time=30m", *shared, *options)
