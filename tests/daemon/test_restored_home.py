"""A backup brings the broker and its identity back; a lost `worker-id` is recovered."""

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import alive

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]

FILES = ("worker-id", "broker.key")


def identity(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


def leave_only(folder: Path, backup: Path) -> None:
    """Have a fresh home, as on a new machine; the old one is gone."""
    for one in folder.iterdir():
        if one != backup:
            shutil.rmtree(one) if one.is_dir() else one.unlink()


def test_a_backup_in_a_fresh_home_brings_the_broker_back(home: GrassHome) -> None:
    home.ok("restart", "--bind", "127.0.0.1:0")
    home.ok("create-queue", "q", "--capacity", "{cpu:1}")
    waiting = home.enqueue("--hold", "--cwd", "/", "q", "--", "true")
    backup = home.folder / "kept"
    home.ok("backup", str(backup))
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    before = identity(home.folder)
    home.ok("stop")
    home.client.close()
    leave_only(home.folder, backup)
    refused = home.run("restore", str(backup))
    assert refused.returncode == 5
    assert "--replace" in refused.stderr
    assert not (home.folder / "grass.db").exists()
    home.ok("restore", "--replace", str(backup))
    assert identity(home.folder) == before
    modes = {stat.S_IMODE((home.folder / name).stat().st_mode) for name in FILES}
    assert modes == {0o600}
    home.ok("start")
    (worker,) = json.loads(home.ok("workers", "--json"))["workers"]
    assert worker["connected"]
    home.ok("release", "--yes", str(waiting))
    assert home.wait(waiting)["state"] == "succeeded"


def test_a_restore_in_the_same_home_asks_nothing(home: GrassHome) -> None:
    home.ok("backup", "kept")
    home.ok("stop")
    home.ok("restore", "kept")


def test_the_identity_that_a_home_had_is_kept_beside_the_restored_one(
    home: GrassHome, tmp_path: Path
) -> None:
    home.ok("backup", str(tmp_path / "kept"))
    home.ok("stop")
    own = home.folder / "worker-id"
    was = own.read_text()
    own.write_text("0123456789abcdef\n")
    assert home.run("restore", str(tmp_path / "kept")).returncode == 5
    home.ok("restore", "--replace", str(tmp_path / "kept"))
    assert own.read_text() == was
    kept = home.folder / "worker-id.before-restore"
    assert kept.read_text() == "0123456789abcdef\n"


def test_a_lost_worker_id_is_recovered_and_its_job_runs_on(
    home: GrassHome, fifo: Callable[[str], Fifo]
) -> None:
    news, go = fifo("news"), fifo("go")
    job = home.enqueue("--", f"echo $$ > {news}; read line < {go}; exit 3")
    pid = int(news.hear())
    home.ok("stop")
    home.client.close()
    path = home.folder / "worker-id"
    was = path.read_text()
    path.unlink()
    home.ok("start")
    assert path.read_text() == was
    assert len(json.loads(home.ok("workers", "--json"))["workers"]) == 1
    assert alive(pid)
    go.tell()
    assert home.wait(job)["exit_code"] == 3


def test_a_wait_for_an_identity_that_is_lost_for_good_says_so(home: GrassHome) -> None:
    home.ok("create-queue", "q", "--capacity", "{cpu:1}")
    job = home.enqueue("--hold", "q", "--", "true")
    home.ok("stop")
    home.client.close()
    (home.folder / "worker-id").unlink()
    (home.folder / "keeper" / "worker-id").unlink()
    home.ok("start")
    home.ok("release", "--yes", str(job))
    old, new = (one["name"] for one in home.client.workers()["workers"])
    assert f"`{new}` now" in home.ok("explain", str(job))
    warned = home.run("workers").stderr
    assert "has another identity" in warned
    assert f"grass workers forget {old}" in warned
