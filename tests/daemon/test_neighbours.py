"""Another user on the same machine."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.homes import GRASS, GrassHome
from tests.support.nobody import NOBODY, as_nobody, other_home, run_as_nobody
from tests.support.processes import await_end

__all__ = ["other_home"]

pytestmark = pytest.mark.daemon


def test_a_daemon_warns_of_another_users(home: GrassHome, other_home: Path) -> None:
    started = as_nobody(other_home, "start")
    assert started.returncode == 0, started.stderr
    try:
        log = (other_home / "daemon.log").read_text()
        assert f" pid={home.daemon_pid()} " in log
        home.ok("restart")
        ours = (home.folder / "daemon.log").read_text()
        assert f"daemon.other_user uid={NOBODY} " in ours
        keeper = int((other_home / "keeper" / "lock").read_text())
    finally:
        stopped = as_nobody(other_home, "stop", "--jobs")
    assert stopped.returncode == 0, stopped.stderr
    await_end(keeper)


def test_only_a_daemon_that_has_started_warns_of_another_users(
    cold: GrassHome, other_home: Path, tmp_path: Path
) -> None:
    """What fails is one line, and commands that lock the home are no daemons."""
    cold.ok("start", "--store=sqlite")
    copy = str(tmp_path / "copy.db")
    cold.ok("backup", copy)
    cold.ok("stop")
    (cold.folder / "grass.db").unlink()
    assert as_nobody(other_home, "start").returncode == 0
    try:
        keeper = int((other_home / "keeper" / "lock").read_text())
        failed = cold.run("daemon")
        restored = cold.run("restore", copy, env={"GRASS_STORE_URL": "sqlite"})
    finally:
        as_nobody(other_home, "stop", "--jobs")
    await_end(keeper)
    assert (failed.returncode, failed.stderr.count("\n")) == (5, 1)
    assert (restored.returncode, restored.stderr) == (0, "")


def test_another_users_daemon_does_not_answer(
    home: GrassHome, other_home: Path
) -> None:
    home.folder.chmod(0o755)
    refused = as_nobody(home.folder, "enqueue", "--", "true")
    assert refused.returncode != 0
    assert home.document()["jobs"] == []
    assert not other_home.exists()


def test_a_mask_that_forbids_everything_locks_nobody_out(other_home: Path) -> None:
    """Output goes into folders of the project; those are not for the mask to close."""
    assert as_nobody(other_home, "start").returncode == 0
    ran = enqueue_with_mask(other_home)
    assert ran.returncode == 0, ran


def test_a_home_made_under_such_a_mask_can_be_used(other_home: Path) -> None:
    # `Home.make` leaves it to the mask what the owner may do in the new folders.
    ran = enqueue_with_mask(other_home)
    assert ran.returncode == 0, ran


def enqueue_with_mask(home: Path) -> subprocess.CompletedProcess[str]:
    """Run two jobs of one project, the first of them with a mask that hides all."""
    grass = shlex.join(GRASS)
    line = (
        f"umask 0777; {grass} enqueue --project p1 -- true && {grass} wait 1; "
        f"umask 0022; {grass} enqueue --project p1 -- true && {grass} wait 2"
    )
    ran = run_as_nobody(home, ["bash", "-c", line])
    lock = home / "keeper" / "lock"
    keeper = int(lock.read_text()) if lock.exists() else 0
    as_nobody(home, "stop", "--jobs")
    if keeper:
        await_end(keeper)
    return ran
