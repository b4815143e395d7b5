"""A disk that fails: jobs run on, callers are told, and the next daemon is right.

A commit that failed may or may not be on the disk. Grass does not try it again on a
file that it cannot trust any more: the daemon says so and stops, and the next command
starts one that believes only what it reads.
"""

import contextlib
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.client.autostart import connect
from grass.config import Home
from grass.errors import StorageError
from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome
from tests.support.patience import PATIENCE_S, until
from tests.support.processes import alive, await_end, until_ready

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]

ROOT = Path(__file__).parents[2]
FAILED_SYNC = "SQLITE_IOERR_FSYNC"


class Faulty:
    """A home whose daemon can be made to fail."""

    def __init__(self, home: GrassHome) -> None:
        self.home = home
        home.folder.mkdir(mode=0o700)
        words = [sys.executable, "-m", "tests.fault.faulty_daemon", str(home.folder)]
        self.process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=home.environment,
            text=True,
        )
        until_ready(self.process)

    def fail_next_commit(self, name: str, when: str) -> None:
        fault = self.home.folder / "fault"
        fault.with_suffix(".new").write_text(f"{name} {when}")
        fault.with_suffix(".new").rename(fault)

    def last_words(self) -> str:
        """Wait until the daemon has stopped, and return what it said."""
        _, said = self.process.communicate(timeout=PATIENCE_S)
        self.home.client.close()
        assert self.process.returncode == 1
        return said


@pytest.fixture
def faulty(cold: GrassHome) -> Iterator[Faulty]:
    faulty = Faulty(cold)
    yield faulty
    if faulty.process.poll() is None:
        faulty.process.kill()
    faulty.process.communicate()


when = pytest.mark.parametrize("when", ["before", "after"])


def await_quiet(home: GrassHome, id: int) -> None:
    """Return when the disk knows that a job runs: nothing is left to be written."""
    query = "SELECT state FROM attempts WHERE job = ?"
    until(
        lambda: home.rows(query, id),
        "the start was never written",
        lambda rows: rows == [("running",)],
    )


@when
def test_a_failed_sync_stops_the_daemon_and_the_next_one_goes_on(
    faulty: Faulty, gate: Fifo, news: Fifo, when: str
) -> None:
    home = faulty.home
    running = home.enqueue(f"echo $$ > {news}; read x < {gate}; echo late; exit 4")
    pid = int(news.hear())
    await_quiet(home, running)
    faulty.fail_next_commit(FAILED_SYNC, when)
    refused = home.run("enqueue", "--", "echo", "second")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "disk I/O error" in refused.stderr
    assert refused.stderr.count("\n") == 1
    said = faulty.last_words()
    assert "disk I/O error" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert alive(pid)
    gate.tell()
    await_end(pid)
    ended = home.wait(running)
    assert (ended["state"], ended["exit_code"]) == ("failed", 4)
    assert home.logs(running) == "late\n"
    others = [job["id"] for job in home.document()["jobs"] if job["id"] != running]
    assert len(others) == {"before": 0, "after": 1}[when]
    for id in others:
        assert home.wait(id)["state"] == "succeeded"
    assert home.rows("SELECT max(attempts) FROM jobs") == [(1,)]


def sent(home: GrassHome, body: Document) -> Document:
    """Enqueue without trying again, over a connection of its own."""
    connection = connect(Home(str(home.folder)))
    try:
        return dict(connection.exchange("POST", "/jobs", body))
    finally:
        connection.close()


@when
def test_an_enqueue_repeated_with_its_key_makes_no_second_job(
    faulty: Faulty, when: str
) -> None:
    home = faulty.home
    body = {"jobs": [{"command": "true"}] * 3, "key": "once", "directory": "/"}
    faulty.fail_next_commit(FAILED_SYNC, when)
    with pytest.raises(StorageError, match="disk I/O error"):
        sent(home, body)
    faulty.last_words()
    for _ in range(2):
        assert (sent(home, body)["first"], sent(home, body)["last"]) == (1, 3)
    home.wait(1, 2, 3)
    assert home.rows("SELECT count(*), max(attempts) FROM jobs") == [(3, 1)]


@when
def test_an_exit_that_could_not_be_written_is_told_to_the_next_daemon(
    faulty: Faulty, gate: Fifo, news: Fifo, when: str
) -> None:
    home = faulty.home
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 5")
    pid = int(news.hear())
    await_quiet(home, id)
    faulty.fail_next_commit(FAILED_SYNC, when)
    gate.tell()
    await_end(pid)
    faulty.last_words()
    ended = home.wait(id)
    assert (ended["state"], ended["exit_code"]) == ("failed", 5)
    assert home.rows("SELECT count(*) FROM attempts") == [(1,)]


def test_every_caller_of_a_failed_commit_is_answered(faulty: Faulty) -> None:
    home = faulty.home
    home.ok("pause")
    faulty.fail_next_commit(FAILED_SYNC, "before")
    callers = [home.popen("enqueue", "--", "true") for _ in range(6)]
    told = [caller.communicate(timeout=PATIENCE_S) for caller in callers]
    faulty.last_words()
    ids = [int(out) for out, _ in told if out]
    refused = [err for out, err in told if not out]
    assert refused
    assert all(err.count("\n") == 1 for err in refused)
    known = home.rows("SELECT id FROM jobs ORDER BY id")
    assert [id for (id,) in known] == sorted(ids)


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_BUSY"])
def test_an_error_that_leaves_the_file_whole_stops_nothing(
    faulty: Faulty, name: str
) -> None:
    home = faulty.home
    faulty.fail_next_commit(name, "before")
    refused = home.run("enqueue", "--", "true")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    after = home.enqueue("--", "true")
    assert home.wait(after)["state"] == "succeeded"
    assert len(home.document()["jobs"]) == 1
    assert faulty.process.poll() is None


@contextlib.contextmanager
def first_sync_fails(pid: int, log: Path) -> Iterator[None]:
    """Have the kernel refuse a process's next sync, once; the one after it works."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    calls = "fsync,fdatasync"
    words = [strace, "-f", "-o", str(log), "-p", str(pid), "-e", f"trace={calls}"]
    words += ["-e", f"inject={calls}:error=EIO:when=1"]
    tracer = subprocess.Popen(words, stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    try:
        if not select.select([tracer.stderr], [], [], PATIENCE_S)[0]:
            pytest.fail("strace says nothing")
        if b"attached" not in os.read(tracer.stderr.fileno(), 4096):
            pytest.skip("tracing a process is not allowed here")
        yield
    finally:
        tracer.terminate()
        tracer.communicate()


def test_a_sync_that_the_kernel_refuses_is_not_tried_again(
    home: GrassHome, tmp_path: Path, gate: Fifo, news: Fifo
) -> None:
    running = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    pid = int(news.hear())
    await_quiet(home, running)
    daemon = home.daemon_pid()
    assert daemon is not None
    with first_sync_fails(daemon, tmp_path / "strace.log"):
        refused = home.run("enqueue", "--", "true")
        await_end(daemon)
    assert refused.returncode == 1
    assert "disk I/O error" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "EIO" in (tmp_path / "strace.log").read_text()
    assert "disk I/O error" in home.log().splitlines()[-1]
    assert alive(pid)
    home.client.close()
    gate.tell()
    ended = home.wait(running)
    assert (ended["state"], ended["exit_code"]) == ("failed", 4)
    assert home.daemon_pid() not in (None, daemon)
    assert home.wait(home.enqueue("--", "true"))["state"] == "succeeded"
