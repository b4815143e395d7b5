"""Ending jobs: signals and grace, what a main process leaves behind, and limits."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.patience import in_time, until

from .conversation import Daemon, Entry, alive, kill_and_await, wait_readable
from .stubborn import STUBBORN, hidden


def test_stop_sends_the_signal_and_tells_the_reason(daemon: Daemon) -> None:
    daemon.start("a", "sleep", "100")
    daemon.expect("started")
    daemon.send(v="stop", id="a", signal=15, grace=15.0, reason="cancelled")
    daemon.expect("stopping")
    exited = daemon.expect("exited")
    assert (exited["signal"], exited["reason"]) == (15, "cancelled")


def test_job_that_handles_the_signal_keeps_its_exit_code(daemon: Daemon) -> None:
    script = "trap 'echo bye; exit 5' USR1; echo ready; while :; do sleep 0.01; done"
    daemon.start("a", "/bin/sh", "-c", script)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="stop", id="a", signal=signal.SIGUSR1, grace=15.0, reason="cancelled")
    exited = daemon.expect("exited")
    assert (exited["code"], exited["reason"]) == (5, "cancelled")


def test_job_that_ignores_the_signal_is_killed_after_the_grace(daemon: Daemon) -> None:
    daemon.start("a", "/bin/sh", "-c", STUBBORN)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="stop", id="a", signal=15, grace=0.1, reason="cancelled")
    assert daemon.expect("exited")["signal"] == 9


def test_second_stop_shortens_the_grace_and_the_first_reason_stays(
    daemon: Daemon,
) -> None:
    daemon.start("a", "/bin/sh", "-c", STUBBORN)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="first")
    daemon.send(v="stop", id="a", signal=15, grace=0, reason="second")
    exited = daemon.expect("exited")
    assert (exited["signal"], exited["reason"]) == (9, "first")


def test_stop_in_the_same_breath_as_the_start(daemon: Daemon) -> None:
    daemon.start("a", "sleep", "100")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    exited = daemon.expect("exited")
    # It was due when the stop came, or it ran.
    assert exited["signal"] in (None, 15)
    assert (exited["code"], exited["reason"]) == (None, "cancelled")


def test_stopped_process_can_be_ended(daemon: Daemon) -> None:
    daemon.start("a", "sleep", "100")
    daemon.expect("started")
    daemon.send(v="signal", id="a", signal=signal.SIGSTOP)
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    assert daemon.expect("exited")["signal"] == 15


# Until the child is `sleep` it may still have the shell's own trap.
WITH_CHILD = (
    "sleep 1000 & pid=$!; until grep -q sleep /proc/$pid/comm; do :; done; echo up;"
)


def test_a_signal_reaches_only_processes_that_handle_it(daemon: Daemon) -> None:
    script = f"trap 'kill -0 $pid && exit 6' USR1; {WITH_CHILD} wait; wait"
    daemon.start("a", "/bin/sh", "-c", script)
    daemon.wait_for_output("a", "up")
    daemon.send(v="signal", id="a", signal=signal.SIGUSR1)
    assert daemon.expect("exited")["code"] == 6


def test_a_signal_that_no_process_handles_reaches_the_whole_tree(
    daemon: Daemon,
) -> None:
    daemon.start("a", "/bin/sh", "-c", f"{WITH_CHILD} wait")
    daemon.wait_for_output("a", "up")
    daemon.send(v="signal", id="a", signal=signal.SIGUSR1)
    assert daemon.expect("exited")["signal"] == signal.SIGUSR1


@pytest.mark.parametrize("without_marker", [False, True])
@pytest.mark.parametrize("parent", ["sys.exit(3)", "time.sleep(1000)"])
def test_process_that_hides_is_ended_with_its_job(
    daemon: Daemon, parent: str, without_marker: bool
) -> None:
    daemon.start("a", *hidden(parent, without_marker=without_marker))
    if "sleep" in parent:
        daemon.wait_for_output("a", "\n")
        daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    exited = daemon.expect("exited")
    assert exited["code"] == 3 or exited["signal"] == 15
    assert not any(map(alive, map(int, daemon.output("a").read_text().split())))


def test_leftovers_are_ended_before_the_exit_is_told(daemon: Daemon) -> None:
    exited = daemon.shell("a", "sleep 1000 & echo $!; exit 4")
    assert (exited["code"], exited["reason"]) == (4, None)
    assert not alive(int(daemon.output("a").read_text()))


def test_leftovers_that_ignore_the_signal_are_killed(daemon: Daemon) -> None:
    child = 'trap "" TERM; echo $$; while :; do sleep 0.05; done'
    exited = daemon.shell(
        "a",
        f"/bin/sh -c '{child}' & while ! grep -q . \"$0\"; do :; done; exit 4".replace(
            "$0", str(daemon.output("a"))
        ),
    )
    assert exited["code"] == 4
    # The shell may say that its child was killed, if it sees it before its own end.
    assert not alive(int(daemon.output("a").read_text().split()[0]))


def test_orphans_of_a_living_job_are_left_alone(daemon: Daemon) -> None:
    daemon.start("long", *hidden("time.sleep(1000)"))
    orphan = int(daemon.wait_for_output("long", "\n"))
    for number in range(3):
        assert daemon.run(str(number), "true")["code"] == 0
    assert alive(orphan)


def test_exit_does_not_wait_for_another_jobs_orphans(daemon: Daemon) -> None:
    daemon.start("long", *hidden("time.sleep(1000)", without_marker=True))
    orphan = int(daemon.wait_for_output("long", "\n"))
    assert daemon.run("short", "true")["code"] == 0
    assert alive(orphan)


def test_time_limit_ends_the_job_with_its_reason(daemon: Daemon) -> None:
    exited = daemon.run("a", "sleep", "100", time_limit=0.05)
    assert (exited["signal"], exited["reason"]) == (15, "time limit")


def test_after_its_time_limit_a_stubborn_job_is_killed(daemon: Daemon) -> None:
    def played(limit_s: float) -> Entry | None:
        id = f"b{limit_s}"
        exited = daemon.shell(id, STUBBORN, time_limit=limit_s, grace=0.05)
        return exited if "ready" in daemon.output(id).read_text() else None

    exited = in_time(played, "it does not come up")
    assert (exited["signal"], exited["reason"]) == (9, "time limit")


def test_output_limit_counts_what_the_attempt_wrote(daemon: Daemon) -> None:
    daemon.output("a").parent.mkdir()
    daemon.output("a").write_bytes(b"x" * 5000)
    exited = daemon.run("a", "yes", max_output=4000)
    assert (exited["signal"], exited["reason"]) == (15, "output limit")
    assert exited["output_bytes"] > 4000


def test_stop_of_a_start_that_hangs(daemon: Daemon, tmp_path: Path) -> None:
    """Opening a pipe without a reader hangs as a lost network disk does."""
    os.mkfifo(tmp_path / "pipe")
    daemon.start("a", "true", output=str(tmp_path / "pipe"))
    assert daemon.run("b", "true")["code"] == 0
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    exited = daemon.expect("exited", "a")
    assert (exited["code"], exited["reason"]) == (None, "cancelled")


def test_start_that_hung_goes_on_when_it_can(daemon: Daemon, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    daemon.start("a", "echo", "hello", output=str(tmp_path / "pipe"))
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert daemon.expect("exited")["code"] == 0
    assert wait_readable(reader)
    assert os.read(reader, 100) == b"hello\n"
    os.close(reader)


def test_tree_in_a_cgroup_leaves_none_behind(daemon: Daemon) -> None:
    daemon.start("a", "/bin/sh", "-c", "sleep 100 & sleep 0.3")
    daemon.expect("exited")
    records = (daemon.directory / "records").read_text()
    if "enclosed" not in records:
        pytest.skip("no cgroup can be made here")
    path = records.partition('"cgroup":"')[2].partition('"')[0]
    assert not Path(path).exists()


def test_what_a_killed_keeper_left_of_cgroups_goes_with_the_next(
    daemon: Daemon, make_daemon: Callable[..., Daemon]
) -> None:
    daemon.run("a", "sleep", "0.3")
    records = daemon.directory / "records"
    if "enclosed" not in records.read_text():
        pytest.skip("no cgroup can be made here")
    daemon.start("b", "sleep", "100")
    pid = daemon.expect("started", "b")["pid"]
    until(records.read_text, "no cgroup", lambda text: text.count("enclosed") == 2)
    path = Path(records.read_text().rpartition('"cgroup":"')[2].partition('"')[0])
    kill_and_await(daemon.keeper)
    kill_and_await(pid)
    records.write_bytes(b"")
    assert path.exists()
    make_daemon()
    assert not path.parent.exists()
