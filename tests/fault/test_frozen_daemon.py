"""A daemon that is stopped where it is: commands say so, and do not wait for ever."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from grass.cli.commands import stop
from grass.client import patience
from grass.client.client import Client
from grass.errors import NoAnswer, TimedOut
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S
from tests.support.processes import await_end, await_stopped

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
    with suppress(ProcessLookupError):
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


def test_a_daemon_that_hangs_is_killed_and_its_jobs_run_on(
    home: GrassHome,
    frozen: int,
    gate: Fifo,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    monkeypatch.setattr(stop, "ANSWER_S", 0.3)
    monkeypatch.setattr(stop, "TERM_S", 0.3)
    assert stop.run([]) == 0
    shown = capsys.readouterr()
    assert shown.out == "grass is stopped\n"
    assert f"the daemon (pid {frozen}) does not answer; waiting up to 0 s" in shown.err
    assert f"the daemon (pid {frozen}) was killed; running jobs go on" in shown.err
    assert home.daemon_pid() is None
    await_end(frozen)
    home.ok("start")
    assert home.state(1) == "running"
    gate.tell()
    assert home.wait(1)["exit_code"] == 0


def test_ending_the_jobs_of_a_daemon_that_hangs_ends_them(
    home: GrassHome, frozen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    monkeypatch.setattr(stop, "ANSWER_S", 0.3)
    monkeypatch.setattr(stop, "TERM_S", 0.3)
    assert stop.run(["--jobs", "--json"]) == 0
    home.ok("start")
    assert home.state(1) == "cancelled"


def test_a_daemon_of_which_the_pid_is_not_known_is_not_killed(
    home: GrassHome, frozen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pid on file is that of another process, as after it was used again."""
    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    monkeypatch.setattr(stop, "ANSWER_S", 0.3)
    lock = Path(home.folder / "daemon.lock")
    lock.write_text(f"{os.getppid()}\n")
    try:
        with pytest.raises(NoAnswer, match=f"pid {frozen}"):
            stop.run([])
    finally:
        lock.write_text(f"{frozen}\n")
    assert not Path(home.folder / "stopped").exists()


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
