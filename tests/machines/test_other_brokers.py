"""A worker that knows what its broker does not: real daemons on loopback.

It worked for another broker before, or its broker's database came back from a backup.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grass.client.client import Client
from grass.config import LOCAL
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, invitation, place_of
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


def await_idle(home: GrassHome) -> None:
    """Wait until nothing runs on a machine, of whichever broker's jobs."""
    with Client(home.client.home, may_start=False, broker=LOCAL) as client:
        until(
            lambda: client.overview()["daemon"]["jobs"]["running"],
            "jobs still run here",
            lambda running: not running,
        )


def test_another_broker_does_not_swallow_how_a_job_ended(
    machine: Machine, gate: Fifo, news: Fifo
) -> None:
    first, second, worker = machine("first"), machine("second"), machine("worker")
    line = invitation(first.ok("start", *LOOPBACK, "--no-worker"))
    worker.ok("join", line)
    script = f"echo begun > {news}; read x < {gate}; echo done"
    job = first.enqueue("--retry-lost", "3", "--", "sh", "-c", script)
    assert news.hear() == "begun"
    worker.ok("join", invitation(second.ok("start", *LOOPBACK, "--no-worker")))
    place = place_of(line)
    said = (
        f"grass: 1 unfinished job of the broker at {place} goes on here and holds its"
        " units; that broker hears of it when this machine works for it again\n"
    )
    assert worker.run("restart").stderr == said
    gate.tell()
    await_idle(worker)
    # Once this has ended, the second broker has heard of the other's end, too.
    assert second.wait(second.enqueue("--", "true"))["state"] == "succeeded"
    assert worker.run("restart", "--connect", place).stderr == ""
    ended = first.wait(job)
    assert (ended["state"], len(ended["attempts"])) == ("succeeded", 1)
    assert first.logs(job) == "done\n"


def test_a_start_says_whose_jobs_run_here(
    machine: Machine, gate: Fifo, news: Fifo
) -> None:
    broker, worker = machine("broker"), machine("worker")
    worker.ok("join", invitation(broker.ok("start", *LOOPBACK, "--no-worker")))
    job = broker.enqueue("--", "sh", "-c", f"echo begun > {news}; read x < {gate}")
    assert news.hear() == "begun"
    worker.ok("stop")
    said = worker.run("start", *LOOPBACK).stderr
    assert "1 unfinished job of the broker at" in said
    worker.ok("stop")
    assert "unfinished" not in worker.run("start", "--no-broker").stderr
    gate.tell()
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


def test_a_database_from_a_backup_takes_no_strangers_end_for_a_jobs(
    machine: Machine, tmp_path: Path, fifo: Callable[[str], Fifo], news: Fifo
) -> None:
    broker, worker = machine("broker"), machine("worker")
    line = invitation(broker.ok("start", *LOOPBACK, "--no-worker"))
    worker.ok("join", line)
    port = ("--bind", place_of(line))
    gates = fifo("opened"), fifo("shut")
    with brought_back(broker, tmp_path / "kept.db", *port):
        for gate in gates:
            script = f"echo begun > {news}; read x < {gate}; echo old; echo > {news}"
            line = f"{script}; exit 3"
            broker.enqueue("--name", "one", "--require", "{}", "--", "sh", "-c", line)
            assert news.hear() == "begun"
        old = [job["id"] for job in broker.document()["jobs"]]
        worker.ok("stop")
    # One ends before the worker is back, the other one still runs.
    gates[0].tell()
    assert news.hear() == ""
    words = ("--name", "one", "--require", "{}", "--", "echo", "new")
    new = [broker.enqueue(*words) for _ in gates]
    assert new == sorted(old)
    worker.ok("start")
    for job in new:
        assert broker.wait(job)["state"] == "succeeded"
        assert broker.logs(job) == "new\n"
    # The other one is held as foreign, and ends by itself.
    assert broker.ok("workers", "foreign").count("undecided") == 1
    gates[1].tell()
    assert news.hear() == ""
    await_idle(worker)


def test_a_database_from_a_backup_gives_out_no_number_that_a_worker_knows(
    machine: Machine, tmp_path: Path, gate: Fifo, news: Fifo
) -> None:
    broker = machine("broker")
    broker.ok("start")
    with brought_back(broker, tmp_path / "kept.db"):
        old = broker.enqueue("--", "sh", "-c", f"echo begun > {news}; read x < {gate}")
        assert news.hear() == "begun"
    new = broker.enqueue("--", "true")
    assert new == old + 1
    assert broker.wait(new)["state"] == "succeeded"
    assert broker.log().count("database.outdated") == 1
    assert f"job={old}\n" in broker.log()


def test_a_restart_says_that_jobs_of_its_own_queue_stay(
    machine: Machine, gate: Fifo, news: Fifo
) -> None:
    broker, other = machine("broker"), machine("other")
    job = other.enqueue("--", "sh", "-c", f"echo begun > {news}; read x < {gate}")
    assert news.hear() == "begun"
    held = other.enqueue("--hold", "--", "true")
    other.ok("join", invitation(broker.ok("start", *LOOPBACK, "--no-worker")))
    assert other.run("restart").stderr == (
        "grass: 2 unfinished jobs of this machine's own queue are out of reach while it"
        " works for another; `grass leave`, then `grass restart` brings the queue back"
        "\n"
    )
    # The keeper knows only of what runs.
    assert "1 unfinished job of this machine's own" in other.run("restart").stderr
    gate.tell()
    await_idle(other)
    other.ok("leave")
    assert other.run("restart").stderr == ""
    other.client.close()
    assert other.wait(job)["state"] == "succeeded"
    assert other.state(held) == "held"


def test_a_restart_says_that_jobs_of_a_broker_that_was_left_hold_units(
    machine: Machine, gate: Fifo, news: Fifo
) -> None:
    broker, other = machine("broker"), machine("other")
    own = other.enqueue("--", "true")
    other.wait(own)
    other.ok("join", invitation(broker.ok("start", *LOOPBACK, "--no-worker")))
    broker.enqueue("--", "sh", "-c", f"echo begun > {news}; read x < {gate}")
    assert news.hear() == "begun"
    other.ok("leave")
    said = "1 unfinished job of another broker goes on here and holds its units\n"
    assert other.run("restart").stderr == f"grass: {said}"
    gate.tell()
