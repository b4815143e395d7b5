"""Programs that cannot start: one clear sentence, and never an invented exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.nobody import other_home, run_as_nobody

from .conversation import Daemon, Entry

__all__ = ["other_home"]

KNOCK = """
import os, socket, sys
os.chdir(sys.argv[1])
channel = socket.socket(socket.AF_UNIX)
channel.connect("keeper.sock")
try:
    channel.sendall(b'{"v": "hello"}\\n')
    print(channel.recv(100))
except ConnectionError:
    print(b"")
"""

ways = pytest.mark.parametrize("nice", [0, 1], ids=["fast", "careful"])


def reason_of(exited: Entry) -> str:
    assert (exited["code"], exited["signal"], exited["lost"]) == (None, None, False)
    reason: str = exited["reason"]
    assert reason.startswith("could not start: ")
    return reason.removeprefix("could not start: ")


@ways
def test_program_that_does_not_exist(daemon: Daemon, tmp_path: Path, nice: int) -> None:
    exited = daemon.run("a", "nosuch", nice=nice)
    assert reason_of(exited) == f"program `nosuch` not found in PATH or {tmp_path}"
    exited = daemon.run("b", "/no/such", nice=nice)
    assert reason_of(exited) == "program `/no/such` not found"


@ways
def test_program_that_is_not_executable(
    daemon: Daemon, tmp_path: Path, nice: int
) -> None:
    (tmp_path / "plain-text").write_text("echo\n")
    exited = daemon.run("a", "plain-text", nice=nice)
    assert reason_of(exited) == "`./plain-text` is not executable"
    assert "not executable" in reason_of(daemon.run("b", "/tmp", nice=nice))


@ways
def test_script_without_an_interpreter(
    daemon: Daemon, tmp_path: Path, nice: int
) -> None:
    script = tmp_path / "script"
    script.touch(0o755)
    script.write_text("#!/no/such/interpreter\n")
    exited = daemon.run("a", "./script", nice=nice)
    assert reason_of(exited) == "the interpreter of `./script` was not found"
    script.write_text("neither this\n")
    exited = daemon.run("b", "./script", nice=nice)
    assert "neither a program nor a script" in reason_of(exited)


@ways
def test_directory_that_does_not_exist(daemon: Daemon, nice: int) -> None:
    exited = daemon.run("a", "true", cwd="/no/such", nice=nice)
    assert reason_of(exited) == "directory `/no/such`: no such file or directory"
    assert not daemon.output("a").exists()


@ways
def test_output_that_cannot_be_opened(daemon: Daemon, nice: int) -> None:
    exited = daemon.run("a", "true", output="/proc/no/such", nice=nice)
    assert reason_of(exited).startswith("output `/proc/no/such`: ")
    exited = daemon.run("b", "true", stderr="/", nice=nice)
    assert reason_of(exited) == "output `/`: is a directory"


@ways
def test_arguments_longer_than_the_kernel_allows(daemon: Daemon, nice: int) -> None:
    exited = daemon.run("a", "true", *["x" * 100_000] * 30, nice=nice)
    assert "longer than the kernel allows" in reason_of(exited)


@ways
def test_text_the_kernel_cannot_take(daemon: Daemon, nice: int) -> None:
    assert "null" in reason_of(daemon.run("a", "true", "a\0b", nice=nice))
    reason_of(daemon.run("b", "true", env={"A": "\ud800"}, nice=nice))
    reason_of(daemon.run("c", "true", env={"A=B": "x"}, nice=nice))
    reason_of(daemon.run("d", "true", cwd="a\0b", nice=nice))


def test_cores_that_do_not_exist(daemon: Daemon) -> None:
    assert "cores [100000]" in reason_of(daemon.run("a", "true", cpus=[100000]))


def test_exit_127_is_an_exit_code(daemon: Daemon) -> None:
    exited = daemon.shell("a", "nosuch")
    assert (exited["code"], exited["reason"]) == (127, None)


def test_refusal_leaks_no_descriptor(daemon: Daemon) -> None:
    before = len(os.listdir(f"/proc/{daemon.keeper}/fd"))
    for number in range(20):
        daemon.run(f"{number}", "nosuch", stderr=str(daemon.output("err")))
        daemon.run(f"{number}n", "nosuch", nice=1)
    assert len(os.listdir(f"/proc/{daemon.keeper}/fd")) == before


def test_another_user_is_not_listened_to(daemon: Daemon, other_home: Path) -> None:
    # Whatever the modes of the folders are that lead to the socket.
    words = [sys.executable, "-c", KNOCK, str(daemon.directory)]
    for folder in (daemon.directory, *list(daemon.directory.parents)[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    (daemon.directory / "keeper.sock").chmod(0o666)
    answer = run_as_nobody(other_home, words)
    assert (answer.stdout, answer.stderr) == ("b''\n", "")
