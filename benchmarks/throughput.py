"""Jobs per second: `true`, two at a time, one output file each.

Grass answers for every job from the call of `enqueue_many` until its client's `wait`
has all jobs in hand; the peers are given the benefit of the doubt where their clocks
are coarse.
"""

import shutil
import time

from benchmarks import peers
from benchmarks.bare_loop import BareLoop
from benchmarks.figures import Benchmark, Claim, Contender, Figures
from benchmarks.fresh_home import fresh_home
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes

GRASS, HYPERQUEUE, BARE = "grass", "HyperQueue 0.27", "bare loop"
SPOOLER = "task-spooler"
_CLAIMS = {
    HYPERQUEUE: Claim(
        "jobs/s against HyperQueue",
        lambda f: f[GRASS] / f[HYPERQUEUE],
        bar=1.3,
        goal=2.0,
        unit="x",
    ),
    BARE: Claim(
        "jobs/s against the bare loop",
        lambda f: f[GRASS] / f[BARE],
        bar=0.45,
        goal=0.7,
        unit="x",
    ),
}


def throughput(sizes: Sizes) -> Benchmark:
    """Return the contenders that can be had here."""
    jobs = sizes.throughput_jobs
    contenders: list[Contender] = [lambda: _grass(jobs), lambda: _bare(jobs)]
    claims = [_CLAIMS[BARE]]
    notes = [f"{jobs:,} jobs each; task-spooler {sizes.spooler_jobs:,}"]
    try:
        peers.install_hyperqueue()
        contenders.append(lambda: _hyperqueue(jobs))
        claims.insert(0, _CLAIMS[HYPERQUEUE])
        notes.append(
            "HyperQueue from PyPI has no journal: its jobs are not durable. Its time"
            " ends when the last output file is made, because its wait looks once a"
            " second"
        )
    except peers.LeftOut as why:
        notes.append(f"left out: {why}")
    try:
        peers.install_spooler()
        contenders.append(lambda: _spooler(sizes.spooler_jobs))
        notes.append("task-spooler takes one process for each enqueue, as it must")
    except peers.LeftOut as why:
        notes.append(f"left out: {why}")
    return Benchmark("throughput", contenders, claims, "jobs/s", notes)


def _grass(jobs: int) -> Figures:
    with fresh_home(slots=2) as fresh:
        started = time.perf_counter()
        fresh.run(jobs, ["true"])
        return {GRASS: jobs / (time.perf_counter() - started)}


def _bare(jobs: int) -> Figures:
    program = shutil.which("true") or "/bin/true"
    with scratch_folder() as folder:
        started = time.perf_counter()
        BareLoop(folder, [program], slots=2).run(jobs)
        return {BARE: jobs / (time.perf_counter() - started)}


def _hyperqueue(jobs: int) -> Figures:
    return {HYPERQUEUE: jobs / peers.hyperqueue_elapsed_s(jobs)}


def _spooler(jobs: int) -> Figures:
    return {SPOOLER: jobs / peers.spooler_elapsed_s(jobs)}
