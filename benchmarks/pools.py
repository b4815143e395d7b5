"""Short jobs through shared Slurm pilots against `sbatch` of each, and per-job pilots.

A real Slurm with three nodes of four cores on this host. The time of a throughput
counts from the first call until the last job has ended, the start of workers included.

Slurm starts batch jobs once a second, so the phase of that second at which a turn
begins counts for up to a fifth of it. Grass and HyperQueue therefore take turns on the
same Slurm, whose nodes are idle, each time at a random phase; the median of the turns
is the figure of a round. Single starts begin at a random phase, too.

HyperQueue's own automatic allocation cannot be run: its package for Python, which the
peers are installed from, has neither the program `hq`, which an allocation would start
as a worker, nor a call that adds an allocation queue or a worker of another process. So
it is measured with less to do: three allocations of the same size, each with a server
and a worker of its own in one process, and a third of the jobs given to each.
"""

import json
import random
import shlex
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.slurm import NODES, SlurmCluster

from benchmarks import peers
from benchmarks.figures import Benchmark, Claim, Contender, Figures
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes

_SHARED, _SBATCH = "Grass, shared pilots", "`sbatch` of each"
_OWN, _OWN_SBATCH = "Grass, a pilot of its own", "`sbatch` of the same script"
_HYPERQUEUE = "HyperQueue, a third of the jobs in each allocation"
_LOOK_S = 0.02
_JOB_S = 0.1
_CORES = 4
_TURNS = 3
"""Of Grass and of HyperQueue in a round."""
_TICK_S = 1.0
"""How often Slurm starts batch jobs."""
_MOST_S = 120.0


def pools(sizes: Sizes) -> Benchmark:
    """Return the pilots and Slurm alone, and HyperQueue where it can be had."""
    jobs, starts = sizes.pool_jobs, sizes.pool_starts
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
        _TURN_NOTE,
        f"{starts} pilots one after another, each at a random phase; their median",
    ]
    turns: dict[str, _Turn] = {_SHARED: _shared_s}
    try:
        peers.install_hyperqueue()
    except peers.LeftOut as why:
        notes.append(f"left out: {why}")
    else:
        turns[_HYPERQUEUE] = _hyperqueue_s
        claims.insert(1, _AGAINST_HYPERQUEUE)
        notes.append(
            "HyperQueue from PyPI has no `hq`, so no automatic allocation: it has a"
            " server in each of three allocations, which is given a third of the jobs"
        )
    contenders: list[Contender] = [
        lambda: _throughputs(jobs, turns),
        lambda: _starts(starts),
    ]
    return Benchmark("pools", contenders, claims, "jobs/s and s", notes)


_TURN_NOTE = (
    f"shared pilots and HyperQueue: the median of {_TURNS} turns of each on the same"
    " Slurm, whose nodes are idle; a turn begins without workers, at a random phase of"
    " the second in which Slurm starts jobs"
)
_AGAINST_HYPERQUEUE = Claim(
    "jobs/s through shared Slurm pilots, against HyperQueue in three allocations",
    lambda f: f[_SHARED] / f[_HYPERQUEUE],
    bar=1.0,
    goal=1.2,
    unit="x",
)


class _Site(NamedTuple):
    """A Slurm, a daemon whose commands reach it, and a folder."""

    cluster: SlurmCluster
    home: GrassHome
    folder: Path


_Turn = Callable[[_Site, int, int], float]
"""Runs so many jobs on a site, in its turn with this number; returns the seconds."""


@contextmanager
def _site() -> Iterator[_Site]:
    with scratch_folder() as folder:
        cluster = SlurmCluster(folder / "slurm")
        home = GrassHome(folder)
        home.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
        home.environment["PATH"] += ":/usr/sbin:/sbin"
        cluster.start()
        try:
            bound = ("--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
            home.ok("start", *bound)
            yield _Site(cluster, home, folder)
        finally:
            cluster.run("scancel", "--name=grass-uni")
            home.end()
            cluster.stop()


def _throughputs(jobs: int, turns: Mapping[str, _Turn]) -> Figures:
    took_s: dict[str, list[float]] = {name: [] for name in turns}
    with _site() as site:
        alone_s = _sbatch_all(site.cluster, site.folder, jobs)
        for number in range(_TURNS):
            order = list(turns)[:: -1 if number % 2 else 1]
            for name in order:
                _await_idle(site.cluster)
                _await_phase()
                took_s[name].append(turns[name](site, jobs, number))
    figures = {name: jobs / statistics.median(each) for name, each in took_s.items()}
    return {**figures, _SBATCH: jobs / alone_s}


def _await_phase() -> None:
    """Wait for any phase of Slurm's tick; what has just ended is bound to one."""
    time.sleep(random.uniform(0, _TICK_S))


def _await_idle(cluster: SlurmCluster) -> None:
    until(lambda: cluster.idle_nodes() == set(NODES), "not all nodes are idle")


def _shared_s(site: _Site, jobs: int, number: int) -> float:
    home = site.home
    _add(home, site.folder, "--mode=shared", "--cpus=4", "--max-workers=3")
    began = time.perf_counter()
    home.ok("enqueue", "--array", f"1-{jobs}", "--pool=uni", "--", "sleep", f"{_JOB_S}")
    home.ok("wait", "all")
    took_s = time.perf_counter() - began
    succeeded = home.client.overview()["daemon"]["jobs"]["succeeded"]
    assert succeeded == jobs * (number + 1)
    # The next turn is to begin without workers, too.
    home.ok("pool", "remove", "uni")
    until(
        lambda: not json.loads(home.ok("pool", "show", "--json"))["pools"], "it stays"
    )
    return took_s


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


def _hyperqueue_s(site: _Site, jobs: int, number: int) -> float:
    shares = [len(range(node, jobs, len(NODES))) for node in range(len(NODES))]
    names = [f"hyperqueue-{number}-{node}" for node in NODES]
    began = time.time()
    for share, name in zip(shares, names, strict=True):
        place = site.folder / f"{name}.cluster"
        place.mkdir()
        command = ("sleep", f"{_JOB_S}")
        words = peers.hyperqueue_command(place, share, _CORES, *command)
        options = [f"--output={site.folder / name}", f"--cpus-per-task={_CORES}"]
        site.cluster.run("sbatch", *options, f"--wrap={shlex.join(words)}")
    ended_at = max(_last_began_at(site.folder / name) for name in names) + _JOB_S
    return ended_at - began


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
    _await_phase()
    began = time.time()
    job = home.enqueue("--pool=uni", "--time-limit=20m", "--", str(script))
    home.wait(job)
    return float(home.logs(job)) - began


def _submitted_s(
    cluster: SlurmCluster, folder: Path, script: Path, number: int
) -> float:
    output = folder / f"stamp-{number}"
    _await_phase()
    began = time.time()
    cluster.run("sbatch", f"--output={output}", str(script))
    while not (output.exists() and output.read_text().endswith("\n")):
        time.sleep(_LOOK_S)
    return float(output.read_text()) - began


def _add(home: GrassHome, folder: Path, *options: str) -> None:
    """Add a pool as it is where the home directory is shared, in a folder of ours."""
    shared = (f"--folder={folder / 'pilots'}", "--environment=caller")
    (folder / "pilots").mkdir(exist_ok=True)
    home.ok("pool", "add", "uni", "--slurm", "--time=30m", *shared, *options)
