"""Throughput on Slurm: through shared pilots, by `sbatch` of each, and by HyperQueue.

`python -m benchmarks.shared_pilots JOBS [--hyperqueue]` prints the jobs per second of
each as JSON. HyperQueue listens on every address and works in the same network as its
Slurm: with it this must be run by the words of `peers.own_network`.
"""

import argparse
import json
import shlex
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.patience import until
from tests.support.slurm import NODES, SlurmCluster

from benchmarks import peers
from benchmarks.figures import Figures
from benchmarks.slurm_site import Site, add_pool, await_phase, slurm_site

SHARED, SBATCH = "Grass, shared pilots", "`sbatch` of each"
ALLOCATED = "HyperQueue, automatic allocation"
_THIRDS = "HyperQueue, a third of the jobs in each allocation"
_LOOK_S = 0.02
_JOB_S = 0.1
_CORES = 4
TURNS = 3
"""Of Grass and of each kind of HyperQueue in a round."""
_MOST_S = 120.0

_Turn = Callable[[Site, int, int], float]
"""Runs so many jobs on a site, in its turn with this number; returns the seconds."""


def main() -> None:
    """Measure once what was asked for."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("jobs", type=int)
    parser.add_argument("--hyperqueue", action="store_true")
    options = parser.parse_args()
    turns: dict[str, _Turn] = {SHARED: _shared_s}
    if options.hyperqueue:
        turns |= {ALLOCATED: _allocated_s, _THIRDS: _thirds_s}
    print(json.dumps(_throughputs(options.jobs, turns)))


def _throughputs(jobs: int, turns: Mapping[str, _Turn]) -> Figures:
    took_s: dict[str, list[float]] = {name: [] for name in turns}
    with slurm_site() as site:
        alone_s = _sbatch_all(site.cluster, site.folder, jobs)
        for number in range(TURNS):
            order = list(turns)[:: -1 if number % 2 else 1]
            for name in order:
                _await_idle(site.cluster)
                await_phase()
                took_s[name].append(turns[name](site, jobs, number))
    figures = {name: jobs / statistics.median(each) for name, each in took_s.items()}
    return {**figures, SBATCH: jobs / alone_s}


def _await_idle(cluster: SlurmCluster) -> None:
    until(lambda: cluster.idle_nodes() == set(NODES), "not all nodes are idle")


def _shared_s(site: Site, jobs: int, number: int) -> float:
    home = site.home
    add_pool(home, site.folder, "--mode=shared", "--cpus=4", "--max-workers=3")
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


def _allocated_s(site: Site, jobs: int, number: int) -> float:
    place = site.folder / f"allocated-{number}"
    place.mkdir()
    sizes = (jobs, len(NODES), _CORES)
    command = ("sleep", f"{_JOB_S}")
    slurm = site.cluster.environment
    began_s = peers.hyperqueue_allocated_s(place, *sizes, *command, slurm=slurm)
    return began_s + _JOB_S


def _thirds_s(site: Site, jobs: int, number: int) -> float:
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


if __name__ == "__main__":
    main()
