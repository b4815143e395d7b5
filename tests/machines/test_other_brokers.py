"""A worker that knows what its broker does not: real daemons on loopback.

It worked for another broker before, or its broker's database came back from a backup.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grass.client.client import Client
from grass.config import LOCAL
from tests.machines.test_hosting import LOOPBACK, Machine, invitation, machine
from tests.support.fifo import Fifo
from tests.support.homes import PATIENCE_S, GrassHome

__all__ = ["machine"]

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


@pytest.fixture
def go(tmp_path: Path) -> Iterator[Fifo]:
    """What jobs wait for."""
    pipe = Fifo(tmp_path / "go")
    yield pipe
    pipe.close()


@pytest.fixture
def news(tmp_path: Path) -> Iterator[Fifo]:
    """What jobs say."""
    pipe = Fifo(tmp_path / "news")
    yield pipe
    pipe.close()


def await_idle(home: GrassHome) -> None:
    """Wait until nothing runs on a machine."""
    deadline = time.monotonic() + PATIENCE_S
    with Client(home.client.home, may_start=False, broker=LOCAL) as client:
        while client.overview()["daemon"]["jobs"]["running"]:
            assert time.monotonic() < deadline, "jobs still run here"
            time.sleep(0.02)


def test_another_broker_does_not_swallow_how_a_job_ended(
    machine: Machine, go: Fifo, news: Fifo
) -> None:
    first, second, worker = machine("first"), machine("second"), machine("worker")
    line = invitation(first.ok("start", *LOOPBACK, "--no-worker"))
    worker.ok("join", line)
    script = f"echo begun > {news}; read x < {go}; echo done"
    job = first.enqueue("--retry-lost", "3", "--", "sh", "-c", script)
    assert news.hear() == "begun"
    worker.ok("join", invitation(second.ok("start", *LOOPBACK, "--no-worker")))
    place = line.partition("/")[0]
    said = (
        f"grass: 1 unfinished job of the broker at {place} goes on here;"
        " it is reported when this machine works there again\n"
    )
    assert worker.run("restart").stderr == said
    go.tell()
    await_idle(worker)
    # Once this has ended, the second broker has heard of the other's end, too.
    assert second.wait(second.enqueue("--", "true"))["state"] == "succeeded"
    assert worker.run("restart", "--connect", place).stderr == ""
    ended = first.wait(job)
    assert (ended["state"], len(ended["attempts"])) == ("succeeded", 1)
    assert first.logs(job) == "done\n"


def test_a_start_says_whose_jobs_run_here(
    machine: Machine, go: Fifo, news: Fifo
) -> None:
    broker, worker = machine("broker"), machine("worker")
    worker.ok("join", invitation(broker.ok("start", *LOOPBACK, "--no-worker")))
    job = broker.enqueue("--", "sh", "-c", f"echo begun > {news}; read x < {go}")
    assert news.hear() == "begun"
    worker.ok("stop")
    said = worker.run("start", *LOOPBACK).stderr
    assert "1 unfinished job of the broker at" in said
    worker.ok("stop")
    assert "unfinished" not in worker.run("start", "--no-broker").stderr
    go.tell()
    assert broker.wait(job)["state"] == "succeeded"


@contextmanager
def brought_back(broker: GrassHome, kept: Path, *options: str) -> Iterator[None]:
    """Put the database of before back after what is done meanwhile."""
    broker.ok("stop")
    shutil.copy(broker.folder / "grass.db", kept)
    broker.ok("start", *options)
    broker.client.close()
    yield
    broker.ok("stop")
    for file in broker.folder.glob("grass.db*"):
        file.unlink()
    shutil.copy(kept, broker.folder / "grass.db")
    broker.ok("start")
    broker.client.close()


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "running"])
def test_a_database_from_a_backup_takes_no_strangers_end_for_a_jobs(
    machine: Machine, tmp_path: Path, go: Fifo, news: Fifo, ended: bool
) -> None:
    broker, worker = machine("broker"), machine("worker")
    line = invitation(broker.ok("start", *LOOPBACK, "--no-worker"))
    worker.ok("join", line)
    port = ("--bind", line.partition("/")[0])
    with brought_back(broker, tmp_path / "kept.db", *port):
        script = f"echo begun > {news}; read x < {go}; echo old; echo end > {news}"
        old = broker.enqueue("--name", "one", "--", "sh", "-c", f"{script}; exit 3")
        assert news.hear() == "begun"
        worker.ok("stop")
    if ended:
        go.tell()
        assert news.hear() == "end"
    new = broker.enqueue("--name", "one", "--", "echo", "new")
    assert new == old
    worker.ok("start")
    assert broker.wait(new)["state"] == "succeeded"
    assert broker.logs(new) == "new\n"
    await_idle(worker)


def test_a_database_from_a_backup_gives_out_no_number_that_a_worker_knows(
    machine: Machine, tmp_path: Path, go: Fifo, news: Fifo
) -> None:
    broker = machine("broker")
    broker.ok("start")
    with brought_back(broker, tmp_path / "kept.db"):
        old = broker.enqueue("--", "sh", "-c", f"echo begun > {news}; read x < {go}")
        assert news.hear() == "begun"
    new = broker.enqueue("--", "true")
    assert new == old + 1
    assert broker.wait(new)["state"] == "succeeded"
    line = f"older than what workers know; the numbers of jobs go on above {old}"
    assert broker.log().count(line) == 1


def test_a_restart_says_that_jobs_of_its_own_queue_stay(
    machine: Machine, go: Fifo, news: Fifo
) -> None:
    broker, other = machine("broker"), machine("other")
    job = other.enqueue("--", "sh", "-c", f"echo begun > {news}; read x < {go}")
    assert news.hear() == "begun"
    other.ok("join", invitation(broker.ok("start", *LOOPBACK, "--no-worker")))
    assert "1 unfinished job of this machine's own queue" in other.run("restart").stderr
    go.tell()
    await_idle(other)
    other.ok("leave")
    assert other.run("restart").stderr == ""
    other.client.close()
    assert other.wait(job)["state"] == "succeeded"
