"""Completion scripts, tried in the shells they are for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from grass.cli.commands.completion import SHELLS, script

from .conftest import Grass

TELL = """#!/bin/sh
[ "$GRASS_AUTOSTART" = 0 ] || exit 1
case "$*" in
    "show -q") printf '7\\n12\\n' ;;
    "show --queues -q") printf 'default\\nq1\\n' ;;
    "show --workers -q") printf 'desk\\nlab\\n' ;;
esac
"""
ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
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
        (["show", "q"], ["q1"]),
        (["delete-queue", ""], ["default", "q1"]),
        (["drain", ""], ["desk", "lab"]),
        (["resume", ""], ["default", "q1", "desk", "lab"]),
        (["workers", ""], ["forget", "desk", "lab"]),
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
