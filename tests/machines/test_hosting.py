"""What a daemon is told to host, over its whole life: real daemons on loopback."""

import socket

import pytest

from grass.daemon.pools.pilot_variables import AWAY_LIMIT
from tests.support.fifo import Fifo
from tests.support.machines import LOOPBACK, Machine, invitation, tcp_endpoint
from tests.support.patience import PATIENCE_S
from tests.support.processes import until_ready
from tests.tls.certificates import PASSPHRASE, certificate, keystore

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


def test_start_prints_the_line_and_another_machine_works_at_once(
    machine: Machine,
) -> None:
    broker, other = machine("broker"), machine("other")
    line = invitation(broker.ok("start", *LOOPBACK, "--no-worker"))
    told = other.ok("join", "--name", "rack", line)
    assert "as rack (role machine)" in told
    assert "this machine works for it now" in told
    assert "connected to 127.0.0.1" in told
    id = other.enqueue("--", "sh", "-c", "echo from $GRASS_HOME")
    assert other.ok("wait", str(id)) == ""
    assert other.ok("logs", str(id)) == f"from {other.folder}\n"
    assert broker.ok("logs", "--grep", "from", str(id)) == f"1:from {other.folder}\n"
    [worker] = broker.client.workers()["workers"]
    assert (worker["name"], worker["connected"]) == ("rack", True)
    assert "cpu" in other.ok("capacity")


def test_a_worker_of_a_pool_leaves_when_its_broker_is_not_reached(
    machine: Machine,
) -> None:
    broker, pilot = machine("broker"), machine("pilot")
    line = invitation(broker.ok("start", *LOOPBACK, "--no-worker"))
    pilot.ok("join", "--name", "pilot", "--no-start", line)
    pilot.environment[AWAY_LIMIT] = "2"
    working = pilot.popen("daemon", "--no-broker")
    # It lasts longer than the limit: that counts only while the broker is away.
    job = broker.enqueue("--", "sleep", "2.5")
    broker.ok("wait", str(job))
    assert working.poll() is None
    broker.kill_daemon()
    assert working.wait(PATIENCE_S) == 0
    assert working.stderr is not None
    assert "worker.left away_s=2" in working.stderr.read()


def test_a_daemon_keeps_its_options_until_told_otherwise(machine: Machine) -> None:
    broker = machine("broker")
    broker.ok("start", *LOOPBACK)
    assert tcp_endpoint(broker) is not None
    broker.ok("restart")
    assert tcp_endpoint(broker) is not None
    broker.ok("stop")
    broker.ok("start")
    assert tcp_endpoint(broker) is not None
    broker.kill_daemon()
    assert tcp_endpoint(broker) is not None
    broker.ok("restart", "--fresh")
    assert tcp_endpoint(broker) is None
    broker.ok("restart")
    assert tcp_endpoint(broker) is None


def test_a_start_that_fails_is_not_remembered(machine: Machine) -> None:
    broker = machine("broker")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = broker.run("start", "--bind", f"127.0.0.1:{port}")
    assert ran.returncode == 1
    assert "in use" in ran.stderr
    assert f"such as 127.0.0.1:{port + 1}" in ran.stderr
    assert broker.ok("show", "--json")
    assert tcp_endpoint(broker) is None


def test_a_restart_that_could_not_work_costs_nothing(machine: Machine) -> None:
    home = machine("home")
    home.ok("start")
    before = home.daemon_pid()
    ran = home.run("restart", "--connect", "127.0.0.1:1")
    assert ran.returncode == 3
    assert "has not joined" in ran.stderr
    assert home.daemon_pid() == before


def test_a_certificate_beside_the_caller_and_a_pass_phrase_that_no_job_sees(
    machine: Machine,
) -> None:
    broker = machine("broker")
    store = keystore(broker.desk, *certificate(broker.desk)).name
    broker.environment["GRASS_CERT_PASS"] = PASSPHRASE
    broker.ok("start", *LOOPBACK, "--cert", store)
    id = broker.enqueue("--", "env")
    broker.wait(id)
    assert PASSPHRASE not in broker.logs(id)
    assert not any(
        PASSPHRASE in str(row) for row in broker.rows("SELECT body FROM envs")
    )
    (broker.desk / "phrase").write_text(f"{PASSPHRASE}\n")
    del broker.environment["GRASS_CERT_PASS"]
    refused = broker.run("restart", *LOOPBACK, "--cert", store)
    assert "--cert-pass-file" in refused.stderr
    broker.ok("restart", "--cert-pass-file", "phrase")


def test_a_worker_cannot_end_the_brokers_jobs_and_says_so(
    machine: Machine, news: Fifo
) -> None:
    broker, other = machine("broker"), machine("other")
    other.ok("join", invitation(broker.ok("start", *LOOPBACK, "--no-worker")))
    line = f"echo $$ > {news}; exec sleep 600"
    broker.await_start(broker.enqueue("--", "sh", "-c", line), news)
    ran = other.run("stop", "--jobs")
    assert ran.returncode == 5
    assert "grass cancel" in ran.stderr
    assert other.ok("workers")
    assert not (other.folder / "stopped").exists()


def test_a_queue_without_a_worker_is_made_elsewhere(machine: Machine) -> None:
    broker = machine("broker")
    broker.ok("start", *LOOPBACK, "--no-worker")
    ran = broker.run("create-queue", "q", "--capacity", "{slot:1}")
    assert ran.returncode == 5
    assert "on a worker's machine" in ran.stderr


def test_who_leaves_is_on_its_own_again(machine: Machine) -> None:
    broker, other = machine("broker"), machine("other")
    other.ok("join", invitation(broker.ok("start", *LOOPBACK)))
    other.ok("leave")
    other.ok("restart")
    assert other.wait(other.enqueue("--", "true"))["state"] == "succeeded"
    assert broker.document()["jobs"] == []


def test_a_service_keeps_no_code_in_its_journal(machine: Machine) -> None:
    broker = machine("broker")
    broker.environment["JOURNAL_STREAM"] = "8:12345"
    daemon = broker.popen("daemon", *LOOPBACK)
    assert "grass token new" in until_ready(daemon)
    daemon.terminate()
    printed, _ = daemon.communicate(timeout=30)
    assert printed == ""
