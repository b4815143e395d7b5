"""`grass up` with Grain's files: a real daemon, a real Slurm, a command of our own."""

import getpass
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.slurm import SlurmCluster

pytestmark = pytest.mark.daemon
SLURM = """\
system = "slurm"

[worker]
name = "grain-{{HHMMSS}}"
log_file = "worker.log"

[script]
cores = 1
memory = 1
walltime = "00:10:00"
extra_args = ["--nice=5"]
setup_cleanup = '''
export OF_SETUP=yes
defer echo last >> after
defer echo first >> after'''
"""
CUSTOM = """\
[custom_system]
submit_cmd = "{submit}"
directory = "#X"
template = '''{{c.script.shebang}}
{{{{MAIN}}}}
'''

[script]
cores = 1
walltime = "00:10:00"
setup_cleanup = "export OF_SETUP=yes"
"""
SUBMIT = """#!/bin/sh
cat "$1" > {copy}
setsid sh {copy} > {log} 2>&1 < /dev/null &
echo submitted
"""


def started(tmp_path: Path) -> GrassHome:
    made = GrassHome(tmp_path)
    made.environment["HOME"] = str(tmp_path)
    return made


@pytest.fixture
def home(tmp_path: Path) -> Iterator[GrassHome]:
    """A broker without a worker of its own, whose user has a home of the test's."""
    made = started(tmp_path)
    made.ok("start", "--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
    yield made
    ended(made)


@pytest.fixture
def at_slurm(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[GrassHome]:
    """The same where Slurm's commands work."""
    made = started(tmp_path)
    made.environment["SLURM_CONF"] = slurm_cluster.environment["SLURM_CONF"]
    made.environment["PATH"] += ":/usr/sbin:/sbin"
    made.ok("start", "--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
    yield made
    ended(made)
    slurm_cluster.run("scancel", "-u", getpass.getuser())


def ended(home: GrassHome) -> None:
    for worker in workers(home):
        home.run("up", "unreg", worker["mark"])
    until(lambda: workers(home), "a worker stays", lambda left: not left)
    home.end()


def workers(home: GrassHome) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(home.ok("up", "ls", "--json"))["workers"]
    return found


def test_grains_file_for_slurm_starts_workers(
    at_slurm: GrassHome, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    home, place = at_slurm, tmp_path / "project"
    place.mkdir()
    (place / "grain.toml").write_text(SLURM)
    script = home.ok("up", "--dry", cwd=place)
    assert "#SBATCH --ntasks-per-node=1" in script
    assert workers(home) == []
    home.ok("up", "-n", "2", cwd=place)
    came = until(lambda: workers(home), "they do not come", both_are_connected)
    shown = slurm_cluster.run("scontrol", "-o", "show", "job", came[0]["engine_id"])
    assert "JobName=grain-" in shown
    assert "NumCPUs=1" in shown
    job = home.enqueue("--", "sh", "-c", f"echo $OF_SETUP > {tmp_path / 'ledger'}")
    home.wait(job)
    for worker in came:
        home.ok("up", "unreg", worker["engine_id"])
    until(lambda: workers(home), "a worker stays", lambda left: not left)
    after = place / "after"
    until(
        lambda: after.read_text().splitlines() if after.exists() else [],
        "what was deferred is not done",
        lambda lines: sorted(lines) == ["first", "first", "last", "last"],
    )
    # The same file is the same pool; another one is not.
    (place / "grain.toml").write_text(SLURM.replace("nice=5", "nice=6"))
    ran = home.run("up", cwd=place)
    assert ran.returncode == 2
    assert "`grass pool remove grain`" in ran.stderr


def test_grains_file_for_a_system_of_its_own_starts_workers(
    home: GrassHome, tmp_path: Path
) -> None:
    place = tmp_path / "project"
    place.mkdir()
    submit = place / "submit"
    submit.write_text(SUBMIT.format(copy=place / "copy", log=place / "log"))
    submit.chmod(0o755)
    (place / "mine.toml").write_text(CUSTOM.format(submit=submit))
    home.ok("up", "-c", "mine.toml", "mine", cwd=place)
    (came,) = until(
        lambda: workers(home), "it does not come", lambda x: x and x[0]["connected"]
    )
    assert (came["pool"], came["engine_id"]) == ("mine", came["mark"])
    job = home.enqueue("--", "sh", "-c", "echo ran")
    home.wait(job)
    home.ok("up", "unreg", came["worker"])
    until(lambda: workers(home), "it stays", lambda left: not left)


def test_without_a_pool_and_a_file_the_next_step_is_said(
    home: GrassHome, tmp_path: Path
) -> None:
    ran = home.run("up", "-n", "4", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.startswith("grass up: there is no file grain.toml (name a pool")
    assert len(ran.stderr.splitlines()) == 1


def both_are_connected(pilots: list[dict[str, Any]]) -> bool:
    return [one["connected"] for one in pilots] == [True, True]
