"""Completion scripts, tried in the shells they are for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from grass.cli.commands.completion import SHELLS, script

from .conftest import Call, Grass
from .documents import job
from .fake_daemon import FakeDaemon

TELL = """#!/bin/sh
[ "$GRASS_AUTOSTART" = 0 ] && [ "$1 $2 $4" = "completion --offer --" ] || exit 1
case "$3" in
    jobs=held) printf '7\\ttrain, held\\nlast\\n@\\nstate:\\n' ;;
    jobs*) printf '7\\ttrain, running\\n12\\tx, queued\\nlast\\nall\\n' ;;
    queues) printf 'default\\nq1\\n' ;;
    workers) printf 'desk\\nlab\\n' ;;
    units) printf 'gpu:0\\ngpu:1\\n' ;;
esac | grep "^$5"
"""
ASK = """
source "$1"; shift
COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
compopt() { :; }
_grass grass
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH with a `grass` that knows two jobs and two queues."""
    told = tmp_path / "grass"
    told.write_text(TELL)
    told.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid(tmp_path: Path, shell: str) -> None:
    written = tmp_path / "script"
    written.write_text(script(shell))
    found = shutil.which(shell)
    if found is not None:
        subprocess.run([found, "-n", str(written)], check=True)
    assert not re.search(r"@\w+@", script(shell))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sho"], ["show"]),
        (["cancel", ""], ["7", "12", "last", "all"]),
        (["release", ""], ["7", "last", "@", "state:"]),
        (["enqueue", "--", "cat", f"{__file__}"[:-4]], [__file__]),
        (["enqueue", "-g", "1", "q1", "cat", "--fo"], [""]),
        (["run", "cat", "ta"], [""]),
        (["show", "q"], ["q1"]),
        (["delete-queue", ""], ["default", "q1"]),
        (["drain", ""], ["gpu:0", "gpu:1", "desk", "lab"]),
        (["drain", "gpu:"], ["0", "1"]),
        (["capacity", "remove", "gpu:1"], ["1"]),
        (["resume", ""], ["default", "q1", "gpu:0", "gpu:1", "desk", "lab"]),
        (["workers", ""], ["forget", "foreign", "end", "keep", "desk", "lab"]),
        (["enqueue", "--worker", "l"], ["lab"]),
        (["jo"], ["join"]),
        (["show", "--state", "f"], ["failed"]),
        (["show", "--queue", ""], ["default", "q1"]),
        (["logs", "--fol"], ["--follow"]),
        (["enqueue", "--format", ""], ["text", "json"]),
        (["completion", ""], list(SHELLS)),
        (["enqueue", "--priority", ""], [""]),
    ],
)
def test_bash_completes(
    tmp_path: Path, path: str, words: list[str], expected: list[str]
) -> None:
    written = tmp_path / "script"
    written.write_text(script("bash"))
    ran = subprocess.run(
        ["bash", "-c", ASK, "bash", str(written), "grass", *words],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout.splitlines(), ran.stderr) == (expected, "")


def test_bash_completes_files(tmp_path: Path, path: str) -> None:
    (tmp_path / "jobs.txt").touch()
    test_bash_completes(
        tmp_path,
        path,
        ["enqueue", "--from", f"{tmp_path}/jo"],
        [f"{tmp_path}/jobs.txt"],
    )


def test_an_unknown_shell_is_refused(grass: Grass) -> None:
    ran = grass("completion", "csh")
    assert ran.returncode == 2
    assert ran.stderr == (
        "grass completion: there is no completion for `csh` (bash, zsh or fish)\n"
    )


def test_the_script_is_printed(grass: Grass) -> None:
    assert grass("completion", "fish").stdout == script("fish")


def test_only_jobs_are_offered_that_a_verb_can_act_on(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    states = ["running", "held", "failed"]
    jobs = [job(state=state, id=id) for id, state in enumerate(states, 3)]
    jobs.append(job(id=8, state="lost", name="a\n9\x1b[31m"))
    queues, workers = [{"name": "q1"}], [{"name": "w", "capacity": {"gpu": {"0": 1}}}]
    told = {"jobs": jobs, "queues": queues, "workers": workers}
    fake_daemon.answers["GET /overview"] = told
    asked = call("completion", "--offer", "jobs=held").out.splitlines()
    selectors = ["last", "all", "@", "name~", "queue:", "state:"]
    assert asked == ["4\ttrain, held", *selectors]
    assert call("completion", "--offer", "jobs", "5").out == "5\ttrain, failed\n"
    named = call("completion", "--offer", "jobs", "8").out
    assert named == "8\ta\\n9\\x1b[31m, lost\n"
    offered = {
        "@": "@default\n",
        "queue:": "queue:q1\n",
        "state:f": "state:failed\n",
    }
    for word, said in offered.items():
        assert call("completion", "--offer", "jobs", word).out == said
    assert call("completion", "--offer", "units", "gpu").out == "gpu:0\n"
    assert call("completion", "--offer", "jobs=held", "state:f").out == ""


def test_nothing_is_offered_where_no_daemon_runs(grass: Grass) -> None:
    ran = grass("completion", "--offer", "jobs", GRASS_AUTOSTART="0")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
