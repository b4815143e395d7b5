"""A keeper is killed: its successor takes over jobs, exits, limits and stops."""

from __future__ import annotations

import os
from pathlib import Path

from grass.keeper.codec import encode
from grass.keeper.protocol import KeeperEntry

from .conversation import Daemon, alive, kill_and_await
from .successors import Make, exit_of, replaced, state_of, tells


@tells
def test_running_job_is_adopted_and_its_exit_code_arrives(
    daemon: Daemon, make_daemon: Make, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    daemon.start("a", "/bin/sh", "-c", "echo up; read x < go; exit 42")
    pid = daemon.expect("started")["pid"]
    successor = replaced(daemon, make_daemon)
    state = state_of(successor, "a")
    assert (state["state"], state["pid"]) == ("running", pid)
    assert state["meta"] == {"for": "a"}
    (tmp_path / "go").write_text("\n")
    exited = successor.expect("exited")
    assert (exited["code"], exited["lost"]) == (42, False)
    assert exited["output_bytes"] == 3


def test_unacknowledged_exit_is_offered_again(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.shell("kept", "exit 9")
    daemon.run("forgotten", "true")
    daemon.send(v="forget", ids=["forgotten"])
    daemon.run("last", "true")
    successor = replaced(daemon, make_daemon)
    states = {each["id"]: each["code"] for each in successor.hello["attempts"]}
    assert states == {"kept": 9, "last": 0}


def test_job_that_ended_unseen_is_lost_and_never_guessed(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.start("a", "sleep", "100")
    pid = daemon.expect("started")["pid"]
    kill_and_await(daemon.keeper)
    kill_and_await(pid)
    exited = exit_of(make_daemon(), "a")
    assert exited["code"] is None
    # The kernel still tells while the process is not reaped.
    if exited["signal"] != 9:
        assert exited["lost"]
        assert "keeper" in exited["reason"]


def test_adopted_job_can_be_stopped_with_its_whole_tree(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.start("a", "/bin/sh", "-c", "setsid setsid sleep 100 & echo $!; sleep 100")
    daemon.wait_for_output("a", "\n")
    successor = replaced(daemon, make_daemon)
    successor.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    exited = successor.expect("exited")
    assert exited["reason"] == "cancelled"
    assert not alive(int(successor.output("a").read_text()))


def test_leftovers_of_a_lost_job_are_ended(daemon: Daemon, make_daemon: Make) -> None:
    daemon.start("a", "/bin/sh", "-c", "setsid sleep 100 & echo $!; sleep 100")
    pid = daemon.expect("started")["pid"]
    orphan = int(daemon.wait_for_output("a", "\n"))
    kill_and_await(daemon.keeper)
    kill_and_await(pid)
    exit_of(make_daemon(), "a")
    assert not alive(orphan)


def test_time_limit_still_counts(daemon: Daemon, make_daemon: Make) -> None:
    daemon.start("a", "sleep", "100", time_limit=0.4)
    daemon.expect("started")
    successor = replaced(daemon, make_daemon)
    assert successor.expect("exited")["reason"] == "time limit"


def test_the_signal_before_the_time_limit_still_comes(
    daemon: Daemon, make_daemon: Make
) -> None:
    script = "trap 'echo warned; exit 3' USR1; echo ready; while :; do sleep 0.05; done"
    daemon.start(
        *("a", "/bin/sh", "-c", script),
        time_limit=100.0,
        limit_signal=10,
        limit_signal_before=99.0,
    )
    daemon.wait_for_output("a", "ready")
    successor = replaced(daemon, make_daemon)
    successor.wait_for_output("a", "warned")
    assert successor.expect("exited")["reason"] != "time limit"


def test_stop_under_way_goes_on(daemon: Daemon, make_daemon: Make) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 100; done"
    daemon.start("a", "/bin/sh", "-c", script)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="stop", id="a", signal=15, grace=0.3, reason="cancelled")
    daemon.expect("stopping")
    successor = replaced(daemon, make_daemon)
    exited = successor.expect("exited")
    assert exited["reason"] == "cancelled"


def test_start_without_a_recorded_pid_is_found_by_its_marker(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.start("a", "sleep", "100")
    pid = daemon.expect("started")["pid"]
    kill_and_await(daemon.keeper)
    forget_lines(daemon.directory, "started", "enclosed")
    assert make_daemon().hello["attempts"][0]["pid"] == pid


def test_start_that_never_happened_is_lost(daemon: Daemon, make_daemon: Make) -> None:
    daemon.run("a", "true")
    kill_and_await(daemon.keeper)
    forget_lines(daemon.directory, "started", "exited")
    state = state_of(make_daemon(), "a")
    assert (state["state"], state["lost"]) == ("exited", True)


def test_of_another_boot_only_exits_are_told(daemon: Daemon, make_daemon: Make) -> None:
    daemon.shell("a", "exit 3")
    daemon.start("b", "sleep", "100")
    pid = daemon.expect("started", "b")["pid"]
    kill_and_await(daemon.keeper)
    kill_and_await(pid)
    pretend_other_boot(daemon.directory)
    successor = make_daemon()
    [told] = successor.hello["attempts"]
    assert (told["id"], told["state"], told["code"]) == ("a", "exited", 3)
    assert told["meta"] == {"for": "a"}
    kill_and_await(successor.keeper)
    pretend_other_boot(daemon.directory)
    assert state_of(make_daemon(), "a")["code"] == 3


def pretend_other_boot(directory: Path) -> None:
    records = directory / "records"
    _, *rest = records.read_bytes().splitlines(keepends=True)
    header = encode(KeeperEntry(1, 1, None, "another"))
    records.write_bytes(b"".join([header, *rest]))


def test_torn_last_line_is_passed_over(daemon: Daemon, make_daemon: Make) -> None:
    daemon.run("a", "true")
    kill_and_await(daemon.keeper)
    with (daemon.directory / "records").open("ab") as file:
        file.write(b'{"e":"spawning","id":"b","me')
    ids = [each["id"] for each in make_daemon().hello["attempts"]]
    assert ids == ["a"]


def forget_lines(directory: Path, *kinds: str) -> None:
    records = directory / "records"
    lines = records.read_text().splitlines(keepends=True)
    kept = [
        line
        for line in lines
        if not line.startswith(tuple(f'{{"e":"{kind}"' for kind in kinds))
    ]
    records.write_text("".join(kept))
