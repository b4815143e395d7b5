"""What a task leaves behind in its runner: put back, ended, or the runner's end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time

from .conversation import Daemon, alive
from .tasks import result, run


def pid() -> int:
    return os.getpid()


def test_variables_directory_and_handlers_are_of_each_attempt(daemon: Daemon) -> None:
    def spoils() -> None:
        os.environ["SPOILED"] = "yes"
        del os.environ["PATH"]
        os.chdir("/tmp")
        os.umask(0)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.alarm(1000)
        sys.setrecursionlimit(12345)
        gc.disable()
        gc.set_threshold(1)
        sys.stdout = None
        os.close(1)
        os.close(2)

    def looks() -> tuple[object, ...]:
        sys.stdout.write("seen\n")
        return (
            os.getpid(),
            os.environ.get("SPOILED"),
            "PATH" in os.environ,
            os.environ["GRASS_ATTEMPT"],
            os.getcwd(),
            os.umask(0),
            signal.getsignal(signal.SIGTERM),
            signal.alarm(0),
            sys.getrecursionlimit(),
            gc.isenabled(),
            gc.get_threshold(),
        )

    run(daemon, "a", looks)
    assert run(daemon, "b", spoils)["code"] == 0
    run(daemon, "c", looks)
    first, last = result(daemon, "a"), result(daemon, "c")
    assert first[:3] + first[4:] == last[:3] + last[4:]
    assert (first[3], last[3]) == ("a", "c")
    assert last[4:8] == (str(daemon.directory), 0o022, signal.SIG_DFL, 0)
    assert daemon.output("c").read_text() == "seen\n"


def test_what_a_task_leaves_is_ended_before_its_exit_is_told(daemon: Daemon) -> None:
    def leaves_child() -> tuple[int, int]:
        child = subprocess.Popen(["sleep", "1000"])
        return os.getpid(), child.pid

    def leaves_orphan() -> tuple[int, int]:
        words = ["/bin/sh", "-c", "setsid setsid sleep 1000 >/dev/null & echo $!"]
        told = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout
        return os.getpid(), int(told)

    for id, leaves in (("a", leaves_child), ("b", leaves_orphan)):
        exited = run(daemon, id, leaves)
        assert (exited["code"], exited["signal"]) == (0, None)
        runner, left = result(daemon, id)
        assert not alive(left)
        assert not alive(runner)


def test_a_runner_with_threads_left_leaves(daemon: Daemon) -> None:
    def leaves_thread() -> int:
        import threading

        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        return os.getpid()

    assert run(daemon, "a", leaves_thread)["code"] == 0
    assert not alive(result(daemon, "a"))


def test_a_runner_with_descriptors_left_leaves(daemon: Daemon) -> None:
    def listens() -> int:
        import socket

        vars(sys)["kept"] = socket.create_server(("127.0.0.1", 0))
        return os.getpid()

    assert run(daemon, "a", listens)["code"] == 0
    assert not alive(result(daemon, "a"))


def test_a_runner_with_another_descriptor_in_place_of_one_leaves(
    daemon: Daemon,
) -> None:
    def replaces() -> int:
        os.close(5)
        vars(sys)["kept"] = os.open(os.devnull, os.O_RDONLY), os.dup(1)
        os.close(vars(sys)["kept"][0])
        return os.getpid()

    assert run(daemon, "a", replaces)["code"] == 0
    assert not alive(result(daemon, "a"))


def test_a_runner_with_other_limits_leaves(daemon: Daemon) -> None:
    def limits() -> int:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, resource.RLIM_INFINITY))
        return os.getpid()

    assert run(daemon, "a", limits)["code"] == 0
    assert not alive(result(daemon, "a"))


def test_what_python_would_close_does_not_cost_the_runner(daemon: Daemon) -> None:
    def forgets() -> int:
        ring: list[object] = [open(os.devnull)]  # noqa: SIM115 -- left open
        ring.append(ring)
        return os.getpid()

    for id in "ab":
        assert run(daemon, id, forgets)["code"] == 0
    assert result(daemon, "a") == result(daemon, "b")


def test_a_task_that_forks_returns_once(daemon: Daemon) -> None:
    def forks() -> int:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return child

    assert run(daemon, "a", forks)["code"] == 0
    assert run(daemon, "b", pid)["code"] == 0
    assert result(daemon, "a") != 0


def test_a_task_that_closes_all_descriptors_ends_as_itself(daemon: Daemon) -> None:
    def closes() -> int:
        os.closerange(0, 100)
        for _ in range(8):
            os.open("/dev/null", os.O_RDWR)
        return os.getpid()

    assert run(daemon, "a", closes)["code"] == 0
    assert not alive(result(daemon, "a"))


def test_a_runner_that_grew_leaves(daemon: Daemon) -> None:
    def grows(name: str) -> int:
        kept = bytearray(600 << 20)
        for place in range(0, len(kept), 4096):
            kept[place] = 1
        vars(sys)[name] = kept
        return os.getpid()

    assert run(daemon, "a", grows, "kept")["code"] == 0
    assert not alive(result(daemon, "a"))
