"""A broker where Slurm's commands work, and what tests ask of it."""

import getpass
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.homes import GrassHome
from tests.support.slurm import SlurmCluster

Document = dict[str, Any]


@contextmanager
def slurm_home(cluster: SlurmCluster, folder: Path) -> Iterator[GrassHome]:
    """Give a broker without a worker of its own."""
    made = GrassHome(folder)
    made.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
    made.environment["PATH"] += ":/usr/sbin:/sbin"
    made.ok("start", "--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
    yield made
    for pool in pools(made):
        made.ok("pool", "remove", pool["name"])
    cluster.run("scancel", "-u", getpass.getuser())
    made.end()


def pools(home: GrassHome) -> list[Document]:
    """Return all pools."""
    found: list[Document] = json.loads(home.ok("pool", "show", "--json"))["pools"]
    return found


def pilots(home: GrassHome) -> list[Document]:
    """Return the pilots of all pools."""
    return [pilot for pool in pools(home) for pilot in pool["pilots"]]


def slurm_jobs(cluster: SlurmCluster, folder: Path, state: str = "all") -> list[str]:
    """Return the pilots of this test, which run in its own folder."""
    words = ("squeue", "-h", "-t", state, "-n", "grass-uni", "-o", "%i %Z")
    found = (line.split(maxsplit=1) for line in cluster.run(*words).splitlines())
    return [number for number, place in found if place == str(folder)]


class Ledger:
    """What jobs themselves write: a line when one begins, and one when it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def line(self, seconds: float) -> str:
        """Return the command of a job that writes into it."""
        note = f'echo "$GRASS_JOB_ID {{}}" >> {self.path}'
        return f"{note.format('began')}; sleep {seconds} && {note.format('ended')}"

    def counts(self, what: str) -> Counter[int]:
        """Return how often each job began, or ended."""
        lines = (line.split() for line in self.path.read_text().splitlines())
        return Counter(int(job) for job, did in lines if did == what)
