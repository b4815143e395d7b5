"""A backup brings the broker and its identity back; a lost `worker-id` is recovered."""

import json
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from grass.keeper import crash_points
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


def test_each_identity_that_was_replaced_is_kept(
    home: GrassHome, tmp_path: Path
) -> None:
    home.ok("backup", str(tmp_path / "kept"))
    home.ok("stop")
    own = home.folder / "worker-id"
    for id in ("0123456789abcdef", "fedcba9876543210"):
        own.write_text(f"{id}\n")
        home.ok("restore", "--replace", str(tmp_path / "kept"))
    kept = [home.folder / f"worker-id.before-restore{end}" for end in ("", ".2")]
    ids = [one.read_text().strip() for one in kept]
    assert ids == ["0123456789abcdef", "fedcba9876543210"]


def test_a_restore_leaves_the_options_of_the_daemon(
    home: GrassHome, tmp_path: Path
) -> None:
    options = home.folder / "daemon-options.json"
    home.ok("restart", "--bind", "127.0.0.1:0")
    home.ok("backup", str(tmp_path / "kept"))
    home.ok("restart", "--bind", "127.0.0.2:0")
    home.ok("stop")
    was = options.read_bytes()
    home.ok("restore", str(tmp_path / "kept"))
    assert options.read_bytes() == was
    options.unlink()
    home.ok("restore", str(tmp_path / "kept"))
    assert b"127.0.0.1:0" in options.read_bytes()


def test_a_restore_that_is_killed_has_no_database_without_its_identity(
    home: GrassHome, tmp_path: Path
) -> None:
    home.ok("restart", "--bind", "127.0.0.1:0")
    home.enqueue("--hold", "--", "true")
    home.ok("backup", str(tmp_path / "kept"))
    home.ok("stop")
    home.client.close()
    before = identity(home.folder)
    leave_only(home.folder, tmp_path / "kept")
    words = ["restore", "--replace", str(tmp_path / "kept")]
    killed = home.run(*words, env={crash_points.VARIABLE: "restore-identity:1"})
    assert killed.returncode == -signal.SIGKILL
    assert identity(home.folder) == before
    refused = home.run("start")
    assert refused.returncode != 0
    assert "restore it from a backup" in refused.stderr
    assert "the database has 1 job again" in home.ok(*words)
    home.ok("start")


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
