"""What a job runs in, and what must not leak from the shell that started the daemon.

One daemon serves the whole module. It is started from a shell in which everything that
could leak is odd; jobs are then enqueued from an ordinary one.
"""

import json
import os
import resource
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grass.keeper.system.rlimits import parse_limits
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

ODD_SHELL = """\
cd {odd}
umask 0137
ulimit -S -n 99
ulimit -S -s 1234
ulimit -S -c 0
trap '' HUP INT QUIT
exec 9> {odd}/open
export ODD=leaked CUDA_VISIBLE_DEVICES=9 PYTHONPATH={odd} PYTHONUNBUFFERED=
export GRASS_ATTEMPT_ID=surrounding GRASS_JOB_ID=77 GRASS_GPU=7 GRASS_NAME=outer
exec grass start
"""
PROBE = """\
import json, os, resource, sys
mask = os.umask(0)
print(json.dumps({
    "argv": [os.fsencode(word).hex() for word in sys.argv[1:]],
    "cwd": os.getcwd(),
    "env": {k: v for k, v in os.environ.items() if v.isascii()},
    "umask": mask,
    "stdin": os.readlink("/proc/self/fd/0"),
    "descriptors": [fd for fd in range(512) if os.path.exists(f"/proc/self/fd/{fd}")],
    "session": os.getsid(0) == os.getpid(),
    "cpus": sorted(os.sched_getaffinity(0)),
}))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    folder = tmp_path_factory.mktemp("surroundings")
    home = GrassHome(folder)
    (home.desk / "probe.py").write_text(PROBE)
    (folder / "odd").mkdir()
    started = home.shell(ODD_SHELL.format(odd=shlex.quote(str(folder / "odd"))))
    assert started.returncode == 0, started.stderr
    home.ok("create-queue", "gpus", "--json", "{gpu:4}")
    yield home
    home.end()


def probe(home: GrassHome, *words: str | bytes, **how: Any) -> dict[str, Any]:
    """Run the probe with these options of `enqueue`, and return what it saw."""
    command = ("python", str(home.desk / "probe.py"))
    split = words.index("...") if "..." in words else len(words)
    id = home.enqueue(*words[:split], "--", *command, *words[split + 1 :], **how)
    assert home.wait(id)["state"] == "succeeded", home.logs(id)
    seen: dict[str, Any] = json.loads(home.logs(id))
    return seen


def printed(home: GrassHome, *words: str | bytes, **how: Any) -> str:
    """Run a job that must succeed, and return its output."""
    id = home.enqueue(*words, **how)
    ended = home.wait(id)
    assert ended["state"] == "succeeded", (ended, home.logs(id))
    return home.logs(id)


def test_directory_and_environment_are_the_callers(home: GrassHome) -> None:
    folder = home.desk / "some where"
    folder.mkdir()
    seen = probe(home, cwd=folder, env={"MINE": "yes", "LANG": "xx"})
    assert seen["cwd"] == str(folder)
    assert (seen["env"]["MINE"], seen["env"]["LANG"]) == ("yes", "xx")


def test_the_umask_is_the_callers(home: GrassHome) -> None:
    line = f"umask 0031; grass enqueue -- python {shlex.quote(str(home.desk))}/probe.py"
    id = int(home.shell(line).stdout)
    home.wait(id)
    assert json.loads(home.logs(id))["umask"] == 0o031


def test_nothing_leaks_from_the_shell_that_started_the_daemon(home: GrassHome) -> None:
    seen = probe(home)
    assert seen["descriptors"] == [0, 1, 2]
    assert seen["stdin"] == "/dev/null"
    assert seen["session"]
    assert seen["cwd"] == str(home.desk)
    assert seen["umask"] == _umask()
    assert "ODD" not in seen["env"]
    assert "GRASS_GPU" not in seen["env"]
    assert seen["env"]["GRASS_NAME"] == "probe.py"
    assert seen["env"]["CUDA_VISIBLE_DEVICES"] == ""


def test_the_daemon_itself_keeps_nothing_of_that_shell(home: GrassHome) -> None:
    pid = home.daemon_pid()
    process = Path(f"/proc/{pid}")
    assert os.readlink(process / "cwd") == "/"
    assert "Umask:\t0077" in (process / "status").read_text()
    environment = (process / "environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=9" not in environment
    assert not [one for one in environment if one.startswith(b"GRASS_ATTEMPT")]
    opened = {os.readlink(one) for one in (process / "fd").iterdir()}
    assert not [one for one in opened if one.endswith("/odd/open")]


def test_limits_are_those_of_a_login(home: GrassHome) -> None:
    found = parse_limits(printed(home, "--", "cat", "/proc/self/limits"))
    login = parse_limits(Path("/proc/1/limits").read_text())
    assert found[resource.RLIMIT_NOFILE][0] == 1024
    assert found[resource.RLIMIT_STACK][0] == login[resource.RLIMIT_STACK][0]


def test_no_signal_is_ignored_or_blocked(home: GrassHome) -> None:
    lines = printed(home, "--", "grep", "^Sig[BI]", "/proc/self/status").splitlines()
    # The two signals that glibc keeps to itself are ignored in all it spawns.
    own = 0b11 << (signal.SIGRTMIN - 3)
    assert [int(line.split()[1], 16) & ~own for line in lines] == [0, 0]


def test_the_program_is_looked_up_in_the_jobs_own_path(home: GrassHome) -> None:
    folder = home.desk / "tools"
    folder.mkdir()
    for where, word in ((folder, "path"), (home.desk, "directory")):
        (where / "tool").write_text(f"#!/bin/sh\necho from {word}\n")
        (where / "tool").chmod(0o755)
    path = f"{folder}:{home.environment['PATH']}"
    assert printed(home, "--", "tool") == "from directory\n"
    assert printed(home, "--env", f"PATH={path}", "--", "tool") == "from path\n"
    assert printed(home, "--", f"PATH={path}", "tool") == "from path\n"


def test_output_of_python_is_not_held_back(home: GrassHome) -> None:
    assert probe(home)["env"]["PYTHONUNBUFFERED"] == "1"
    chosen = probe(home, env={"PYTHONUNBUFFERED": ""})
    assert chosen["env"]["PYTHONUNBUFFERED"] == ""


def test_later_sources_of_environment_win(home: GrassHome) -> None:
    """Base, queue, what grass sets, --env, leading NAME=value words."""
    names = ("A", "B", "C", "GRASS_PROJECT", "D", "E")
    from_queue = [f"--env={name}=queue" for name in ("B", "C", "GRASS_PROJECT", "D")]
    home.ok("create-queue", "layers", *from_queue)
    line = "echo " + " ".join(f"${name}" for name in names)
    said = printed(
        home,
        "layers",
        "--env=C=option",
        "--env=E=option",
        "--",
        "E=word",
        "sh",
        "-c",
        line,
        env=dict.fromkeys(names, "caller"),
    )
    assert said.split() == ["caller", "queue", "option", "default", "queue", "word"]


def test_an_explicit_choice_of_gpus_wins(home: GrassHome) -> None:
    line = "echo $CUDA_VISIBLE_DEVICES"
    said = printed(home, "gpus", "-g", "1", "--env", "CUDA_VISIBLE_DEVICES=3", "--",
                   "sh", "-c", line)  # fmt: skip
    assert said == "3\n"
    assert printed(home, "--", "CUDA_VISIBLE_DEVICES=2", "sh", "-c", line) == "2\n"


def test_a_variable_named_alone_is_copied_from_the_caller(home: GrassHome) -> None:
    said = printed(home, "--env", "MINE", "--", "sh", "-c", "echo $MINE",
                   env={"MINE": "copied"})  # fmt: skip
    assert said == "copied\n"


def test_a_job_learns_what_it_got(home: GrassHome) -> None:
    request = "{gpu:2,cpu:1}"
    env = probe(home, "gpus", "--require", request, "--name", "learner",
                "--project", "school")["env"]  # fmt: skip
    assert env["GRASS_GPU"] == "0,1"
    assert env["GRASS_CPU"] == "0"
    assert env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert (env["GRASS_NAME"], env["GRASS_PROJECT"]) == ("learner", "school")
    assert env["GRASS_ATTEMPT"] == "1"
    assert env["GRASS_JOB_ID"].isdecimal()


def test_placeholders_are_replaced_everywhere(home: GrassHome) -> None:
    (home.desk / "unit0").mkdir()
    id = home.enqueue(
        "gpus", "-g", "1", "--name", "place", "--cwd", "unit{gpu}",
        "--env", "SEEN=on {gpu}", "--output", "{name}-{id}-{attempt}-{project}.txt",
        "--", "sh", "-c", "pwd; echo $SEEN {gpu} {id} ${gpu} {other} {}",
    )  # fmt: skip
    assert home.wait(id)["state"] == "succeeded"
    output = home.desk / f"place-{id}-1-default.txt"
    assert output.read_text().splitlines() == [
        f"{home.desk}/unit0",
        f"on 0 0 {id} {{other}} {{}}",
    ]


def test_raw_leaves_placeholders_alone(home: GrassHome) -> None:
    said = printed(home, "gpus", "-g", "1", "--raw", "--env", "SEEN={gpu}", "--", "sh",
                   "-c", "echo $SEEN {gpu} {id}")  # fmt: skip
    assert said == "{gpu} {gpu} {id}\n"


def test_a_brace_after_a_dollar_is_the_shells(home: GrassHome) -> None:
    said = printed(home, "gpus", "-g", "1", "gpu=mine; echo ${gpu} {gpu}")
    assert said == "mine 0\n"


def test_bytes_that_are_not_text_reach_the_job(home: GrassHome) -> None:
    word, name = b"caf\xe9 \xff\xfe", b"ODD_BYTES=\xe9"
    seen = probe(home, "--env", name, "...", word, "ünï")
    assert seen["argv"] == [word.hex(), "ünï".encode().hex()]
    said = printed(home, b"--env=B=\xe9", "--", "sh", "-c",
                   "printf %s \"$B\" | od -An -tx1")  # fmt: skip
    assert said.split() == ["e9"]


def test_a_shell_line_runs_in_bash(home: GrassHome) -> None:
    said = printed(home, "echo ${BASH_VERSION:+bash} && echo $((1+1))")
    assert said == "bash\n2\n"


def test_assignments_before_a_shell_line_are_environment(home: GrassHome) -> None:
    assert printed(home, "--", "X=7", "echo $X $X") == "7 7\n"


def test_a_job_enqueued_by_a_job_is_a_job_of_its_own(home: GrassHome) -> None:
    outer = home.enqueue(
        "gpus", "-g", "1", "--name", "outer", "--", "sh", "-c",
        "grass enqueue --name inner -- sh -c 'env | grep ^GRASS_'",
    )  # fmt: skip
    assert home.wait(outer)["state"] == "succeeded", home.logs(outer)
    inner = int(home.logs(outer))
    home.wait(inner)
    seen = dict(line.split("=", 1) for line in home.logs(inner).splitlines())
    assert "GRASS_GPU" not in seen
    assert (seen["GRASS_JOB_ID"], seen["GRASS_NAME"]) == (str(inner), "inner")


def test_pinned_jobs_stay_on_their_cores(home: GrassHome) -> None:
    seen = probe(home, "--pin", "-c", "1")
    assert seen["cpus"] == [int(seen["env"]["GRASS_CPU"])]
    assert probe(home, "-c", "1")["cpus"] == sorted(os.sched_getaffinity(0))


def test_a_long_command_and_environment_pass(home: GrassHome) -> None:
    word = "x" * 100_000
    seen = probe(home, "--env", f"LONG={word}", "...", word)
    assert seen["env"]["LONG"] == word
    assert seen["argv"] == [word.encode().hex()]


def test_a_job_dies_of_a_broken_pipe_as_in_a_shell(home: GrassHome) -> None:
    id = home.enqueue("yes | head -1; echo ${PIPESTATUS[0]}")
    home.wait(id)
    assert home.logs(id) == f"y\n{128 + signal.SIGPIPE}\n"


def _umask() -> int:
    said = subprocess.run(["sh", "-c", "umask"], capture_output=True, check=True)
    return int(said.stdout, 8)
