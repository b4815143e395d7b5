"""Suspending a job's whole tree, and limits that hold meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.patience import in_time, until

from .conversation import Daemon, Entry, alive
from .stubborn import STUBBORN, hidden
from .successors import exit_of, replaced

Make = Callable[..., Daemon]

# A parent, a child, and a grandchild that left both their sessions; each tells its
# process id and then waits for a signal that never comes.
TREE = """
import os, sys, time
def say(): print(os.getpid(), flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            say(); time.sleep(1000)
        say(); time.sleep(1000)
    say(); time.sleep(1000)
say(); time.sleep(1000)
"""
WHOLE = 4


def state_of(pid: int) -> str:
    """Tell how the kernel has a process: S sleeps, T is stopped."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return text.rpartition(")")[2].split()[0]


def wait_for_states(pids: list[int], *wanted: str) -> None:
    """Return when every process is in one of these states."""
    until(
        lambda: {state_of(pid) for pid in pids},
        f"{pids} are not all {wanted}",
        lambda states: states <= set(wanted),
    )


def stand_still(pids: list[int]) -> bool:
    """Tell whether every process is stopped, and none has ended."""
    try:
        return all(state_of(pid) == "T" for pid in pids)
    except OSError:
        return False


def tree(daemon: Daemon, id: str = "a", **fields: object) -> list[int]:
    """Start a tree of four processes and return their ids."""
    daemon.start(id, sys.executable, "-c", TREE, **fields)
    return until(
        lambda: told_by(daemon, id),
        f"the tree of {id} does not come up",
        lambda pids: len(pids) == WHOLE,
    )


def told_by(daemon: Daemon, id: str) -> list[int]:
    """Return the processes of a tree that have told their ids by now."""
    output = daemon.output(id)
    lines = output.read_text().splitlines(keepends=True) if output.exists() else []
    return [int(line) for line in lines if line.endswith("\n")]


def test_a_whole_tree_stops_and_goes_on(daemon: Daemon) -> None:
    pids = tree(daemon)
    daemon.send(v="suspend", id="a")
    wait_for_states(pids, "T")
    daemon.send(v="suspend", id="a")
    daemon.send(v="continue", id="a")
    wait_for_states(pids, "S", "R")
    daemon.send(v="stop", id="a", signal=15, grace=15.0, reason="cancelled")
    assert daemon.expect("exited")["signal"] == 15
    assert not any(map(alive, pids))


def test_work_goes_on_where_it_was(daemon: Daemon) -> None:
    daemon.start("a", "/bin/sh", "-c", "echo up; while [ ! -e go ]; do :; done; exit 3")
    daemon.wait_for_output("a", "up")
    pid = daemon.expect("started")["pid"]
    daemon.send(v="suspend", id="a")
    wait_for_states([pid], "T")
    (daemon.directory / "go").touch()
    assert daemon.run("b", "true")["code"] == 0
    assert state_of(pid) == "T"
    daemon.send(v="continue", id="a")
    exited = daemon.expect("exited", "a")
    assert (exited["code"], exited["signal"], exited["reason"]) == (3, None, None)


def test_other_jobs_run_on(daemon: Daemon) -> None:
    pids, others = tree(daemon), tree(daemon, "b")
    daemon.send(v="suspend", id="a")
    wait_for_states(pids, "T")
    assert all(state_of(pid) == "S" for pid in others)


def test_a_suspended_job_can_be_while_connected_its_tree(daemon: Daemon) -> None:
    pids = tree(daemon)
    daemon.send(v="suspend", id="a")
    wait_for_states(pids, "T")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    exited = daemon.expect("exited")
    assert (exited["signal"], exited["reason"]) == (15, "cancelled")
    assert not any(map(alive, pids))


def test_a_suspended_job_hears_the_signal_and_may_say_good_bye(daemon: Daemon) -> None:
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    daemon.start("a", "/bin/sh", "-c", script)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="suspend", id="a")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    assert daemon.expect("exited")["code"] == 5


def test_a_suspended_job_that_ignores_the_signal_is_killed(daemon: Daemon) -> None:
    daemon.start("a", "/bin/sh", "-c", STUBBORN)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="suspend", id="a")
    daemon.send(v="stop", id="a", signal=15, grace=0.1, reason="cancelled")
    assert daemon.expect("exited")["signal"] == 9


def test_suspending_what_is_being_stopped_does_not_hold_it_up(daemon: Daemon) -> None:
    script = "trap 'sleep 0.2; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    daemon.start("a", "/bin/sh", "-c", script)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    daemon.send(v="suspend", id="a")
    assert daemon.expect("exited")["code"] == 5


def test_suspend_in_the_same_breath_as_the_start(daemon: Daemon) -> None:
    daemon.start("a", "sleep", "1000")
    daemon.send(v="suspend", id="a")
    pid = daemon.expect("started")["pid"]
    wait_for_states([pid], "T")
    daemon.send(v="continue", id="a")
    wait_for_states([pid], "S")


def test_suspend_of_a_job_that_waits_for_another(daemon: Daemon) -> None:
    daemon.start("first", "sleep", "1000")
    daemon.expect("started", "first")
    daemon.start("second", "sleep", "1000", after="first")
    daemon.send(v="suspend", id="second")
    daemon.send(v="stop", id="first", signal=15, grace=15.0, reason="cancelled")
    pid = daemon.expect("started", "second")["pid"]
    wait_for_states([pid], "T")


def test_verbs_on_unknown_and_ended_jobs_do_no_harm(daemon: Daemon) -> None:
    for verb in ("suspend", "continue"):
        daemon.send(v=verb, id="nobody")
        assert "nobody" in daemon.expect("error")["message"]
    daemon.run("a", "true")
    daemon.send(v="suspend", id="a")
    daemon.send(v="continue", id="a")
    assert daemon.run("b", "true")["code"] == 0


def test_the_time_limit_counts_while_suspended(daemon: Daemon) -> None:
    def played(limit_s: float) -> list[int] | None:
        id, begun = f"a{limit_s}", time.monotonic()
        daemon.start(id, sys.executable, "-c", TREE, time_limit=limit_s)
        main = int(daemon.expect("started", id)["pid"])
        until(lambda: len(told_by(daemon, id)) == WHOLE or not alive(main), "no tree")
        pids = told_by(daemon, id)
        daemon.send(v="suspend", id=id)
        until(lambda: not alive(main) or stand_still(pids), "it does not stop")
        stood = alive(main)
        exited = daemon.expect("exited", id)
        assert (exited["signal"], exited["reason"]) == (15, "time limit")
        assert time.monotonic() - begun >= limit_s
        return pids if stood else None

    pids = in_time(played, "it does not come up")
    assert not any(map(alive, pids))


def test_a_suspended_job_goes_on_under_the_keepers_successor(
    daemon: Daemon, make_daemon: Make
) -> None:
    pids = tree(daemon)
    daemon.send(v="suspend", id="a")
    wait_for_states(pids, "T")
    successor = replaced(daemon, make_daemon)
    assert all(state_of(pid) == "T" for pid in pids)
    successor.send(v="continue", id="a")
    wait_for_states(pids, "S", "R")
    successor.send(v="suspend", id="a")
    wait_for_states(pids, "T")
    successor.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    successor.expect("exited", "a")
    assert not any(map(alive, pids))


def test_the_time_limit_holds_while_no_daemon_is_connected(make_daemon: Make) -> None:
    def played(limit_s: float) -> Entry | None:
        daemon, id = make_daemon(), f"a{limit_s}"
        daemon.start(id, *hidden("time.sleep(1000)"), time_limit=limit_s)
        pid = int(daemon.expect("started")["pid"])
        until(lambda: told_by(daemon, id) or not alive(pid), "it does not come up")
        hiders = told_by(daemon, id)
        daemon.close()
        until(lambda: not any(map(alive, [pid, *hiders])), "the limit was not kept")
        return exit_of(make_daemon(), id) if hiders else None

    exited = in_time(played, "it does not come up")
    assert (exited["signal"], exited["reason"]) == (15, "time limit")


def test_the_time_limit_holds_across_a_killed_keeper(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.start("a", "sleep", "1000", time_limit=1.0)
    pid = daemon.expect("started")["pid"]
    successor = replaced(daemon, make_daemon)
    assert exit_of(successor, "a")["reason"] == "time limit"
    assert not alive(pid)


@pytest.mark.parametrize("nice", [0, 5, 19])
def test_a_job_is_as_nice_as_asked_and_so_are_its_children(
    daemon: Daemon, nice: int
) -> None:
    script = "import os; print(os.nice(0)); os.fork() or print(os.nice(0), flush=True)"
    argv = (sys.executable, "-uc", script)
    assert daemon.run("a", *argv, nice=nice)["code"] == 0
    found = {int(word) for word in daemon.output("a").read_text().split()}
    own = os.getpriority(os.PRIO_PROCESS, daemon.keeper)
    assert found == {min(19, own + nice)}
