"""What commands say of a worker that is cut off, and of its jobs."""

import time
from pathlib import Path

import pytest

from tests.machines.cluster import Cluster
from tests.support.fifo import Fifo
from tests.support.patience import PATIENCE_S
from tests.support.screen import Screen

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(180)]

AWAY = "worker `w1` is unreachable for "


def test_logs_say_whom_they_wait_for_and_go_on_by_themselves(
    cluster: Cluster, gate: Fifo, news: Fifo
) -> None:
    cluster.join("w1")
    broker = cluster.broker
    line = f"echo one; echo $$ > {news}; read x < {gate}; echo two"
    id = broker.enqueue("--", "sh", "-c", line)
    broker.await_start(id, news)
    following = broker.popen("logs", "-f", str(id))
    assert following.stdout is not None
    assert following.stderr is not None
    try:
        assert following.stdout.readline() == "one\n"
        cluster.cut_off("w1")
        said = following.stderr.readline()
        assert said.startswith(f"grass: {AWAY}")
        assert said.endswith(f"; job {id} is followed on when it is back\n")
        ran = broker.run("logs", str(id))
        assert (ran.returncode, ran.stdout) == (3, "")
        assert ran.stderr.startswith(f"grass: {AWAY}")
        assert ran.stderr.count("\n") == 1
        gate.tell()
        cluster.reconnect("w1")
        assert following.wait(PATIENCE_S) == 0
        assert following.stdout.read() == "two\n"
        assert following.stderr.read() == f"grass: job {id} succeeded\n"
    finally:
        following.kill()
        following.communicate()


def test_a_wait_says_that_the_worker_cannot_be_reached(
    cluster: Cluster, gate: Fifo, news: Fifo
) -> None:
    cluster.join("w1")
    broker = cluster.broker
    line = f"echo $$ > {news}; read x < {gate}; exit 3"
    id = broker.enqueue("--", "sh", "-c", line)
    broker.await_start(id, news)
    screen = Screen([*broker.grass, "wait", str(id)], broker.environment)
    screen.until(f"job {id} is running")
    cluster.cut_off("w1")
    screen.until(f"job {id} is running, its worker unreachable")
    gate.tell()
    cluster.reconnect("w1")
    assert screen.ended() == 3


def test_a_cancel_does_not_wait_and_counts_when_the_worker_is_back(
    cluster: Cluster, news: Fifo
) -> None:
    cluster.join("w1")
    broker = cluster.broker
    id = broker.enqueue("--", "sh", "-c", f"echo $$ > {news}; exec sleep 1000")
    broker.await_start(id, news)
    cluster.cut_off("w1")
    told = broker.ok("explain", str(id))
    assert AWAY in told
    assert "or by `grass workers forget w1`" in told
    began = time.monotonic()
    ran = broker.run("cancel", str(id))
    assert time.monotonic() - began < PATIENCE_S / 2
    assert (ran.returncode, ran.stdout) == (0, "cancelled 1 job\n")
    assert ran.stderr == (
        f"grass: worker `w1` is unreachable; job {id} ends when it is back\n"
    )
    assert "unreachable, stopping" in broker.ok("show", "--all")
    assert "w1 (unreachable)" in broker.ok("show")
    cluster.reconnect("w1")
    assert broker.wait(id)["state"] == "cancelled"


def test_a_directory_need_only_be_where_the_job_runs(
    cluster: Cluster, tmp_path: Path
) -> None:
    host = cluster.join("w1")
    (host.desk / "there").mkdir()
    broker = cluster.broker
    # All hosts share one disk here, so this is about a directory that is nowhere.
    id = broker.enqueue("--worker", "w1", "--cwd", str(tmp_path / "no"), "--", "true")
    assert broker.wait(id)["state"] == "failed"
    id = broker.enqueue("--cwd", str(host.desk / "there"), "--", "pwd")
    assert broker.wait(id)["state"] == "succeeded"


def test_a_workers_daemon_says_for_whom_it_works(cluster: Cluster) -> None:
    host = cluster.join("w1")
    shown = host.ok("show", "--broker", "local")
    line = "this daemon works for the broker at broker:7500: connected to broker:7500"
    assert shown == f"{line}\n"
