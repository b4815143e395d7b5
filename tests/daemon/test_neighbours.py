"""Daemons of two users on one machine know that the other exists."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.homes import GRASS, GrassHome
from tests.support.processes import await_end

pytestmark = pytest.mark.daemon

NOBODY = "65534"


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
    """Run a command as another user, who may yet read where Python lies."""
    reading = "+dac_override,+dac_read_search"
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    become += [f"--inh-caps={reading}", f"--ambient-caps={reading}"]
    return subprocess.run(
        [*become, *GRASS, *words],
        env={"GRASS_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"]},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_a_daemon_warns_of_another_users(home: GrassHome, other_home: Path) -> None:
    started = as_nobody(other_home, "start")
    assert started.returncode == 0, started.stderr
    try:
        log = (other_home / "daemon.log").read_text()
        assert f"(pid {home.daemon_pid()})" in log
        home.ok("restart")
        ours = (home.folder / "daemon.log").read_text()
        assert f"user {NOBODY} runs a grass daemon on this machine too" in ours
        keeper = int((other_home / "keeper" / "lock").read_text())
    finally:
        stopped = as_nobody(other_home, "stop", "--jobs")
    assert stopped.returncode == 0, stopped.stderr
    await_end(keeper)


def test_another_users_daemon_does_not_answer(
    home: GrassHome, other_home: Path
) -> None:
    home.folder.chmod(0o755)
    refused = as_nobody(home.folder, "enqueue", "--", "true")
    assert refused.returncode != 0
    assert home.document()["jobs"] == []
    assert not other_home.exists()
