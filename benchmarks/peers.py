"""The peers: how they are installed and how one round of each is run.

HyperQueue lives in a virtual environment of its own beside this file; task-spooler is
the distribution's package, which only root can install. A peer that cannot be had is
left out, and the table says so.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.scratch import HERE, scratch_folder

Command = Sequence[str | Path]
Environment = Mapping[str, str]
HYPERQUEUE = "hyperqueue==0.27.*"
GRAIN, RAY, DASK = "grain-scheduler==0.17.*", "ray", "dask[distributed]"
NUMPY = "numpy"
_PEERS = HERE / ".peers"
_TASK_PEERS = HERE / ".task-peers"
TASKS_PYTHON = _TASK_PEERS / "bin" / "python"
"""An environment with Grass and the peers whose tasks are measured."""
_PYTHON = _PEERS / "bin" / "python"
_MOST_S = 600.0
"""A round of a peer that takes longer is given up."""


class LeftOut(Exception):
    """A peer cannot be had here; says why."""


def install_hyperqueue() -> None:
    """Make the environment with HyperQueue, unless it is there."""
    if not _works([*own_network(), "true"]):
        raise LeftOut("HyperQueue listens everywhere, and `unshare --net` fails here")
    if _PYTHON.exists() and _works([_PYTHON, "-c", "import hyperqueue"]):
        return
    _install([sys.executable, "-m", "venv", "--clear", _PEERS], "HyperQueue")
    _install([_PYTHON, "-m", "pip", "install", "--quiet", HYPERQUEUE], "HyperQueue")


def install_for_tasks(package: str) -> None:
    """Add a package to the environment in which tasks are measured."""
    if not TASKS_PYTHON.exists():
        _install([sys.executable, "-m", "venv", _TASK_PEERS], "its environment")
    pip: Command = [TASKS_PYTHON, "-m", "pip", "install", "--quiet"]
    # Grain uses a module that newer releases of setuptools lack.
    _install([*pip, "--editable", HERE.parent, NUMPY, "setuptools<80"], "Grass")
    _install([*pip, package], package)


def install_spooler() -> None:
    """Install task-spooler where it is missing and this is root."""
    if shutil.which("tsp"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise LeftOut("task-spooler is not installed (package task-spooler)")
    install = ["apt-get", "install", "-qq", "--no-install-recommends", "task-spooler"]
    try:
        _install(install, "task-spooler")
    except LeftOut:
        _install(["apt-get", "update", "-qq"], "task-spooler")
        _install(install, "task-spooler")


def hyperqueue_elapsed_s(jobs: int) -> float:
    """Run `true` so many times, two at a time, on a fresh local cluster."""
    with scratch_folder() as folder:
        command = hyperqueue_command(folder, jobs, 2, "true")
        return number_after("elapsed", command, HERE.parent, os.environ)


def hyperqueue_command(folder: Path, jobs: int, cores: int, *command: str) -> list[str]:
    """Return what runs a command so many times on a fresh cluster of so many cores."""
    script = str(HERE / "hyperqueue_round.py")
    words = [*own_network(), str(_PYTHON), "-I", script, str(folder)]
    return [*words, str(jobs), str(cores), *command]


def hyperqueue_allocated_s(
    folder: Path, jobs: int, workers: int, cores: int, *command: str, slurm: Environment
) -> float:
    """Run a command so many times in allocations that HyperQueue asks a Slurm for.

    This must be called in a network of our own, as must be that Slurm.
    """
    module = "benchmarks.hyperqueue_allocation"
    numbers = map(str, (jobs, workers, cores))
    words = [str(_PYTHON), "-m", module, str(folder), *numbers, *command]
    return number_after("elapsed", words, HERE.parent, slurm)


def number_after(
    word: str, command: Command, folder: Path, environment: Environment
) -> float:
    """Run a round in a folder; return the number that it prints after a word."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_MOST_S,
        check=False,
    )
    words = done.stdout.split()
    if done.returncode or word not in words:
        said = done.stderr.strip()[-1500:]
        raise RuntimeError(f"{shlex.join(map(str, command))} failed: {said}")
    return float(words[words.index(word) + 1])


def spooler_elapsed_s(jobs: int) -> float:
    """Run `true` so many times, two at a time, in a fresh task-spooler."""
    with scratch_folder() as folder, _spooler(folder) as environment:
        started = time.perf_counter()
        ids = [_tsp(environment, "true") for _ in range(jobs)]
        for last in ids[-2:]:
            _tsp(environment, "-w", last)
        return time.perf_counter() - started


def own_network() -> list[str]:
    """Return the words that run a command where loopback is the only interface.

    Slurm looks up addresses of those kinds alone of which the host has another one
    than 127.0.0.1, so there is one.
    """
    as_user = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
    loopback = "ip link set lo up && ip address add 127.0.0.2 dev lo"
    script = f'PATH="$PATH:/usr/sbin:/sbin" && {loopback} && exec "$@"'
    return ["unshare", *as_user, "--net", "sh", "-c", script, "sh"]


@contextmanager
def _spooler(folder: Path) -> Iterator[dict[str, str]]:
    """Give the environment in which `tsp` speaks to a server of our own."""
    # Only the socket lies elsewhere: its path has to be short.
    with tempfile.TemporaryDirectory() as place:
        socket = f"{place}/socket"
        environment = {**os.environ, "TMPDIR": str(folder), "TS_SOCKET": socket}
        _tsp(environment, "-S", "2")
        try:
            yield environment
        finally:
            _tsp(environment, "-K")


def _tsp(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        ["tsp", *words], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def _install(command: Command, peer: str) -> None:
    if not _works(command):
        raise LeftOut(f"{peer} could not be installed: {Path(command[0]).name} failed")


def _works(command: Command) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return done.returncode == 0
