"""Real processes: which attempt they belong to, and what they use."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from grass.keeper.process_table import start_ticks
from grass.worker.core.usage.samples import RunningAttempt
from grass.worker.shell.usage.process_use import AttemptProcesses
from tests.support.patience import until

Job = tuple[subprocess.Popen[str], int]
CHILD = """
import os, sys, time
holding = bytearray(b"x" * (50 << 20))
if os.fork() == 0:
    os.setsid()
    more = bytearray(b"x" * (30 << 20))
    print("ready", os.getpid(), flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass
time.sleep(60)
"""


@pytest.fixture
def job() -> Iterator[Job]:
    """Give a main process that has a busy child in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline().split()[1])
    try:
        yield process, child
    finally:
        os.kill(child, 9)
        process.kill()
        process.wait()
        process.stdout.close()


def attempt(pid: int) -> RunningAttempt:
    ticks = start_ticks(pid)
    assert ticks is not None
    return RunningAttempt(pid, ticks, 1.0)


def test_memory_and_processor_time_of_all_processes_count(job: Job) -> None:
    process, child = job
    processes = AttemptProcesses(os.getpid())
    attempts = {"a": attempt(process.pid), "b": attempt(os.getppid())}

    use = until(
        lambda: processes.read(attempts, attempts, ())["a"],
        "its child used no processor time",
        lambda use: use.cpu_s > 0.2,
    )

    assert use.pids == {process.pid, child}
    assert use.memory > 80 << 20
    processes.close()


def test_a_process_on_a_gpu_is_found_at_once(job: Job) -> None:
    process, child = job
    processes = AttemptProcesses(os.getpid(), clock=lambda: 0.0)
    attempts = {"a": attempt(process.pid)}
    # No look at all processes is due.
    processes._look_at = 1.0

    assert processes.read(attempts, attempts, ())["a"].pids == {process.pid}
    assert processes.read(attempts, attempts, (child, 1))["a"].pids == {
        process.pid,
        child,
    }
    processes.close()


def test_processor_time_does_not_fall_when_a_process_has_ended(job: Job) -> None:
    process, _ = job
    processes = AttemptProcesses(os.getpid())
    attempts = {"a": attempt(process.pid)}
    before = until(
        lambda: processes.read(attempts, attempts, ())["a"].cpu_s,
        "its child used no processor time",
        lambda cpu_s: cpu_s > 0.2,
    )

    os.kill(process.pid, 9)
    process.wait()

    assert processes.read(attempts, attempts, ())["a"].cpu_s >= before
    processes.close()


LOADERS = """
import mmap, os, time
MIB = 1 << 20
data = mmap.mmap(-1, 200 * MIB, flags=mmap.MAP_PRIVATE)
data.write(b"x" * (200 * MIB))
for number in range(4):
    if os.fork() == 0:
        # Each writes to some of what it has inherited, and has some more.
        data[: 20 * MIB] = b"y" * (20 * MIB)
        more = bytearray(b"z" * (10 * MIB))
        # One write: `print` makes two of it where Python does not buffer.
        os.write(1, b"ready\\n")
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""


def test_pages_that_forked_processes_have_in_common_count_once() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LOADERS],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Without time, a walk is always due.
    processes = AttemptProcesses(os.getpid(), clock=lambda: 0.0)
    try:
        assert process.stdout is not None
        with process.stdout as said:
            for _ in range(4):
                assert said.readline() == "ready\n"
        attempts = {"a": attempt(process.pid)}

        def memory() -> int:
            return processes.read(attempts, attempts, ())["a"].memory >> 20

        assert 200 < memory() < 250
        until(memory, "no walk is counted", lambda it: it > 250)
        measured = [memory() for _ in range(5)]
        assert all(200 + 4 * 30 - 5 < each < 400 for each in measured), measured
    finally:
        processes.close()
        os.killpg(process.pid, 9)
        process.wait()


def test_what_a_runner_used_before_its_attempt_does_not_count(job: Job) -> None:
    process, _child = job
    processes = AttemptProcesses(os.getpid())
    started = start_ticks(process.pid) or 0
    # It began long before the attempt, which is a tenth of a second old.
    handed = RunningAttempt(process.pid, started - 500, 0.1)

    def used() -> float:
        return processes.read({"a": handed}, ["a"], [])["a"].cpu_s

    assert used() == 0.0
    until(used, "the attempt uses nothing", lambda seconds: seconds > 0.1)
    processes.close()
