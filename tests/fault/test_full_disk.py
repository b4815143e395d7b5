"""A full disk: running jobs finish, nothing is lost, and it goes on by itself."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.errors import DiskFull
from grass.store.sqlite.database_file import SCHEMA_VERSION
from tests.store.filling import KEPT, dump, multiply, restored, version_of
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import await_end

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]

DISK_BYTES = 16 << 20
SOON_S = 20.0
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
def home(tmp_path: Path, disk: Path) -> Iterator[GrassHome]:
    """A home on that disk."""
    home = GrassHome(tmp_path, disk / "home")
    yield home
    (disk / "filler").unlink(missing_ok=True)
    home.end()


@pytest.fixture
def small(home: GrassHome) -> GrassHome:
    """The home on that disk, with a daemon."""
    home.ok("start")
    return home


def fill(disk: Path, leave: int = 0) -> None:
    """Leave so many bytes of room."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"x" * size)
        filler.truncate(filler.tell() - leave)


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
    first = small.enqueue("--", "true")
    small.wait(first)
    fill(disk)
    refused = small.run("enqueue", "--from", "-", input=lines)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "full" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert small.daemon_pid() == before
    (disk / "filler").unlink()
    assert [job["id"] for job in small.document()["jobs"]] == [first]
    assert small.client.job("last")["id"] == first
    after = small.enqueue("--", "echo", "again")
    assert after == first + 1
    assert small.wait(after)["state"] == "succeeded"
    assert [job["id"] for job in small.document()["jobs"]] == [first, after]
    assert small.daemon_pid() == before


def test_what_cannot_start_on_a_full_disk_starts_when_there_is_room(
    small: GrassHome, disk: Path
) -> None:
    small.ok("pause")
    small.ok("enqueue", "--output", "/dev/null", "--from", "-", input="true\n" * 60)
    fill(disk)
    small.ok("resume")
    for told in (small.reason(1), small.ok("explain", "1"), small.ok("show")):
        assert "is full" in told
    (disk / "filler").unlink()
    assert {small.wait(id)["state"] for id in range(1, 61)} == {"succeeded"}


def refuse_until_nothing_fits(small: GrassHome) -> None:
    """Have the database use up all that a full disk leaves it, and try again."""
    for size in (1000, 100, 10, 1):
        lines = f"true {'x' * 10_000}\n" * size
        while small.run("enqueue", "--hold", "--from", "-", input=lines).stdout:
            pass
    for _ in range(5):
        assert "full" in small.run("enqueue", "--", "true").stderr


def test_what_makes_room_works_on_a_full_disk(
    small: GrassHome, disk: Path, gate: Fifo, news: Fifo
) -> None:
    written = small.enqueue("head -c 3000000 /dev/zero")
    removed = small.enqueue("head -c 1000 /dev/zero")
    running = small.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    pid = small.await_start(running, news)
    held = small.enqueue("--hold", "--", "true")
    small.wait(written, removed)
    fill(disk)
    refuse_until_nothing_fits(small)
    small.ok("cancel", str(held))
    small.ok("remove", str(removed))
    gate.tell()
    await_end(pid)
    assert small.wait(running)["exit_code"] == 4
    assert "forgot 3 jobs" in small.ok("prune", "--older", "0s", "--yes")
    until(lambda: free(disk), "nothing came free", lambda size: size > 2_500_000)
    assert small.wait(going_on(small))["state"] == "succeeded"


def free(disk: Path) -> int:
    room = os.statvfs(disk)
    return room.f_bavail * room.f_frsize


def going_on(small: GrassHome) -> int:
    """Return a job's id, which is accepted within seconds of there being room."""

    def tried() -> str:
        return small.run("enqueue", "--", "true").stdout

    return int(until(tried, "it does not go on", within_s=SOON_S))


def test_it_goes_on_within_seconds_of_room_however_long_that_took(
    small: GrassHome, disk: Path
) -> None:
    small.ok("pause")
    waiting = small.enqueue("--", "true")
    fill(disk)
    refuse_until_nothing_fits(small)
    small.ok("resume")
    (disk / "filler").unlink()
    small.client.wait([str(waiting)], SOON_S)
    assert small.state(waiting) == "succeeded"


def test_a_full_disk_is_told_at_once(small: GrassHome, disk: Path) -> None:
    fill(disk)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(DiskFull, match="is full"):
            small.client.enqueue("true")
    assert time.monotonic() - began < 2.0


def test_a_daemon_comes_up_and_stops_on_a_full_disk(
    small: GrassHome, disk: Path, gate: Fifo, news: Fifo
) -> None:
    running = small.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    small.await_start(running, news)
    fill(disk)
    refuse_until_nothing_fits(small)
    small.kill_daemon()
    for _ in range(2):
        small.ok("start")
        assert "is full" in small.ok("show")
        assert "forget" not in small.ok("explain", str(running))
        assert "full" in small.run("enqueue", "--", "true").stderr
        small.ok("stop")
        fill(disk)
    small.ok("start")
    gate.tell()
    small.client.close()
    assert small.wait(running)["exit_code"] == 4
    (disk / "filler").unlink()
    assert small.wait(going_on(small))["state"] == "succeeded"


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


REWRITTEN = next(file for file in KEPT if file.stem == "schema_7")
"""The last schema of which every job is written anew."""


def test_a_database_is_not_brought_forward_where_that_has_no_room(
    home: GrassHome, disk: Path
) -> None:
    home.folder.mkdir(mode=0o700)
    old = restored(REWRITTEN, home.folder)
    multiply(old, 300)
    before, schema = list(dump(old)), version_of(old)
    fill(disk, leave=old.stat().st_size)
    for words in (("start",), ("prune", "--older", "0s", "--yes")):
        refused = home.run(*words)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert re.search(
            r"needs [\d,]+ bytes of disk space, and [\d,]+ are free", refused.stderr
        )
    assert (list(dump(old)), version_of(old)) == (before, schema)
    (disk / "filler").unlink()
    home.ok("start")
    assert version_of(old) == SCHEMA_VERSION
