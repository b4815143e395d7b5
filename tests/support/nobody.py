"""Becoming another user, who owns nothing and may read where Python lies."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.homes import GRASS

NOBODY = "65534"
READING = "+dac_read_search"
"""Lets the user look everywhere, but write only where anybody may."""


@pytest.fixture
def other_home() -> Iterator[Path]:
    """A folder that another user owns, where that user can reach it."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, int(NOBODY), int(NOBODY))
    yield folder / "home"
    shutil.rmtree(folder)


def as_nobody(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of grass as another user."""
    return run_as_nobody(home, [*GRASS, *words])


def run_as_nobody(home: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run anything as another user."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    become += [f"--inh-caps={READING}", f"--ambient-caps={READING}"]
    return subprocess.run(
        [*become, *words],
        env={"GRASS_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"]},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
