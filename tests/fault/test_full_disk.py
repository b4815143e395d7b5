"""A full disk: running jobs finish, nothing is lost, and it goes on by itself."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import await_end

pytestmark = pytest.mark.daemon

DISK_BYTES = 16 << 20
MANY_LINES = f"true {'x' * 10_000}\n" * 1000
"""More than the database has room for where it lies."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "grass-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small(tmp_path: Path, disk: Path) -> Iterator[GrassHome]:
    """A home on that disk, with a daemon."""
    home = GrassHome(tmp_path, disk / "home")
    home.ok("start")
    yield home
    (disk / "filler").unlink(missing_ok=True)
    home.end()


def fill(disk: Path) -> None:
    """Leave not a byte of room."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"x" * size)


def test_a_full_disk_is_told_and_loses_nothing(
    small: GrassHome, disk: Path, gate: Fifo, news: Fifo
) -> None:
    running = small.enqueue(f"echo $$ > {news}; read x < {gate}; echo late; exit 4")
    pid = int(news.hear())
    fill(disk)
    refused = small.run("enqueue", "--from", "-", input=MANY_LINES)
    assert refused.returncode == 1
    assert "full" in refused.stderr
    assert refused.stderr.count("\n") == 1
    gate.tell()
    await_end(pid)
    (disk / "filler").unlink()
    ended = small.wait(running)
    assert (ended["state"], ended["exit_code"]) == ("failed", 4)
    after = small.enqueue("--", "echo", "again")
    assert small.wait(after)["state"] == "succeeded"
    assert len(small.document()["jobs"]) == 2


def test_a_daemon_killed_on_a_full_disk_comes_back_when_there_is_room(
    small: GrassHome, disk: Path, gate: Fifo, news: Fifo
) -> None:
    running = small.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    pid = int(news.hear())
    fill(disk)
    small.kill_daemon()
    gate.tell()
    await_end(pid)
    tried = small.run("enqueue", "--from", "-", input=MANY_LINES)
    assert tried.returncode == 1
    assert tried.stderr.count("\n") == 1
    (disk / "filler").unlink()
    assert small.wait(running)["exit_code"] == 4


def test_a_bulk_enqueue_onto_a_full_disk_is_refused_whole(
    small: GrassHome, disk: Path
) -> None:
    """More lines than the broker takes in at once: some slices were written before."""
    lines = f"true {'x' * 1000}\n" * 5000
    before = small.daemon_pid()
    fill(disk)
    refused = small.run("enqueue", "--from", "-", input=lines)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "full" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert small.daemon_pid() == before
    (disk / "filler").unlink()
    assert small.document()["jobs"] == []
    after = small.enqueue("--", "echo", "again")
    assert small.wait(after)["state"] == "succeeded"
    assert [job["id"] for job in small.document()["jobs"]] == [after]
    assert small.daemon_pid() == before


def test_what_cannot_start_on_a_full_disk_starts_when_there_is_room(
    small: GrassHome, disk: Path
) -> None:
    small.ok("pause")
    small.ok("enqueue", "--output", "/dev/null", "--from", "-", input="true\n" * 60)
    fill(disk)
    small.ok("resume")
    small.await_event("started", 1)
    (disk / "filler").unlink()
    assert {small.wait(id)["state"] for id in range(1, 61)} == {"succeeded"}


def test_a_keeper_comes_up_on_a_full_disk_and_keeps_time_limits(
    small: GrassHome, disk: Path, news: Fifo
) -> None:
    line = f"echo $$ > {news}; exec sleep 1000"
    id = small.enqueue("--time-limit", "3s", "--output", "/dev/null", line)
    pid = int(news.hear())
    fill(disk)
    small.kill_keeper()
    await_end(pid)
    (disk / "filler").unlink()
    job = small.wait(id)
    assert (job["state"], job["reason"]) == ("failed", "time limit")
