"""Runners: attempts of tasks, one after another in a warm process, for real."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tests.support.patience import until

from .conversation import Daemon, alive, kill_and_await
from .successors import Make, exit_of, replaced, state_of, tells
from .tasks import begin, error, result, run, task_of


def pid() -> int:
    return os.getpid()


def add(one: int, other: int) -> int:
    sys.stdout.write(f"{one} and {other}\n")
    return one + other


def wait_for(path: str, code: int = 0) -> None:
    sys.stdout.write("waits")
    Path(path).read_bytes()
    if code:
        sys.exit(code)


def test_attempts_of_one_key_have_one_runner_and_others_another(daemon: Daemon) -> None:
    for id in "abc":
        assert run(daemon, id, pid)["code"] == 0
    run(daemon, "d", pid, key="other")
    pids = [result(daemon, id) for id in "abcd"]
    assert pids[0] == pids[1] == pids[2] != pids[3]
    assert alive(pids[0])
    assert alive(pids[3])


def test_two_at_a_time_have_two_runners(daemon: Daemon, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    begin(daemon, "a", wait_for, str(tmp_path / "go"))
    daemon.wait_for_output("a", "waits")
    run(daemon, "b", pid)
    run(daemon, "c", pid)
    assert result(daemon, "b") == result(daemon, "c")
    (tmp_path / "go").write_text("x")
    assert daemon.expect("exited", "a")["code"] == 0
    run(daemon, "d", pid)
    assert result(daemon, "d") != result(daemon, "c")


def test_value_output_and_times_are_of_each_attempt(daemon: Daemon) -> None:
    begin(daemon, "a", add, 1, 2)
    first = daemon.expect("started", "a")
    daemon.expect("exited", "a")
    begin(daemon, "b", add, 10, 20, stderr=str(daemon.directory / "errors"))
    second = daemon.expect("started", "b")
    exited = daemon.expect("exited", "b")
    assert first["pid"] == second["pid"]
    assert first["at"] < second["at"]
    assert (result(daemon, "a"), result(daemon, "b")) == (3, 30)
    assert daemon.output("a").read_text() == "1 and 2\n"
    assert daemon.output("b").read_text() == "10 and 20\n"
    assert exited["output_bytes"] == len("10 and 20\n")
    assert exited["rusage"]["max_rss"] > 1 << 20


def test_an_exception_is_told_with_its_traceback_and_leaves_the_runner(
    daemon: Daemon,
) -> None:
    def fails() -> None:
        raise KeyError("nothing there")

    run(daemon, "a", pid)
    exited = run(daemon, "b", fails)
    run(daemon, "c", pid)
    assert (exited["code"], exited["reason"]) == (1, None)
    raised, shown = error(daemon, "b")
    assert (type(raised), raised.args) == (KeyError, ("nothing there",))
    assert "in fails" in shown
    assert "calls.py" not in shown
    assert shown == daemon.output("b").read_text()
    assert result(daemon, "a") == result(daemon, "c")


def test_exit_codes_are_those_of_the_task(daemon: Daemon) -> None:
    for id, code in (("a", 0), ("b", 7), ("c", None)):
        assert run(daemon, id, sys.exit, code)["code"] == (code or 0)
    assert run(daemon, "d", os._exit, 9)["code"] == 9
    exited = run(daemon, "e", lambda: os.kill(os.getpid(), signal.SIGSEGV))
    assert (exited["code"], exited["signal"]) == (None, signal.SIGSEGV)
    assert run(daemon, "f", pid)["code"] == 0


def test_cancel_ends_the_runner_in_mid_task(daemon: Daemon, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    begin(daemon, "a", wait_for, str(tmp_path / "go"))
    daemon.wait_for_output("a", "waits")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    exited = daemon.expect("exited", "a")
    assert (exited["reason"], exited["signal"]) == ("cancelled", 15)
    run(daemon, "b", pid)
    assert alive(result(daemon, "b"))


def test_a_task_that_ends_by_itself_when_it_is_stopped_is_not_followed(
    daemon: Daemon,
) -> None:
    def stops_itself() -> int:
        caught = []
        signal.signal(signal.SIGTERM, lambda *_: caught.append(1))
        sys.stdout.write("ready")
        while not caught:
            signal.pause()
        return os.getpid()

    begin(daemon, "a", stops_itself)
    daemon.wait_for_output("a", "ready")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    exited = daemon.expect("exited", "a")
    assert (exited["code"], exited["reason"]) == (0, "cancelled")
    assert not alive(result(daemon, "a"))


def test_time_limit_is_of_the_attempt(daemon: Daemon) -> None:
    run(daemon, "a", pid, time_limit=100.0)
    exited = run(daemon, "b", time.sleep, 1000, time_limit=0.3, grace=1.0)
    assert (exited["reason"], exited["signal"]) == ("time limit", 15)
    assert not alive(result(daemon, "a"))


def test_suspended_task_goes_on(daemon: Daemon, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    begin(daemon, "a", wait_for, str(tmp_path / "go"))
    daemon.wait_for_output("a", "waits")
    daemon.send(v="suspend", id="a")
    daemon.send(v="continue", id="a")
    (tmp_path / "go").write_text("x")
    assert daemon.expect("exited", "a")["code"] == 0
    assert run(daemon, "b", pid)["code"] == 0


def test_idle_runner_that_is_killed_is_replaced(daemon: Daemon) -> None:
    run(daemon, "a", pid)
    kill_and_await(result(daemon, "a"))
    assert run(daemon, "b", pid)["code"] == 0
    assert result(daemon, "a") != result(daemon, "b")


def test_runner_that_is_killed_in_mid_task_ends_the_attempt(
    daemon: Daemon, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    begin(daemon, "a", wait_for, str(tmp_path / "go"))
    daemon.wait_for_output("a", "waits")
    os.kill(daemon.expect("started", "a")["pid"], signal.SIGKILL)
    exited = daemon.expect("exited", "a")
    assert (exited["code"], exited["signal"]) == (None, 9)


def test_follower_goes_to_the_same_runner(daemon: Daemon, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    begin(daemon, "a", wait_for, str(tmp_path / "go"))
    begin(daemon, "b", pid, after="a", of_task={"keep": False})
    daemon.wait_for_output("a", "waits")
    (tmp_path / "go").write_text("x")
    runner = daemon.expect("started", "b")["pid"]
    daemon.expect("exited", "b")
    assert result(daemon, "b") == runner
    # It may not wait for another one, and nothing of it is left when that is told.
    assert not alive(runner)


def test_daemon_that_comes_back_finds_the_attempt(
    daemon: Daemon, make_daemon: Make, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    begin(daemon, "a", wait_for, str(tmp_path / "go"), 5)
    daemon.wait_for_output("a", "waits")
    daemon.close()
    other = make_daemon()
    assert state_of(other, "a")["state"] == "running"
    (tmp_path / "go").write_text("x")
    assert other.expect("exited", "a")["code"] == 5


@tells
def test_runner_whose_keeper_was_killed_ends_with_the_code_of_its_task(
    daemon: Daemon, make_daemon: Make, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    run(daemon, "before", pid)
    begin(daemon, "a", wait_for, str(tmp_path / "go"), 42)
    runner = daemon.expect("started", "a")["pid"]
    daemon.wait_for_output("a", "waits")
    successor = replaced(daemon, make_daemon)
    assert state_of(successor, "a")["pid"] == runner
    (tmp_path / "go").write_text("x")
    exited = successor.expect("exited", "a")
    assert (exited["code"], exited["lost"]) == (42, False)
    assert "exit code 42" in str(error(successor, "a")[0])
    assert state_of(successor, "before")["code"] == 0


def test_idle_runners_leave_with_their_keeper(daemon: Daemon) -> None:
    run(daemon, "a", pid)
    runner = os.pidfd_open(result(daemon, "a"))
    kill_and_await(daemon.keeper)
    until(lambda: not alive(result(daemon, "a")), "the runner stays")
    os.close(runner)


def test_another_code_is_never_taken_for_that_of_a_task_that_was_not_begun(
    daemon: Daemon, make_daemon: Make, tmp_path: Path
) -> None:
    """The keeper dies between the record of an attempt and that of its start."""
    os.mkfifo(tmp_path / "go")
    begin(daemon, "a", wait_for, str(tmp_path / "go"))
    daemon.wait_for_output("a", "waits")
    kill_and_await(daemon.keeper)
    records = daemon.directory / "records"
    lines = records.read_text().splitlines(keepends=True)
    begun = [line.replace('"e":"started"', '"e":"forked"') for line in lines]
    records.write_text("".join(begun))
    successor = make_daemon()
    (tmp_path / "go").write_text("x")
    exited = exit_of(successor, "a")
    assert (exited["code"], exited["lost"]) == (None, True)


def test_a_missing_module_and_another_python_are_told_in_one_line(
    daemon: Daemon,
) -> None:
    def imports() -> None:
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401

    exited = run(daemon, "a", imports)
    assert exited["code"] == 1
    for word in ("`imports`", "`no_such_module`", os.uname().nodename, "Python 3."):
        assert word in exited["reason"]
    exited = run(daemon, "b", pid, of_task={"python": "2.7"})
    assert exited["code"] == 1
    assert "2.7" in exited["reason"]
    assert exited["reason"] in daemon.output("b").read_text()
    assert exited["reason"] in str(error(daemon, "b")[0])
    assert run(daemon, "c", pid)["code"] == 0


def test_an_interpreter_that_is_not_there_is_told(daemon: Daemon) -> None:
    task = task_of(daemon, "a", pid)
    daemon.start("a", "/nowhere/python", "-m", "grass.tasks.runner", task=task)
    assert "/nowhere/python" in daemon.expect("exited", "a")["reason"]


def test_modules_of_the_directory_are_the_tasks_and_not_the_runners(
    daemon: Daemon, tmp_path: Path
) -> None:
    for name in ("resource", "pickle", "traceback", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    (tmp_path / "beside.py").write_text("ANSWER = 42")

    def divides(by: int) -> int:
        import beside  # type: ignore[import-not-found]

        return int(beside.ANSWER // by)

    assert run(daemon, "a", divides, 1, cwd=str(tmp_path))["code"] == 0
    assert result(daemon, "a") == 42
    assert run(daemon, "b", divides, 0, cwd=str(tmp_path))["code"] == 1
    assert "ZeroDivisionError" in error(daemon, "b")[1]


def test_priority_and_cores_are_of_the_runner(daemon: Daemon) -> None:
    core = max(os.sched_getaffinity(0))

    def looks() -> tuple[object, ...]:
        return os.getpid(), os.nice(0), os.sched_getaffinity(0)

    for id in "ab":
        assert run(daemon, id, looks, nice=3, cpus=[core])["code"] == 0
    assert result(daemon, "a") == result(daemon, "b")
    assert result(daemon, "a")[1:] == (os.nice(0) + 3, {core})


def test_output_that_cannot_be_made_fails_the_attempt_alone(daemon: Daemon) -> None:
    run(daemon, "a", pid)
    exited = run(daemon, "b", pid, output="/proc/nothing/here")
    assert "output" in exited["reason"]
    assert run(daemon, "c", pid)["code"] == 0
    assert result(daemon, "a") == result(daemon, "c")
