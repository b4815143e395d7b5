"""Input and terminals of jobs that run on another machine."""

import pytest

from tests.machines.cluster import Cluster
from tests.support.lan import Host
from tests.support.screen import Screen

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


def session(host: Host, *words: str) -> Screen:
    """Run a command at a terminal of a host."""
    return Screen([*host.grass, *words], {**host.environment, "PS1": "ready> "})


def test_input_and_keys_reach_a_job_on_another_machine(cluster: Cluster) -> None:
    w1, w2 = cluster.join("w1"), cluster.join("w2")
    # From the broker's own machine, and over TLS from that of another worker.
    for host in (cluster.broker, w2):
        ran = host.run("run", "--worker", "w1", "--", "cat", input="hi\n")
        assert (ran.returncode, ran.stdout) == (0, "hi\n")
        shell = ("bash", "--norc", "-i")
        screen = session(host, "run", "--worker", "w1", "--pty", "--", *shell)
        screen.until("leaves it to itself")
        screen.until("$ " if "$ " in screen.seen else "# ")
        screen.type("hostname; stty size; echo $TERM\r")
        screen.until("xterm")
        assert "w1" in screen.seen
        assert "24 80" in screen.seen
        screen.type("exit 5\r")
        assert screen.ended() == 5
    assert not list((w1.folder / "keeper").glob("input-*"))


def test_a_session_goes_on_when_the_worker_was_cut_off(cluster: Cluster) -> None:
    cluster.join("w1")
    screen = session(cluster.broker, "run", "--pty", "--", "cat")
    screen.until("leaves it to itself")
    screen.type("before\r")
    screen.until("before\r\nbefore")
    cluster.cut_off("w1")
    screen.until("unreachable")
    screen.type("meanwhile\r")
    cluster.reconnect("w1")
    screen.until("meanwhile\r\nmeanwhile")
    screen.type("\x04")
    assert screen.ended() == 0
