"""A home on a file system that is read-only: what only reads goes on."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.homes import GrassHome
from tests.support.processes import await_end

pytestmark = pytest.mark.daemon


@pytest.fixture
def place(home: GrassHome, tmp_path: Path) -> Iterator[Path]:
    """The state directory of a home as a caller sees it who cannot write there."""
    place = tmp_path / "read-only"
    place.mkdir()
    bind = ["mount", "--bind", str(home.folder), str(place)]
    if os.geteuid() != 0 or subprocess.run(bind, check=False).returncode:
        pytest.skip("mounting a folder needs root")
    subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_commands_that_read_work_while_a_daemon_runs(
    home: GrassHome, place: Path
) -> None:
    env = {"GRASS_HOME": str(place)}
    home.wait(home.enqueue("--", "echo", "printed"))
    for words in (("show",), ("show", "1"), ("explain", "1"), ("events",), ("start",)):
        home.ok(*words, env=env)
    assert home.ok("logs", "1", env=env) == "printed\n"
    daemon = home.daemon_pid()
    assert daemon is not None
    assert "is stopped" in home.ok("stop", env=env)
    await_end(daemon)


def test_without_a_daemon_one_line_says_why_there_is_none(
    home: GrassHome, place: Path
) -> None:
    home.ok("stop")
    (home.folder / "stopped").unlink()
    for command in ("show", "start", "enqueue"):
        words = (command, "--", "true") if command == "enqueue" else (command,)
        refused = home.run(*words, env={"GRASS_HOME": str(place)})
        assert refused.returncode == 3
        assert refused.stderr.count("\n") == 1
        assert f"none can be started in {place}: Read-only" in refused.stderr
        assert "GRASS_HOME" in refused.stderr
    foreground = home.run("daemon", env={"GRASS_HOME": str(place)})
    assert foreground.returncode == 1
    assert f"{place} cannot be used: Read-only file system" in foreground.stderr
