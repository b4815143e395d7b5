"""The page of a broker on another machine, served by a command there."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.browsing import OF_THE_PAGE, Browser
from tests.support.homes import GrassHome
from tests.support.machines import Machine, join, new_line
from tests.support.patience import PATIENCE_S, until

pytestmark = pytest.mark.daemon

SESSION = "/api/v1/session"


def forwarding(home: GrassHome) -> tuple[subprocess.Popen[str], Browser]:
    """Have a command serve the page of its broker, and log a browser in."""
    command = home.popen("web", "--no-open", "--json", "--port", "0")
    assert command.stdout is not None
    url = json.loads(command.stdout.readline())["url"]
    browser = Browser(url)
    assert browser.follow(url).status == 303
    return command, browser


def end(command: subprocess.Popen[str], number: int = signal.SIGINT) -> int:
    command.send_signal(number)
    return command.wait(PATIENCE_S)


def test_a_joined_user_steers_the_cluster_with_their_own_token(
    hub: GrassHome, machine: Machine
) -> None:
    laptop = machine("laptop")
    laptop.ok("join", "--name", "ada", new_line(hub, "--role", "submit"))
    command, browser = forwarding(laptop)
    session = browser.get(SESSION).document
    assert (session["actor"], session["role"]) == ("token:ada", "submit")
    assert session["home_kind"] == "broker"
    assert browser.get("/jobs/4").headers["content-type"].startswith("text/html")
    jobs = {"jobs": [{"command": ["sh", "-c", "echo hello"], "cwd": "/"}]}
    added = browser.post("/api/v1/jobs", jobs).document["first"]
    assert hub.wait(added)["owner"] == "token:ada"
    output = browser.get(f"/api/v1/jobs/{added}/output")
    assert output.body == b"hello\n"
    refused = browser.post("/api/v1/pause", {})
    assert (refused.status, refused.document["code"]) == (403, "forbidden")
    assert browser.post("/api/v1/web", {}).status == 403
    assert "authorization" not in {**refused.headers, **output.headers}
    assert end(command) == 0
    assert laptop.daemon_pid() is None
    with pytest.raises(ConnectionRefusedError):
        browser.get(SESSION)


def test_a_stream_is_passed_on_as_it_comes(hub: GrassHome, machine: Machine) -> None:
    laptop = machine("laptop")
    laptop.ok("join", "--name", "ada", new_line(hub, "--role", "operate"))
    _command, browser = forwarding(laptop)
    with browser.begin("GET", "/api/v1/events/stream", OF_THE_PAGE) as stream:
        assert stream.getheader("content-type", "").startswith("text/event-stream")
        assert stream.readline().startswith(b"id: ")
        hub.client.enqueue(["true"])
        lines = iter(stream.readline, b"")
        assert next(line for line in lines if line == b"event: enqueued\n")
        hub.client.revoke_token("ada")
        with pytest.raises((http.client.IncompleteRead, OSError)):
            stream.read()
    assert browser.get(SESSION).status == 401


def test_a_tab_that_is_closed_leaves_no_connection(
    hub: GrassHome, machine: Machine
) -> None:
    laptop = machine("laptop")
    laptop.ok("join", "--name", "ada", new_line(hub, "--role", "read"))
    command, browser = forwarding(laptop)

    def connections() -> int:
        return len(connections_to(hub, command.pid))

    with browser.begin("GET", "/api/v1/events/stream", OF_THE_PAGE) as stream:
        assert stream.readline().startswith(b"id: ")
        until(connections, "the stream has no connection", lambda now: now == 1)
    until(connections, "a connection stayed open", lambda now: now == 0)


def test_a_connection_serves_several_calls(hub: GrassHome, machine: Machine) -> None:
    laptop = machine("laptop")
    laptop.ok("join", "--name", "ada", new_line(hub, "--role", "read"))
    command, browser = forwarding(laptop)

    def is_used_again() -> bool:
        before = connections_to(hub, command.pid)
        assert browser.get(SESSION).status == 200
        return bool(before) and connections_to(hub, command.pid) == before

    until(is_used_again, "each call has a connection of its own")
    hub.client.revoke_token("ada")
    assert browser.get(SESSION).status == 401


def connections_to(broker: GrassHome, pid: int) -> set[str]:
    """Return the ports from which a process is connected to a broker on loopback."""
    port = broker.client.overview()["daemon"]["tcp"]["address"].rpartition(":")[2]
    own = set[str]()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            own.add(os.readlink(entry.path))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    ends = f"0100007F:{int(port):04X}", "01"
    return {
        row[1]
        for row in rows
        if (row[2], row[3]) == ends and f"socket:[{row[9]}]" in own
    }


def test_on_a_worker_the_page_is_the_brokers(hub: GrassHome, machine: Machine) -> None:
    worker = join(hub, machine("worker"), "w1")
    command, browser = forwarding(worker)
    session = browser.get(SESSION).document
    assert (session["actor"], session["role"]) == ("token:w1", "machine")
    assert session["rights"] == ["read", "submit"]
    assert end(command, signal.SIGTERM) == 0
    assert not (worker.folder / "web.json").exists()


def test_nobody_else_is_let_in(hub: GrassHome, machine: Machine) -> None:
    laptop = machine("laptop")
    laptop.ok("join", "--name", "ada", new_line(hub, "--role", "read"))
    _command, browser = forwarding(laptop)
    stranger = Browser(browser.origin)
    assert stranger.get(SESSION).status == 401
    for wrong in (
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
    ):
        assert browser.ask("GET", SESSION, OF_THE_PAGE | wrong).status == 403


def test_a_broker_that_is_away_is_told_to_the_page(
    broker: GrassHome, machine: Machine
) -> None:
    laptop = machine("laptop")
    laptop.ok("join", "--name", "ada", new_line(broker, "--role", "read"))
    _command, browser = forwarding(laptop)
    assert browser.get(SESSION).status == 200
    broker.ok("stop")
    # Also the connection that was kept leads nowhere.
    away = browser.get(SESSION)
    assert (away.status, away.document["code"]) == (503, "no-broker")
    assert browser.get("/").status == 200
    refused = laptop.run("web", "--no-open", "--port", "0")
    assert (refused.returncode, refused.stdout) == (3, "")


WRONG = {
    "--stop": "Ctrl-C",
    "--role=read": "--role is for this machine's own daemon",
    "--host=0.0.0.0": "is served on loopback here",
    "--port=70000": "--port is 70000",
}


def test_what_means_nothing_here_is_refused(hub: GrassHome, machine: Machine) -> None:
    laptop = machine("laptop")
    laptop.ok("join", "--name", "ada", new_line(hub, "--role", "read"))
    for option, told in WRONG.items():
        ran = laptop.run("web", "--no-open", option)
        assert (ran.returncode, told in ran.stderr) == (2, True), ran.stderr
