"""A grass command as a real process, in a state directory of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from grass.cli.main import dispatch
from grass.client.connection import last_answer

from .fake_broker import FakeBroker
from .fake_daemon import FakeDaemon

SOURCE = str(Path(__file__).parents[2] / "src")

Grass = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GRASS_")}
    return {**kept, "GRASS_HOME": str(tmp_path / "home"), "PYTHONPATH": SOURCE}


@pytest.fixture
def grass(surroundings: dict[str, str]) -> Grass:
    """Run one command to its end, without starting a daemon."""

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


class Called(NamedTuple):
    """What a command did that ran within the test."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]


@pytest.fixture
def fake_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeDaemon]:
    """A daemon that the test plays, found by every command."""
    for name in [name for name in os.environ if name.startswith("GRASS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRASS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GRASS_AUTOSTART", "0")
    # Another test may have left the version of its daemon.
    monkeypatch.setattr(last_answer, "version", None)
    playing = FakeDaemon(tmp_path / "home")
    yield playing
    playing.close()


@pytest.fixture
def fake_broker(fake_daemon: FakeDaemon, tmp_path: Path) -> Iterator[FakeBroker]:
    """A broker on another machine that the test plays; it was not joined yet."""
    playing = FakeBroker(tmp_path / "broker")
    yield playing
    playing.close()


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command within the test, beside a daemon that the test plays."""

    def run(*words: str) -> Called:
        code = dispatch(list(words))
        said = capsys.readouterr()
        return Called(code, said.out, said.err)

    return run
