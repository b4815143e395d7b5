"""Ports for jobs: no two have the same one, and nothing else uses it."""

import socket
from collections.abc import Iterator

import pytest

from grass.keeper.protocol import HelloEntry
from grass.worker.shell import job_ports
from grass.worker.shell.job_ports import FIRST, LAST, JobPorts
from tests.worker.lab import entry_of, listed


@pytest.fixture
def running() -> set[str]:
    """The attempts that run."""
    return {"a", "b", "c", "d"}


@pytest.fixture
def ports(running: set[str]) -> Iterator[JobPorts]:
    made = JobPorts(running.__contains__)
    yield made
    made.close()


def narrow(monkeypatch: pytest.MonkeyPatch, taken: int, count: int) -> None:
    """Leave only a few ports, from one that this test found free."""
    monkeypatch.setattr(job_ports, "FIRST", taken)
    monkeypatch.setattr(job_ports, "LAST", taken + count - 1)


def test_every_attempt_has_a_port_of_its_own_and_keeps_it(ports: JobPorts) -> None:
    taken = {attempt: ports.take(attempt) for attempt in "abc"}
    assert len(set(taken.values())) == 3
    assert all(FIRST <= port <= LAST for port in taken.values())
    assert {attempt: ports.take(attempt) for attempt in "abc"} == taken


def test_a_port_that_something_listens_on_is_left_alone(
    ports: JobPorts, running: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = ports.take("a")
    running.clear()
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as other:
            try:
                other.bind((address, port))
            except OSError:
                continue
            other.listen()
            narrow(monkeypatch, port, 1)
            again = JobPorts(running.__contains__)
            again._next = port
            ports._drop_ended()
            assert again.take("b") == 0


def test_a_port_of_another_daemon_is_left_alone_while_that_lives(
    ports: JobPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = ports.take("a")
    narrow(monkeypatch, port, 1)
    other = JobPorts(lambda _: True)
    other._next = port
    assert other.take("x") == 0
    ports.close()
    assert other.take("x") == port
    other.close()


def test_ports_are_taken_in_turn_and_again_once_their_attempt_has_ended(
    ports: JobPorts, running: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ports.take("a")
    narrow(monkeypatch, first, 1)
    ports._next = first
    assert ports.take("b") == 0
    running.discard("a")
    assert ports.take("b") == first


def test_ports_of_attempts_before_a_restart_are_known(
    ports: JobPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = JobPorts(lambda _: True)
    port = before.take("a")
    before.close()
    has: dict[str, object] = {"allocation": {}, "port": port}
    not_any: dict[str, object] = {"allocation": {}}
    told = [("a", "running", has), ("b", "exited", has), ("c", "running", not_any)]
    lines = [listed(name, state, meta=meta) for name, state, meta in told]
    hello = entry_of({"e": "hello", "attempts": lines})
    assert isinstance(hello, HelloEntry)
    ports.adopt(hello)
    assert ports.take("a") == port
    narrow(monkeypatch, port, 1)
    ports._next = port
    assert ports.take("d") == 0
