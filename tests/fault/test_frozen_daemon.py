"""A daemon that is stopped where it is: commands say so, and do not wait for ever."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from grass.client import patience
from grass.client.client import Client
from grass.errors import NoAnswer, TimedOut
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S
from tests.support.processes import await_stopped

pytestmark = pytest.mark.daemon


@pytest.fixture
def frozen(home: GrassHome, gate: Fifo, news: Fifo) -> Iterator[int]:
    """The pid of a daemon that is stopped, and that has job 1 running."""
    home.await_start(home.enqueue(f"echo $$ > {news}; read x < {gate}"), news)
    home.client.close()
    pid = home.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await_stopped(pid)
    yield pid
    os.kill(pid, signal.SIGCONT)


def first_line(command: subprocess.Popen[str]) -> str:
    assert command.stderr is not None
    return command.stderr.readline()


def test_every_command_says_what_it_waits_for_and_goes_on(
    home: GrassHome, frozen: int, gate: Fifo
) -> None:
    short = [["show"], ["enqueue", "true"], ["explain", "1"], ["hold", "7"], ["start"]]
    long = [["wait", "1"], ["logs", "-f", "1"]]
    commands = [home.popen(*words) for words in (*short, *long)]
    told = f"grass: the daemon (pid {frozen}) does not answer; waiting"
    lines = [first_line(command) for command in commands]
    assert lines[:-2] == [f"{told} up to 30 s\n"] * len(short)
    assert lines[-2] == f"{told} for it\n"
    os.kill(frozen, signal.SIGCONT)
    gate.tell()
    ends = [(one.communicate(timeout=PATIENCE_S), one.returncode) for one in commands]
    assert [code for _, code in ends] == [0, 0, 0, 4, 0, 0, 0], ends


def test_a_command_gives_up_with_the_next_step(
    home: GrassHome, frozen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LIMIT_S", 0.1)
    with Client(home.client.home) as client, pytest.raises(NoAnswer) as told:
        client.overview()
    assert f"pid {frozen}" in str(told.value)
    assert f"kill -CONT {frozen}" in told.value.hint
    assert told.value.exit_code == 3


def test_a_daemon_that_works_long_on_a_call_is_waited_for(
    home: GrassHome, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers others meanwhile, and so is neither frozen nor spoken of."""
    monkeypatch.setattr(patience, "LIMIT_S", 0.1)
    id = home.enqueue(f"read x < {gate}")
    with Client(home.client.home) as client:
        connection = client._connected()
        connection._channel.settimeout(0.05)
        told: list[str] = []
        connection.tell = told.append
        body = {"select": [str(id)], "timeout_s": 0.5}
        with pytest.raises(TimedOut):
            connection.exchange("POST", "/jobs/wait", body)
    assert told == []
