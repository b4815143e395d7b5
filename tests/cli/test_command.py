"""`grass` as a process: bad input, exit codes, imports, and a daemon's version."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass import __version__
from grass.cli import reference
from grass.cli.main import COMMANDS

from .conftest import Call, Grass
from .fake_daemon import FakeDaemon

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
FORBIDDEN = {
    *("argparse", "asyncio", "contextlib", "dataclasses", "http.client", "json"),
    *("msgspec", "re", "rich", "socket", "subprocess", "typing", "uuid"),
}


def test_enqueue_imports_next_to_nothing(surroundings: dict[str, str]) -> None:
    daemon = FakeDaemon(Path(surroundings["GRASS_HOME"]))
    daemon.answers["POST /jobs"] = {"first": 7, "last": 7, "hint": ""}
    script = (
        "import os, sys; before = set(sys.modules)\n"
        "from grass.cli.main import dispatch\n"
        "dispatch(['enqueue', '--', 'true'])\n"
        "print(*(set(sys.modules) - before))"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings,
    )
    daemon.close()
    id, *imported = ran.stdout.split()
    assert id == "7"
    assert set(imported) & FORBIDDEN == set()
    assert len(imported) <= 20


DROPPED = """
import signal, sys, time, weakref
from grass.cli import main as cli
class Thing: pass
def drop():
    thing = Thing()
    def dropped(_): signal.raise_signal(signal.SIGINT)
    kept = weakref.ref(thing, dropped)
    del thing
"""
LATER = """
def dispatch(words):
    alarm = {signal.SIGALRM}
    signal.pthread_sigmask(signal.SIG_BLOCK, alarm)
    drop()
    print("still here", flush=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, alarm)
    time.sleep(60)
"""
BUSY = """
set_timer = signal.setitimer
def slow(*words):
    signal.setitimer = set_timer
    set_timer(*words)
    began = time.monotonic()
    while time.monotonic() < began + 0.2:
        pass
    print("still here", flush=True)
signal.setitimer = slow
def dispatch(words):
    drop()
    time.sleep(60)
"""


@pytest.mark.parametrize("dispatch", [LATER, BUSY], ids=["later", "while busy"])
def test_ctrl_c_is_not_lost_in_a_callback(dispatch: str) -> None:
    script = f"{DROPPED}{dispatch}cli.dispatch = dispatch\nsys.exit(cli.main())"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("still here\n", "", 130)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["shw"], 2, "grass: there is no command `shw` (did you mean `grass show`?)"),
        (
            ["--nope"],
            2,
            "grass: there is no option `--nope` (`grass --help` lists all)",
        ),
        (
            ["--broker", "desk:7500", "show"],
            2,
            "(it stands after the command: grass show --broker HOST:PORT)",
        ),
        (
            ["show", "--jsn"],
            2,
            "grass show: there is no option `--jsn` (did you mean `--json`?)",
        ),
        (["enqueue"], 2, "no command was given"),
        (["logs"], 2, "grass logs: the job is missing (see `grass logs --help`)"),
        (["show", "a", "b"], 2, "`b` is one word too many"),
        (["wait"], 2, "no job was named"),
        (["prune", "--older", "soon"], 2, "`soon` is not a duration"),
        (["create-queue"], 2, "the queue's name is missing"),
        (["create-queue", "q", "--file", "none.json5"], 2, "No such file"),
        (["show"], 3, "no daemon is running (start it with `grass start`)"),
        (["wait", "7"], 124, "no daemon is running"),
    ],
)
def test_bad_input_gets_one_line(
    grass: Grass, words: list[str], code: int, message: str
) -> None:
    ran = grass(*words)
    assert ran.returncode == code
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""


def test_help_lists_every_command(grass: Grass) -> None:
    ran = grass("--help")
    assert ran.returncode == 0
    assert all(f"  {name} " in ran.stdout for name in COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(call: Call, command: str) -> None:
    asked = call(command, "--help")
    assert (asked.code, asked.err) == (0, "")
    assert f"grass {command}" in asked.out
    assert call("help", command) == asked


def test_each_command_has_help_with_an_example(grass: Grass) -> None:
    ran = grass("create-queue", "q1", "--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "examples:\n  grass create-queue q1" in ran.stdout


def test_the_version_is_printed(grass: Grass) -> None:
    assert grass("--version").stdout.startswith("grass ")


def test_the_reference_is_what_the_commands_say() -> None:
    assert REFERENCE.read_text() == reference.text()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("\n# nothing\n", "stdin holds no jobs"),
        ('{"command": "a"}\n\n{"comm\n', "stdin, line 3: "),
        (
            '{"command": "a", "cwd": "/no/such"}',
            'stdin, line 1: field "cwd": there is no directory',
        ),
        ('{"command": "a"}\n[1]\n', "stdin, line 2: a job is an object"),
    ],
)
def test_a_file_of_jobs_is_checked_line_by_line(
    grass: Grass, lines: str, message: str
) -> None:
    ran = grass("enqueue", "--from", "-", input=lines)
    assert ran.returncode == 2
    assert message in ran.stderr


RESTART = "(`grass restart` brings them together; jobs run on)\n"


@pytest.fixture
def daemon(surroundings: dict[str, str]) -> Iterator[FakeDaemon]:
    played = FakeDaemon(Path(surroundings["GRASS_HOME"]))
    yield played
    played.close()


def of_version(version: str, document: object) -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 200 OK\r\nGrass-Version: {version}\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


INCOMPLETE: dict[str, object] = {"jobs": [], "daemon": {}, "queues": [], "workers": []}


def test_a_daemon_of_another_version_is_pointed_out_once(
    grass: Grass, daemon: FakeDaemon
) -> None:
    done = {"jobs": [], "warnings": [], "changed": True}
    daemon.answers["POST /pause"] = of_version("9.9.9", done)
    ran = grass("pause")
    assert (ran.returncode, ran.stdout) == (0, "grass is paused\n")
    told = f"grass: the daemon is 9.9.9, this command {__version__} {RESTART}"
    assert ran.stderr == told


def test_a_daemon_of_the_same_version_is_not(grass: Grass, daemon: FakeDaemon) -> None:
    done = {"jobs": [], "warnings": [], "changed": True}
    daemon.answers["POST /pause"] = of_version(__version__, done)
    assert grass("pause").stderr == ""


def test_an_answer_of_another_version_that_lacks_something_is_one_line(
    grass: Grass, daemon: FakeDaemon
) -> None:
    daemon.answers["GET /overview"] = of_version("0.0.9", INCOMPLETE)
    ran = grass("show")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"grass: the daemon is 0.0.9, this command {__version__}, and cannot use its"
        f" answer: KeyError: 'jobs' {RESTART}"
    )


def test_a_defect_is_one_line_and_leaves_a_report(
    grass: Grass, daemon: FakeDaemon, surroundings: dict[str, str]
) -> None:
    """Even where a daemon has answered: it is of the same version."""
    daemon.answers["GET /overview"] = of_version(__version__, INCOMPLETE)
    ran = grass("show")
    file = Path(surroundings["GRASS_HOME"], "crash-report.txt")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "grass: `grass show` failed by a defect of Grass: KeyError: 'jobs'"
        f" (please report it with {file})\n"
    )
    report = file.read_text()
    assert "command: grass show\n" in report
    assert f"last answer: the daemon {__version__}\n\nTraceback (most" in report
    assert report.endswith("KeyError: 'jobs'\n")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_defect_of_wait_is_not_taken_for_the_exit_code_of_a_job(
    grass: Grass, daemon: FakeDaemon
) -> None:
    daemon.answers["POST /jobs/wait"] = of_version(__version__, {})
    ran = grass("wait", "7")
    assert "`grass wait` failed by a defect of Grass: KeyError" in ran.stderr
    assert ran.returncode == 124


def test_a_report_that_cannot_be_written_is_printed(
    grass: Grass, daemon: FakeDaemon, surroundings: dict[str, str]
) -> None:
    daemon.answers["GET /overview"] = of_version(__version__, INCOMPLETE)
    Path(surroundings["GRASS_HOME"], "crash-report.txt").mkdir()
    ran = grass("show")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "Traceback (most recent call last)" in ran.stderr
    assert ran.stderr.endswith("(please report it with the text above)\n")
