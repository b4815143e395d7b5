"""Suspending a job's whole tree, and limits that hold meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.patience import until

from .conversation import Daemon, alive
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


def tree(daemon: Daemon, id: str = "a", **fields: object) -> list[int]:
    """Start a tree of four processes and return their ids."""
    daemon.start(id, sys.executable, "-c", TREE, **fields)
    output = daemon.output(id)
    written = until(
        lambda: output.read_text() if output.exists() else "",
        f"the tree of {id} does not come up",
        lambda text: text.count("\n") == 4,
    )
    return [int(line) for line in written.split()]


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
    begun = time.monotonic()
    pids = tree(daemon, time_limit=3.0)
    daemon.send(v="suspend", id="a")
    wait_for_states(pids, "T")
    exited = daemon.expect("exited")
    assert (exited["signal"], exited["reason"]) == (15, "time limit")
    assert time.monotonic() - begun >= 2.9
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


def test_the_time_limit_holds_while_no_daemon_is_connected(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.start("a", *hidden("time.sleep(1000)"), time_limit=0.8)
    pid = daemon.expect("started")["pid"]
    hider = int(daemon.wait_for_output("a", "\n"))
    daemon.close()
    until(lambda: not alive(pid) and not alive(hider), "the limit was not kept")
    exited = exit_of(make_daemon(), "a")
    assert (exited["signal"], exited["reason"]) == (15, "time limit")
    assert not alive(hider)


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
