"""Short jobs through shared Slurm pilots against `sbatch` of each, and per-job pilots.

A real Slurm with three nodes of four cores on this host. The time of a throughput
counts from the first call until the last job has ended, the start of workers included.

Slurm starts batch jobs once a second, so the phase of that second at which a turn
begins counts for up to a fifth of it; HyperQueue asks for allocations every fifth
second. Grass and HyperQueue therefore take turns on the same Slurm, whose nodes are
idle, each time at a random phase; the median of the turns is the figure of a round.
Single starts begin at a random phase, too.

HyperQueue is measured twice: with its own automatic allocation, where its server asks
for three allocations once it has jobs, as the daemon of Grass asks for pilots (see
`hyperqueue_allocation`); and with less to do, in three allocations that are asked for
at once, each with a server and a worker in one process and a third of the jobs.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.support.homes import GrassHome
from tests.support.slurm import SlurmCluster

from benchmarks import peers
from benchmarks.figures import Benchmark, Claim, Contender, Figures
from benchmarks.scratch import HERE
from benchmarks.shared_pilots import ALLOCATED, SBATCH, SHARED, TURNS
from benchmarks.sizes import Sizes
from benchmarks.slurm_site import add_pool, await_phase, slurm_site

_OWN, _OWN_SBATCH = "Grass, a pilot of its own", "`sbatch` of the same script"
_LOOK_S = 0.02


def pools(sizes: Sizes) -> Benchmark:
    """Return the pilots and Slurm alone, and HyperQueue where it can be had."""
    jobs, starts = sizes.pool_jobs, sizes.pool_starts
    claims = [
        Claim(
            "jobs/s through shared Slurm pilots, against `sbatch` of each",
            lambda f: f[SHARED] / f[SBATCH],
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
    try:
        peers.install_hyperqueue()
    except peers.LeftOut as why:
        notes.append(f"left out: {why}")
        round_of = [*_PYTHON, str(jobs)]
    else:
        round_of = [*peers.own_network(), *_PYTHON, str(jobs), "--hyperqueue"]
        claims.insert(1, _AGAINST_HYPERQUEUE)
        notes += [_ALLOCATED_NOTE, _THIRDS_NOTE]
    contenders: list[Contender] = [
        lambda: _throughputs(round_of),
        lambda: _starts(starts),
    ]
    return Benchmark("pools", contenders, claims, "jobs/s and s", notes)


_PYTHON = [sys.executable, "-m", "benchmarks.shared_pilots"]
_TURN_NOTE = (
    f"shared pilots and HyperQueue: the median of {TURNS} turns of each on the same"
    " Slurm, whose nodes are idle; a turn begins without workers, at a random phase of"
    " the second in which Slurm starts jobs"
)
_ALLOCATED_NOTE = (
    "automatic allocation: HyperQueue's own server, as it is, with a queue of at most"
    " three workers of four cores, at a random phase of the five seconds in which it"
    " asks for allocations; its package has no `hq`, so the message that adds the queue"
    " and the start of its workers are ours"
)
_THIRDS_NOTE = (
    "a third of the jobs in each allocation: three allocations asked for at once, each"
    " with a server of its own; no bar, since HyperQueue does not divide jobs itself"
)
_AGAINST_HYPERQUEUE = Claim(
    "jobs/s through shared Slurm pilots, against HyperQueue's automatic allocation",
    lambda f: f[SHARED] / f[ALLOCATED],
    bar=1.0,
    goal=1.2,
    unit="x",
)


def _throughputs(command: list[str]) -> Figures:
    done = subprocess.run(
        command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def _starts(starts: int) -> Figures:
    with slurm_site() as (cluster, home, folder):
        add_pool(home, folder, "--mode=per-job", "--max-workers=12")
        script = folder / "stamp.sh"
        script.write_text("#!/bin/sh\ndate +%s.%N\n")
        script.chmod(0o755)
        own = [_enqueued_s(home, script) for _ in range(starts)]
        plain = [_submitted_s(cluster, folder, script, n) for n in range(starts)]
    return {_OWN: statistics.median(own), _OWN_SBATCH: statistics.median(plain)}


def _enqueued_s(home: GrassHome, script: Path) -> float:
    await_phase()
    began = time.time()
    job = home.enqueue("--pool=uni", "--time-limit=20m", "--", str(script))
    home.wait(job)
    return float(home.logs(job)) - began


def _submitted_s(
    cluster: SlurmCluster, folder: Path, script: Path, number: int
) -> float:
    output = folder / f"stamp-{number}"
    await_phase()
    began = time.time()
    cluster.run("sbatch", f"--output={output}", str(script))
    while not (output.exists() and output.read_text().endswith("\n")):
        time.sleep(_LOOK_S)
    return float(output.read_text()) - began
