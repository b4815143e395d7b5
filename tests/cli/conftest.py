"""A grass command as a real process, in a state directory of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")

Grass = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GRASS_")}
    return {**kept, "GRASS_HOME": str(tmp_path / "home"), "PYTHONPATH": SOURCE}


@pytest.fixture
def grass(surroundings: dict[str, str]) -> Grass:
    """Run one command to its end; no daemon is started by the way."""

    def run(
        *words: str, input: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "grass", *words],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            env={"GRASS_AUTOSTART": "0", **surroundings, **variables},
        )

    return run


@pytest.fixture
def running(grass: Grass) -> Iterator[Grass]:
    """Run commands beside a daemon, which is stopped with its jobs at the end."""
    started = grass("start")
    assert started.returncode == 0, started.stderr
    yield grass
    grass("start")
    stopped = grass("stop", "--jobs")
    assert stopped.returncode == 0, stopped.stderr
