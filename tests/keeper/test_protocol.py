"""The conversation with daemons, and when a keeper comes and goes."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import grass.keeper
from grass.keeper.core.running import ENCLOSE_S, YOUNG_S
from grass.keeper.launch import connect, reach_keeper, start_keeper
from grass.keeper.protocol import VERSION
from tests.support.patience import PATIENCE_S, until

from .conversation import Daemon, alive, short_id, wait_readable

MAIN = Path(grass.keeper.__file__).with_name("__main__.py")


def test_hello_tells_the_full_state_of_every_attempt(
    daemon: Daemon, make_daemon: Callable[..., Daemon]
) -> None:
    daemon.start("long", "sleep", "100")
    pid = daemon.expect("started")["pid"]
    daemon.run("short", "false")
    hello = make_daemon().hello
    assert (hello["version"], hello["pid"]) == (VERSION, daemon.keeper)
    assert hello["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    states = {each["id"]: each for each in hello["attempts"]}
    assert states["long"]["state"] == "running"
    assert states["long"]["pid"] == pid
    assert states["long"]["meta"] == {"for": "long"}
    assert not states["long"]["stopping"]
    assert (states["short"]["state"], states["short"]["code"]) == ("exited", 1)


def test_events_go_to_every_connection_that_said_hello(
    daemon: Daemon, make_daemon: Callable[..., Daemon]
) -> None:
    other = make_daemon()
    daemon.start("a", "true")
    assert daemon.expect("exited")["id"] == other.expect("exited")["id"] == "a"


def test_what_a_dead_daemon_still_asked_for_is_in_the_hello_of_the_next(
    daemon: Daemon,
) -> None:
    os.kill(daemon.keeper, signal.SIGSTOP)
    for number in range(5):
        daemon.start(f"a{number}", "true")
    daemon.close()
    successor = connect(str(daemon.directory))
    successor.sendall(b'{"v":"hello"}\n')
    os.kill(daemon.keeper, signal.SIGCONT)
    with successor, successor.makefile("rb") as lines:
        hello = json.loads(lines.readline())
    known = {short_id(each["id"]) for each in hello["attempts"]}
    assert known == {f"a{number}" for number in range(5)}


def test_known_id_is_answered_and_never_started_twice(daemon: Daemon) -> None:
    daemon.start("a", "sh", "-c", "echo once; sleep 100")
    first = daemon.expect("started")
    daemon.start("a", "sh", "-c", "echo twice")
    again = daemon.expect("started")
    assert (again["pid"], again["state"]) == (first["pid"], "running")
    daemon.send(v="stop", id="a", grace=0)
    daemon.expect("exited")
    daemon.start("a", "sh", "-c", "echo thrice")
    assert daemon.expect("exited")["signal"] == 9
    assert daemon.output("a").read_text() == "once\n"


def test_forgotten_exits_are_gone_and_running_attempts_stay(
    daemon: Daemon, make_daemon: Callable[..., Daemon]
) -> None:
    daemon.run("done", "true")
    daemon.start("long", "sleep", "100")
    daemon.expect("started")
    daemon.send(v="forget", ids=["done", "long", "nobody"])
    daemon.run("last", "true")
    ids = [each["id"] for each in make_daemon().hello["attempts"]]
    assert ids == ["long", "last"]


def test_nonsense_is_answered_and_does_no_harm(daemon: Daemon) -> None:
    for message in (
        {"v": "dance"},
        {"w": 1},
        {"v": ["hello"]},
        {"v": "start"},
        {"v": "start", "id": "a", "argv": [], "env": {}, "cwd": "/", "output": "/o"},
        {"v": "start", "id": "a", "argv": [1], "env": {}, "cwd": "/", "output": "/o"},
        {"v": "stop", "id": "nobody"},
        {"v": "stop", "id": "a", "grace": "long"},
        {"v": "stop", "id": "a", "grace": float("nan")},
        {"v": "signal", "id": "a", "signal": 1000},
        {"v": "forget", "ids": 7},
        {"v": "recall", "ids": 7},
        {"v": "start", "id": "a", "argv": ["true"], "env": {}, "cwd": "/"}
        | {"output": "/o", "after": 7},
    ):
        daemon.send(**message)
        assert daemon.receive()["e"] == "error", message
    daemon.send(v="hello", colour="green")
    assert daemon.receive()["e"] == "hello"


@pytest.mark.parametrize("line", [b"not json\n", b"[1]\n", b"\xff\xfe\n", b"[" * 99999])
def test_broken_line_closes_that_connection_only(
    daemon: Daemon, make_daemon: Callable[..., Daemon], line: bytes
) -> None:
    other = make_daemon()
    other.send_raw(line + b"\n")
    assert other.receive()["e"] == "error"
    with pytest.raises((EOFError, ConnectionResetError)):
        other.receive()
    assert daemon.run("a", "true")["code"] == 0


def test_connection_that_does_not_read_is_dropped(daemon: Daemon) -> None:
    deaf = connect(str(daemon.directory))
    deaf.sendall(b'{"v":"hello"}\n')
    big = "x" * (1 << 20)
    for number in range(20):
        daemon.start(str(number), "nosuch", cwd="/" + big)
        daemon.expect("exited", str(number))
    while deaf.recv(1 << 20):
        pass
    deaf.close()
    assert daemon.run("a", "true")["code"] == 0


def test_keeper_leaves_when_it_is_not_needed(tmp_path: Path) -> None:
    start_keeper(str(tmp_path))
    daemon = Daemon(tmp_path)
    gone = os.pidfd_open(daemon.keeper)
    daemon.run("a", "true")
    daemon.send(v="forget", ids=["a"])
    daemon.close()
    assert wait_readable(gone)
    os.close(gone)
    assert not (tmp_path / "keeper.sock").exists()
    assert (tmp_path / "records").read_text().count("\n") == 1


def test_keeper_stays_for_an_exit_that_is_not_acknowledged(
    daemon: Daemon, make_daemon: Callable[..., Daemon]
) -> None:
    daemon.start("a", "sh", "-c", "exit 3")
    daemon.close()
    again = make_daemon()
    states = {each["id"]: each["state"] for each in again.hello["attempts"]}
    if states["a"] == "running":
        assert again.expect("exited")["code"] == 3
    assert again.keeper == daemon.keeper


def test_keeper_asked_to_leave_waits_for_its_jobs(tmp_path: Path) -> None:
    start_keeper(str(tmp_path))
    daemon = Daemon(tmp_path)
    gone = os.pidfd_open(daemon.keeper)
    daemon.start("a", "sleep", "100")
    daemon.send(v="leave")
    daemon.expect("started")
    daemon.send(v="stop", id="a", grace=0)
    daemon.expect("exited")
    daemon.send(v="forget", ids=["a"])
    assert wait_readable(gone)
    os.close(gone)
    daemon.close()


def test_keeper_leaves_when_its_home_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "keeper"
    folder.mkdir(parents=True)
    start_keeper(str(folder))
    daemon = Daemon(folder)
    gone = os.pidfd_open(daemon.keeper)
    daemon.run("a", "true")
    shutil.rmtree(folder.parent)
    daemon.close()
    assert wait_readable(gone)
    os.close(gone)


def test_second_keeper_is_refused_and_names_the_first(daemon: Daemon) -> None:
    command = [sys.executable, "-I", "-S", str(MAIN), str(daemon.directory)]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 75
    assert str(daemon.keeper) in second.stderr
    assert daemon.run("a", "true")["code"] == 0


def test_a_keeper_that_is_leaving_is_waited_for(
    tmp_path: Path, make_daemon: Callable[..., Daemon]
) -> None:
    lock, log = tmp_path / "lock", tmp_path / "log"
    with lock.open("w") as leaving, ThreadPoolExecutor() as aside:
        fcntl.flock(leaving, fcntl.LOCK_EX)
        reached = aside.submit(reach_keeper, str(tmp_path))
        until(
            lambda: log.read_text() if log.exists() else "",
            "no keeper has met the one that leaves",
            lambda said: "keeper.locked" in said,
        )
        assert not reached.done()
        leaving.close()
        channel = reached.result(PATIENCE_S)
    assert make_daemon().run("a", "true")["code"] == 0
    channel.close()


def test_stale_socket_does_no_harm(
    tmp_path: Path, make_daemon: Callable[..., Daemon]
) -> None:
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "keeper.sock"))
    stale.close()
    assert make_daemon().run("a", "true")["code"] == 0


def test_path_longer_than_a_socket_name_works(
    tmp_path: Path, make_daemon: Callable[..., Daemon]
) -> None:
    deep = tmp_path.joinpath(*["d" * 50] * 4)
    deep.mkdir(parents=True)
    daemon = make_daemon(deep)
    assert daemon.run("a", "true")["code"] == 0
    assert (deep / "keeper.sock").stat().st_mode & 0o777 == 0o600


def test_start_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        start_keeper(str(tmp_path))


def test_signals_of_a_logout_do_not_end_the_keeper(daemon: Daemon) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        os.kill(daemon.keeper, number)
    assert daemon.run("a", "true")["code"] == 0
    assert os.getsid(daemon.keeper) == daemon.keeper


def test_full_disk_puts_starts_off_and_keeps_exits(daemon: Daemon) -> None:
    """A limit on file size fails writes the way a full disk does.

    It fails those to the log as well, and no daemon writes to the keeper afterwards.
    """
    daemon.start("before", "sleep", "100")
    daemon.expect("started")
    before = resource.prlimit(daemon.keeper, resource.RLIMIT_FSIZE)
    size = (daemon.directory / "records").stat().st_size
    resource.prlimit(daemon.keeper, resource.RLIMIT_FSIZE, (size + 5, before[1]))
    for id in ("late", "stopped", "recalled"):
        daemon.start(id, "true")
    daemon.send(v="stop", id="before", grace=0)
    assert daemon.expect("exited", "before")["signal"] == 9
    daemon.send(v="stop", id="stopped", grace=0, reason="cancelled")
    assert daemon.expect("exited", "stopped")["reason"] == "cancelled"
    daemon.send(v="recall", ids=["recalled"])
    daemon.expect("recalled", "recalled")
    resource.prlimit(daemon.keeper, resource.RLIMIT_FSIZE, before)
    assert daemon.expect("exited", "late")["code"] == 0
    lines = (daemon.directory / "records").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    exited = [short_id(entry["id"]) for entry in entries if entry["e"] == "exited"]
    assert exited == ["before", "stopped", "late"]


def cpu_of(pid: int) -> int:
    fields = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(fields[0])


def test_idle_keeper_uses_no_time_at_all(daemon: Daemon) -> None:
    daemon.start("a", "sleep", "100")
    daemon.expect("started")
    # The second lives until both timers of young attempts have passed for both.
    daemon.run("b", "sleep", str(YOUNG_S + ENCLOSE_S + 0.15))
    subprocess.run(["sleep", "0.05"], check=True)
    before = cpu_of(daemon.keeper)
    subprocess.run(["sleep", "0.2"], check=True)
    assert cpu_of(daemon.keeper) == before
    assert alive(daemon.keeper)
