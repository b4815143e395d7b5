"""Hosts that lose sight of each other, in real network namespaces."""

import json
import time
from pathlib import Path

import pytest

from tests.machines.cluster import Cluster
from tests.support.fifo import Fifo
from tests.support.patience import until
from tests.support.processes import alive, await_end

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(180)]
on_either_store = pytest.mark.parametrize(
    "cluster", ["sqlite", "postgres"], indirect=True
)


def test_a_job_runs_elsewhere_and_its_output_comes_home(cluster: Cluster) -> None:
    cluster.join("w1")
    broker = cluster.broker
    id = broker.enqueue("--", "sh", "-c", "hostname; pwd; echo ${SECRET-none}",
                        env={"SECRET": "of the broker's shell"})  # fmt: skip
    job = broker.wait(id)
    assert (job["state"], job["worker"]) == ("succeeded", "w1")
    assert broker.ok("logs", str(id)).splitlines()[0] == "w1"
    assert broker.ok("logs", str(id)).splitlines()[2] == "none"
    assert broker.ok("logs", "--lines", "3-9", str(id)) == "none\n"
    assert broker.ok("logs", "--grep", "^w[1]$", str(id)) == "1:w1\n"


def test_a_job_of_a_worker_that_falls_silent_runs_on(
    cluster: Cluster, gate: Fifo, news: Fifo
) -> None:
    host = cluster.join("w1")
    broker = cluster.broker
    id = broker.enqueue(
        "-c", "1", "--", "sh", "-c", f"echo $$ > {news}; read x < {gate}; exit 3"
    )
    pid = broker.await_start(id, news)
    host.cut()
    cluster.await_worker("w1", connected=False)
    job = broker.client.job(id)
    assert (job["state"], "unreachable" in job["flags"]) == ("running", True)
    assert alive(pid)
    gate.tell()
    await_end(pid)
    assert broker.state(id) == "running"
    host.heal()
    job = broker.wait(id)
    assert (job["state"], job["exit_code"]) == ("failed", 3)
    assert len(job["attempts"]) == 1


@on_either_store
def test_a_broker_that_restarts_while_a_worker_is_cut_off_loses_nothing(
    cluster: Cluster, gate: Fifo, news: Fifo
) -> None:
    host = cluster.join("w1")
    broker = cluster.broker
    id = broker.enqueue("--", "sh", "-c", f"echo $$ > {news}; read x < {gate}")
    broker.await_start(id, news)
    host.cut()
    broker.kill_daemon()
    cluster.start_broker()
    assert broker.state(id) == "running"
    gate.tell()
    cluster.reconnect("w1")
    assert broker.wait(id)["state"] == "succeeded"


def test_a_broker_is_found_again_at_another_address(
    cluster: Cluster, gate: Fifo, news: Fifo
) -> None:
    host = cluster.join("w1")
    broker = cluster.broker
    id = broker.enqueue("--", "sh", "-c", f"echo $$ > {news}; read x < {gate}")
    broker.await_start(id, news)
    broker.move("10.77.0.77")
    broker.reset_connections()
    host.reset_connections()
    cluster.await_worker("w1", connected=False)
    cluster.await_worker("w1", connected=True)
    gate.tell()
    assert broker.wait(id)["state"] == "succeeded"
    shown = json.loads(host.ok("show", "--json"))
    assert shown["jobs"][0]["id"] == id


@on_either_store
def test_a_forgotten_workers_job_is_lost_and_ended_when_it_returns(
    cluster: Cluster, news: Fifo
) -> None:
    host = cluster.join("w1")
    broker = cluster.broker
    id = broker.enqueue("--", "sh", "-c", f"echo $$ > {news}; exec sleep 1000")
    pid = broker.await_start(id, news)
    refused = broker.run("workers", "forget", "w1")
    assert refused.returncode == 5
    cluster.cut_off("w1")
    broker.ok("workers", "forget", "w1")
    assert broker.state(id) == "lost"
    assert cluster.worker("w1") is None
    host.heal()
    # Its token went with it: it cannot come back without being asked again.
    assert alive(pid)
    host.ok("join", "--no-start", broker.ok("token", "new").removeprefix("grass join "))
    host.kill_daemon()
    host.serve("--connect", "broker")
    cluster.await_worker("w1", connected=True)
    await_end(pid)
    assert broker.state(id) == "lost"


def test_a_forgotten_workers_job_runs_again_only_when_told(
    cluster: Cluster, news: Fifo
) -> None:
    cluster.join("w1")
    broker = cluster.broker
    line = f"echo $$ > {news}; exec sleep 1000"
    id = broker.enqueue("--retry-lost", "3", line)
    pid = broker.await_start(id, news)
    cluster.cut_off("w1")
    forgot = broker.run("workers", "forget", "w1")
    assert forgot.stdout == "forgot worker w1: no job lost, 1 job held\n"
    assert f"grass release {id}" in forgot.stderr
    assert alive(pid)
    assert broker.state(id) == "held"
    assert "may still run it" in broker.ok("explain", str(id))
    cluster.join("w2")
    assert broker.state(id) == "held"
    broker.ok("release", str(id))
    assert broker.await_start(id, news) != pid


def test_a_lease_that_runs_out_ends_the_job_there_before_it_runs_elsewhere(
    cluster: Cluster, news: Fifo
) -> None:
    cluster.join("w1", "--on-disconnect", "stop", "--lease", "4s")
    broker = cluster.broker
    line = f"echo $$ > {news}; hostname; exec sleep 1000"
    id = broker.enqueue("--retry-lost", "1", "--grace", "1s", "--", "sh", "-c", line)
    first = broker.await_start(id, news)
    cluster.cut_off("w1")
    await_end(first)
    assert broker.state(id) == "running"
    cluster.join("w2")
    second = int(news.hear())
    assert not alive(first)
    cluster.reconnect("w1")
    job = broker.client.job(id)
    assert (job["state"], job["worker"], job["pid"]) == ("running", "w2", second)
    assert [one["state"] for one in job["attempts"]] == ["lost", "running"]
    assert broker.ok("logs", str(id)) == "w2\n"
    broker.ok("cancel", str(id))


def test_one_queue_over_two_workers(cluster: Cluster) -> None:
    for name in ("w1", "w2"):
        host = cluster.join(name)
        host.ok("create-queue", "--capacity", "{slot:1}", "lab", "hostname")
    broker = cluster.broker
    first = broker.enqueue("--require", "{slot:1}", "lab")
    second = broker.enqueue("--require", "{slot:1}", "--worker", "w2", "lab")
    broker.wait(first, second)
    assert broker.ok("logs", str(second)) == "w2\n"
    ids = broker.enqueue_array("--require", "{slot:1}", "--array", "1-20", "lab")
    broker.wait(*ids)
    assert {broker.client.job(id)["worker"] for id in ids} == {"w1", "w2"}


def test_who_reads_over_a_thin_line_cuts_nobody_off(
    cluster: Cluster, gate: Fifo, news: Fifo
) -> None:
    host = cluster.join("w1", "--on-disconnect", "stop", "--lease", "4s")
    broker = cluster.broker
    large = broker.enqueue("--", "sh", "-c", "yes | head -c 3000000")
    broker.wait(large)
    id = broker.enqueue("--", "sh", "-c", f"echo $$ > {news}; read x < {gate}")
    broker.await_start(id, news)
    host.slow_down("512kbit")
    until, read = time.monotonic() + 6, 0
    with broker.client.beside() as reader:
        for piece in reader.output(large):
            read += len(piece)
            if time.monotonic() > until:
                break
    assert 100_000 < read < 3_000_000
    assert broker.state(id) == "running"
    gate.tell()
    assert broker.wait(id)["state"] == "succeeded"


@on_either_store
def test_output_of_a_worker_that_is_cut_off_is_removed_when_it_is_back(
    cluster: Cluster,
) -> None:
    cluster.join("w1")
    broker = cluster.broker
    id = broker.enqueue("--", "echo", "text")
    job = broker.wait(id)
    file = Path(job["attempts"][0]["output"])
    cluster.cut_off("w1")
    broker.ok("prune", "--older", "0s", "--yes")
    broker.kill_daemon()
    cluster.start_broker()
    assert broker.client.overview()["daemon"]["output_bytes"] == len("text\n")
    assert file.read_text() == "text\n"
    cluster.reconnect("w1")
    left = lambda: broker.client.overview()["daemon"]["output_bytes"]  # noqa: E731
    until(left, "output is left", lambda size: size == 0)
    assert not file.exists()
