"""What is piped or typed into `grass run` reaches its job, whatever happens."""

import hashlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from grass.errors import Refused
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import alive
from tests.support.screen import Screen

pytestmark = pytest.mark.daemon


def sockets(home: GrassHome) -> list[Path]:
    """Return what hosts of jobs have left."""
    return list((home.folder / "keeper").glob("input-*"))


def piped(home: GrassHome, *words: str) -> subprocess.Popen[bytes]:
    """Run a command whose stdin the test writes."""
    return subprocess.Popen(
        [*home.grass, "run", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home.desk,
        env=home.environment,
    )


def give(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def line_of(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def session(home: GrassHome, *words: str) -> Screen:
    """Run a command at a terminal."""
    shell = home.add_program("plain-shell", "exec bash --norc -i")
    surroundings = {**home.environment, "PS1": "ready> ", "SHELL": str(shell)}
    return Screen([*home.grass, *words], surroundings)


def last_job(home: GrassHome) -> int:
    return int(home.client.job("last")["id"])


# Pipes.


def test_what_is_piped_in_reaches_the_job(shared: GrassHome) -> None:
    ran = shared.run("run", "--", "cat", input="hi\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "hi\n", "")
    assert shared.client.job("last")["stdin"] == "pipe"
    assert not sockets(shared)


def test_much_input_arrives_as_it_was_sent(shared: GrassHome) -> None:
    data = os.urandom(1_500_000)
    running = piped(shared, "--", "md5sum")
    printed, _ = running.communicate(data, timeout=60)
    assert printed.split()[0].decode() == hashlib.md5(data).hexdigest()


def test_a_pipe_that_gives_nothing_does_not_hold_the_end_up(shared: GrassHome) -> None:
    running = piped(shared, "--", "sh", "-c", "exit 3")
    assert running.wait(30) == 3
    running.communicate()


def test_a_job_that_does_not_read_ends_as_ever(shared: GrassHome) -> None:
    running = piped(shared, "--", "sh", "-c", "echo one; exit 4")
    give(running, b"x" * 60_000)
    assert running.communicate(timeout=30)[0] == b"one\n"
    assert running.returncode == 4


def test_an_empty_stdin_and_no_stdin_are_dev_null(shared: GrassHome) -> None:
    loop = "for i in 1 2; do echo $i; done | while read x; do grass run --no-stdin cat"
    assert shared.shell(f"{loop}; echo got $x; done").stdout == "got 1\ngot 2\n"
    assert shared.client.job("last")["stdin"] == "null"
    for stdin in ("< /dev/null", "<&-", "< <(:)"):
        assert shared.shell(f"sleep 0.1; grass run -- cat {stdin}").returncode == 0
    assert shared.run("run", "--", "cat", input="").stdout == ""


def test_a_job_that_may_run_again_gets_no_input(shared: GrassHome) -> None:
    ran = shared.run("run", "--retries", "1", "--", "cat", input="hi")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "stdin is not passed on" in ran.stderr
    shared.run("run", "--", "cat", input="once")
    id = last_job(shared)
    again = shared.run("rerun", str(id))
    assert f"job {id} runs again without its input" in again.stderr
    assert shared.wait(id)["state"] == "succeeded"
    assert shared.logs(id) == ""


def test_a_daemon_that_is_killed_loses_and_repeats_no_input(home: GrassHome) -> None:
    running = piped(home, "--", "cat")
    for number in range(3):
        give(running, b"line %d\n" % number)
        assert line_of(running) == b"line %d\n" % number
        home.replace_daemon()
    home.kill_daemon()
    give(running, b"last\n")
    assert line_of(running) == b"last\n"
    assert running.communicate(timeout=30)[0] == b""
    assert running.returncode == 0
    assert home.logs(last_job(home)) == "line 0\nline 1\nline 2\nlast\n"


def test_a_program_that_is_not_found_is_told_as_ever(shared: GrassHome) -> None:
    ran = shared.run("run", "--", "no-such-program", input="hi")
    assert ran.returncode == 125
    assert "program `no-such-program` not found" in ran.stderr


def test_ctrl_c_twice_ends_the_input_of_the_job_that_is_left(
    shared: GrassHome, gate: Fifo
) -> None:
    script = f"trap '' TERM; echo up; cat; read x < {gate}; echo over"
    running = piped(shared, "--grace", "60s", "--", "sh", "-c", script)
    assert line_of(running) == b"up\n"
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    assert b"cancelling" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    gate.tell()
    running.communicate()
    id = last_job(shared)
    shared.wait(id)
    assert shared.logs(id) == "up\nover\n"


def test_only_a_job_that_was_given_input_takes_more(shared: GrassHome) -> None:
    id = shared.enqueue("--hold", "--", "cat")
    with pytest.raises(Refused, match="takes no input"):
        shared.client.write_input(id, "me", 0, b"x")
    shared.run("run", "--", "cat", input="x")
    late = shared.client.write_input(last_job(shared), "me", 0, b"too late")
    assert late["closed"]


# Terminals.


def test_a_job_has_the_terminal(home: GrassHome) -> None:
    screen = session(home, "run", "--pty", "--", "bash", "--norc", "-i")
    screen.until("Enter ~ . leaves it to itself")
    screen.until("ready> ")
    assert not screen.is_restored
    screen.type("stty size; echo $TERM; tty\r")
    screen.until("/dev/pts/")
    assert "24 80" in screen.seen
    assert "xterm" in screen.seen
    screen.resize(30, 99)
    # What it prints differs from what is typed: it is in the foreground by then.
    screen.type("sh -c 'echo be\"\"gan; exec cat'\r")
    screen.until("began")
    screen.type("\x03")
    screen.until("ready> ")
    screen.type("stty size\r")
    screen.until("30 99")
    screen.type("exit 7\r")
    assert screen.ended() == 7
    assert home.client.job("last")["exit_code"] == 7
    assert not sockets(home)


def test_a_session_goes_on_when_the_daemon_is_killed(home: GrassHome) -> None:
    screen = session(home, "shell", "--name", "mine")
    screen.until("ready> ")
    home.replace_daemon()
    screen.type("echo $((6 * 7))\r")
    screen.until("42")
    home.kill_daemon()
    screen.type("exit 3\r")
    assert screen.ended() == 3
    assert home.client.job("last")["name"] == "mine"


def test_enter_tilde_dot_leaves_the_job_to_itself(shared: GrassHome) -> None:
    screen = session(shared, "run", "--pty", "--", "bash", "--norc", "-i")
    screen.until("ready> ")
    screen.type("\r~.")
    screen.until("is left to itself")
    assert screen.is_restored
    assert screen.ended() == 130
    id = last_job(shared)
    assert shared.state(id) == "running"
    # An interactive shell ignores SIGTERM, and does not take the whole grace.
    shared.ok("cancel", str(id))
    assert shared.client.job(id)["signal"] == signal.SIGHUP
    assert not sockets(shared)


def test_a_terminal_that_is_closed_ends_the_job(shared: GrassHome) -> None:
    screen = session(shared, "shell")
    screen.until("ready> ")
    screen.close()
    assert screen.process.wait(30) == 129
    ended = shared.wait(last_job(shared))
    assert (ended["state"], ended["signal"]) == ("cancelled", signal.SIGHUP)


def test_a_job_that_is_killed_leaves_nothing_behind(shared: GrassHome) -> None:
    screen = session(shared, "shell")
    screen.until("ready> ")
    id = last_job(shared)
    pid = shared.client.job(id)["pid"]
    shared.ok("cancel", "--now", str(id))
    assert screen.ended() == 125
    assert not alive(pid)
    until(lambda: not sockets(shared), "the socket was left")


@pytest.mark.parametrize("words", [("run", "--pty", "--", "true"), ("shell",)])
def test_a_terminal_needs_a_terminal(shared: GrassHome, words: tuple[str, ...]) -> None:
    ran = shared.run(*words, input="hi")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "this needs a terminal" in ran.stderr


def test_a_shell_takes_a_queue_and_no_command(shared: GrassHome) -> None:
    assert "no queue `nowhere`" in shared.run("shell", "nowhere").stderr
    assert "takes no command" in shared.run("shell", "--", "ls").stderr
    both = shared.run("run", "--pty", "--no-stdin", "--", "true")
    assert "exclude each other" in both.stderr
