"""`grass run`: a job in the foreground, whatever happens to the daemon meanwhile."""

import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import alive

pytestmark = pytest.mark.daemon

Process = subprocess.Popen[str]
WAYS = {"restart": GrassHome.restart, "kill": GrassHome.replace_daemon}


def line_of(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def said_by(process: Process) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def end(process: Process) -> tuple[int, str, str]:
    printed, errors = process.communicate(timeout=30)
    return process.returncode, printed, errors


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("echo hello", 0, ""),
        ("echo hello; exit 7", 7, ""),
        ("echo hello; kill -TERM $$", 143, "failed: killed by SIGTERM"),
        (
            "echo hello; kill -KILL $$",
            137,
            "failed: killed by SIGKILL (out of memory?)",
        ),
    ],
)
def test_it_ends_as_the_job_did(
    shared: GrassHome, line: str, code: int, said: str
) -> None:
    ran = shared.run("run", line)
    assert (ran.returncode, ran.stdout) == (code, "hello\n")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == (1 if said else 0)


def test_what_does_not_run_has_a_code_of_its_own(shared: GrassHome) -> None:
    missing = shared.run("run", "--", "no-such-program")
    assert (missing.returncode, missing.stdout) == (125, "")
    assert "no-such-program" in missing.stderr
    assert shared.run("run", "-c", "999", "--", "true").returncode == 124
    assert shared.run("run", "--time-limit", "x", "--", "true").returncode == 2
    limit = shared.run("run", "--time-limit", "0.2s", "--", "sleep", "1000")
    assert (limit.returncode, limit.stdout) == (143, "")
    assert "time limit" in limit.stderr


def test_output_comes_as_it_is_written(shared: GrassHome, gate: Fifo) -> None:
    running = shared.popen("run", f"echo one; read x < {gate}; echo two; exit 3")
    assert line_of(running) == "one\n"
    gate.tell()
    assert end(running) == (3, "two\n", "")


def test_it_says_what_the_job_waits_for(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("create-queue", "q", "--json", "{slot:1}", "--default-require",
              "{slot:1}")  # fmt: skip
    blocker = shared.enqueue("q", f"read x < {gate}")
    running = shared.popen("run", "q", "--", "echo", "mine")
    said = said_by(running)
    assert said.startswith(f"grass: job {blocker + 1} waits: ")
    assert "slot" in said
    gate.tell()
    code, printed, _ = end(running)
    assert (code, printed) == (0, "mine\n")


def test_every_attempt_is_shown(shared: GrassHome) -> None:
    line = "echo attempt {attempt}; test {attempt} = 3"
    ran = shared.run("run", "--retries", "3", "--backoff", "0.1s", line)
    assert ran.returncode == 0
    assert ran.stdout == "attempt 1\nattempt 2\nattempt 3\n"


def test_ctrl_c_cancels_and_shows_the_rest(shared: GrassHome) -> None:
    line = "trap 'echo bye; exit 4' TERM; echo up; sleep 1000 & wait"
    running = shared.popen("run", line)
    assert line_of(running) == "up\n"
    running.send_signal(signal.SIGINT)
    code, printed, errors = end(running)
    assert (code, printed) == (125, "bye\n")
    assert "cancelling job" in errors
    assert "Traceback" not in errors
    assert shared.client.job("last")["state"] == "cancelled"


def test_ctrl_c_cancels_a_job_that_waits(shared: GrassHome) -> None:
    shared.ok("pause")
    running = shared.popen("run", "--", "true")
    assert "is paused" in said_by(running)
    assert "waits" in said_by(running)
    running.send_signal(signal.SIGINT)
    code, printed, _ = end(running)
    assert (code, printed) == (125, "")
    assert shared.client.job("last")["state"] == "cancelled"


def test_a_second_ctrl_c_detaches(shared: GrassHome) -> None:
    line = "trap '' TERM; echo $$; while :; do sleep 1000; done"
    running = shared.popen("run", "--grace", "1h", line)
    pid = int(line_of(running))
    id = shared.client.job("last")["id"]
    running.send_signal(signal.SIGINT)
    assert f"cancelling job {id}" in said_by(running)
    shared.await_event("cancelled", id)
    running.send_signal(signal.SIGINT)
    code, _, errors = end(running)
    assert code == 130
    assert f"`grass logs -f {id}`" in errors
    assert "Traceback" not in errors
    assert alive(pid)
    assert shared.client.job(id)["flags"] == ["stopping"]


def test_a_reader_that_leaves_does_not_take_the_job_along(
    shared: GrassHome, gate: Fifo
) -> None:
    running = shared.popen("run", f"echo one; read x < {gate}; echo two; exit 3")
    assert line_of(running) == "one\n"
    assert running.stdout is not None
    running.stdout.close()
    gate.tell()
    errors = _errors_of(running)
    assert running.returncode == 141
    assert "Traceback" not in errors
    assert shared.wait(shared.client.job("last")["id"])["exit_code"] == 3


def _errors_of(process: Process) -> str:
    assert process.stderr is not None
    with process.stderr as stream:
        errors = stream.read()
    process.wait(timeout=30)
    return errors


@pytest.mark.parametrize("way", WAYS)
def test_it_lives_through_a_new_daemon_while_the_job_runs(
    shared: GrassHome, gate: Fifo, way: str
) -> None:
    line = f"echo one; read x < {gate}; echo two; exit 3"
    running = shared.popen("run", line)
    assert line_of(running) == "one\n"
    WAYS[way](shared)
    gate.tell()
    assert end(running) == (3, "two\n", "")


@pytest.mark.parametrize("way", WAYS)
def test_it_lives_through_a_new_daemon_while_the_job_waits(
    shared: GrassHome, way: str
) -> None:
    shared.ok("pause")
    running = shared.popen("run", "echo one; exit 3")
    assert "is paused" in said_by(running)
    assert "waits" in said_by(running)
    WAYS[way](shared)
    shared.ok("resume")
    code, printed, errors = end(running)
    assert (code, printed) == (3, "one\n")
    assert "Traceback" not in errors


def test_ctrl_c_counts_while_the_daemon_is_replaced(
    shared: GrassHome, fifo: Callable[[str], Fifo]
) -> None:
    news = fifo("pid")
    running = shared.popen("run", f"echo $$ > {news}; exec sleep 1000")
    pid = int(news.hear())
    shared.kill_daemon()
    running.send_signal(signal.SIGINT)
    code, _, errors = end(running)
    assert code == 125, errors
    assert not alive(pid)
