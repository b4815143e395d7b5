"""What a job gets, and what is told about it, with real processes."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grass.keeper.process_table import start_ticks

from .conversation import Daemon


def test_exit_code_arrives_with_times_and_usage(daemon: Daemon) -> None:
    daemon.start("a", "/bin/sh", "-c", "exit 7")
    started = daemon.expect("started")
    exited = daemon.expect("exited")
    assert (exited["code"], exited["signal"], exited["lost"]) == (7, None, False)
    assert exited["reason"] is None
    assert started["at"] <= exited["at"]
    assert set(exited["rusage"]) == {"user_s", "system_s", "max_rss"}


def test_kill_from_outside_is_seen_as_its_signal(daemon: Daemon) -> None:
    daemon.start("a", "sleep", "100")
    os.kill(daemon.expect("started")["pid"], signal.SIGKILL)
    exited = daemon.expect("exited")
    assert (exited["code"], exited["signal"]) == (None, 9)


def test_ticks_of_many_starts_are_those_of_proc(daemon: Daemon) -> None:
    for number in range(40):
        daemon.start(str(number), "sleep", "100")
        started = daemon.expect("started")
        assert started["ticks"] == start_ticks(started["pid"])


def test_output_is_in_order_and_counted(daemon: Daemon) -> None:
    exited = daemon.shell("a", "echo one; echo two >&2; echo three")
    assert daemon.output("a").read_text() == "one\ntwo\nthree\n"
    assert exited["output_bytes"] == 14


def test_output_is_appended_and_its_offset_told(daemon: Daemon) -> None:
    daemon.output("a").parent.mkdir()
    daemon.output("a").write_text("before\n")
    daemon.start("a", "echo", "after")
    assert daemon.expect("started")["offset"] == 7
    assert daemon.expect("exited")["output_bytes"] == 6
    assert daemon.output("a").read_text() == "before\nafter\n"


def test_stderr_can_go_elsewhere(daemon: Daemon, tmp_path: Path) -> None:
    other = tmp_path / "deep" / "er" / "errors"
    daemon.shell("a", "echo out; echo err >&2", stderr=str(other))
    assert daemon.output("a").read_text() == "out\n"
    assert other.read_text() == "err\n"


def test_output_may_be_a_device(daemon: Daemon) -> None:
    assert daemon.run("a", "echo", "x", output="/dev/null")["code"] == 0


def test_umask_and_directory_are_the_jobs_own(daemon: Daemon, tmp_path: Path) -> None:
    daemon.shell("a", "umask; pwd; : > made", umask=0o027)
    assert daemon.output("a").read_text() == f"0027\n{tmp_path}\n"
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o640
    assert daemon.output("a").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("nice", [0, 1], ids=["fast", "careful"])
def test_environment_is_exactly_what_was_given(daemon: Daemon, nice: int) -> None:
    given = {"ONLY": "this", "EMPTY": "", "TWO": "a=b\nc"}
    daemon.run("a", "/bin/cat", "/proc/self/environ", env=given, nice=nice)
    variables = daemon.output("a").read_bytes().split(b"\0")[:-1]
    assert sorted(variables) == [b"EMPTY=", b"ONLY=this", b"TWO=a=b\nc"]


_LOOK = """
import json, os, resource, signal
print(json.dumps({
    "fds": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1],
    "stdin": os.readlink("/proc/self/fd/0"),
    "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
    "leader": os.getsid(0) == os.getpid(),
    "status": open("/proc/self/status").read(),
    "nice": os.nice(0),
}))
"""


@pytest.mark.parametrize("nice", [0, 3], ids=["fast", "careful"])
def test_job_starts_clean(daemon: Daemon, nice: int) -> None:
    """Three descriptors, no input, a login's limits, own session, no odd signals."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    daemon.run("a", sys.executable, "-I", "-S", "-c", _LOOK, nice=nice)
    seen = json.loads(daemon.output("a").read_text())
    status = dict(line.split(":\t", 1) for line in seen["status"].splitlines())
    assert seen["fds"] == [0, 1, 2]
    assert seen["stdin"] == "/dev/null"
    assert (seen["nofile"], seen["core"]) == (1024, 0)
    assert seen["leader"]
    ignored = int(status["SigIgn"], 16)
    present = {n for n in signal.valid_signals() if ignored >> (n - 1) & 1}
    # The job is a Python, which by itself ignores these two.
    assert present == {signal.SIGPIPE, signal.SIGXFSZ}
    assert int(status["SigBlk"], 16) == 0
    assert seen["nice"] == os.nice(0) + nice
    assert resource.getrlimit(resource.RLIMIT_CORE) == before


def test_job_is_pinned_to_its_cores(daemon: Daemon) -> None:
    core = max(os.sched_getaffinity(0))
    script = "import os; print(os.sched_getaffinity(0))"
    daemon.run("a", sys.executable, "-c", script, cpus=[core])
    assert daemon.output("a").read_text() == f"{{{core}}}\n"


def test_nothing_of_the_starters_shell_leaks(
    make_daemon: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAK", "yes")
    os.set_inheritable(leaking := os.open("/dev/null", os.O_RDONLY), True)
    daemon = make_daemon()
    os.close(leaking)
    environment = Path(f"/proc/{daemon.keeper}/environ").read_bytes()
    assert b"LEAK" not in environment
    opened = os.listdir(f"/proc/{daemon.keeper}/fd")
    links = [os.readlink(f"/proc/{daemon.keeper}/fd/{name}") for name in opened]
    # Standard input and output, and the one kept for jobs.
    assert links.count("/dev/null") == 3


def test_bytes_that_are_not_utf8_arrive_unchanged(daemon: Daemon) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    environment = {"PATH": os.environ["PATH"], "ODD": odd}
    script = 'printf "%s|%s" "$1" "$ODD"'
    daemon.run("a", "/bin/sh", "-c", script, "sh", odd, env=environment)
    assert daemon.output("a").read_bytes() == b"\xff\xfe|\xff\xfe"


def test_program_is_looked_up_in_the_jobs_path_then_its_directory(
    daemon: Daemon, tmp_path: Path
) -> None:
    for folder in ("bin", "."):
        program = tmp_path / folder / "thing"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho from {folder}\n")
        program.chmod(0o755)
    daemon.run("a", "thing", env={"PATH": f"/nowhere:{tmp_path}/bin"})
    daemon.run("b", "thing", env={"PATH": "/nowhere"})
    daemon.run("c", "./thing", env={"PATH": f"{tmp_path}/bin"})
    texts = [daemon.output(id).read_text() for id in "abc"]
    assert texts == ["from bin\n", "from .\n", "from .\n"]


def test_many_jobs_in_one_message_all_run(daemon: Daemon) -> None:
    for number in range(50):
        daemon.start(str(number), "true")
    codes = [daemon.expect("exited")["code"] for _ in range(50)]
    assert codes == [0] * 50


@pytest.mark.parametrize("nice", [0, 1], ids=["fast", "careful"])
def test_a_job_is_killed_for_memory_before_its_keeper(
    daemon: Daemon, nice: int
) -> None:
    daemon.run("a", "/bin/cat", "/proc/self/oom_score_adj", nice=nice)
    own = int(Path(f"/proc/{daemon.keeper}/oom_score_adj").read_text())
    assert int(daemon.output("a").read_text()) == min(1000, own + 200)
    assert own == int(Path("/proc/self/oom_score_adj").read_text())
