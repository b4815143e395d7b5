"""A real Slurm with three nodes of four cores on this host, and a daemon beside it."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.homes import GrassHome
from tests.support.slurm import SlurmCluster

from benchmarks.scratch import scratch_folder

_TICK_S = 1.0
"""How often Slurm starts batch jobs."""


class Site(NamedTuple):
    """A Slurm, a daemon whose commands reach it, and a folder."""

    cluster: SlurmCluster
    home: GrassHome
    folder: Path


@contextmanager
def slurm_site() -> Iterator[Site]:
    """Start both with an empty folder; end them and remove it."""
    with scratch_folder() as folder:
        cluster = SlurmCluster(folder / "slurm")
        home = GrassHome(folder)
        home.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
        home.environment["PATH"] += ":/usr/sbin:/sbin"
        cluster.start()
        try:
            bound = ("--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
            home.ok("start", *bound)
            yield Site(cluster, home, folder)
        finally:
            cluster.run("scancel", "--name=grass-uni")
            home.end()
            cluster.stop()


def add_pool(home: GrassHome, folder: Path, *options: str) -> None:
    """Add a pool as it is where the home directory is shared, in a folder of ours."""
    shared = (f"--folder={folder / 'pilots'}", "--environment=caller")
    (folder / "pilots").mkdir(exist_ok=True)
    home.ok("pool", "add", "uni", "--slurm", "--time=30m", *shared, *options)


def await_phase() -> None:
    """Wait for any phase of Slurm's tick; what has just ended is bound to one."""
    time.sleep(random.uniform(0, _TICK_S))
