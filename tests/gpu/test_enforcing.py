"""Shares of a real GPU that are enforced: by MPS, and what follows from a fault."""

import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from tests.gpu.gpu_home import HOLD, GpuHome
from tests.support.patience import until

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.daemon,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        shutil.which("nvidia-cuda-mps-control") is None, reason="there is no MPS here"
    ),
]

Note = Callable[[str, object], None]
HERE = Path(__file__).parent
QUARTER = ("-g", "0.25", "--enforce")
MANY = 64
LOOK_S = 15.0
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="no torch here")


def multiprocessors(home: GpuHome, job: int) -> int:
    return int(home.logs(job).split()[2])


def test_a_share_is_a_cap_on_multiprocessors(
    real: GpuHome, record_property: Note
) -> None:
    capped = real.hold(*QUARTER, mib=64)
    plain = real.hold("-g", "0.25", mib=64)
    seen, total = multiprocessors(real, capped), multiprocessors(real, plain)
    record_property("multiprocessors of a quarter", f"{seen} of {total}")
    assert 0.15 * total < seen < 0.3 * total


def test_a_job_above_its_memory_fails_alone_and_is_retried_with_more(
    real: GpuHome, record_property: Note
) -> None:
    neighbour = real.hold("--vram", "4G", "--enforce", mib=1024, busy=True)
    job = real.use("--vram", "4G", "--enforce", "--retries", "1", mib=5 * 1024)
    real.await_event("retried", job)
    # Between its attempts a job has no output.
    until(lambda: real.client.job(job)["pid"], "it never ran")
    until(lambda: real.logs(job), "it never held", lambda said: "holding" in said)
    first, second = real.client.job(job)["attempts"]
    record_property("above its memory", first["reason"])
    assert first["cause"] == "out-of-gpu-memory"
    assert sum(second["allocation"]["vram"].values()) == 6
    assert real.state(neighbour) == "running"


def test_a_fault_ends_neighbours_who_are_told_whose_it_was(
    real: GpuHome, record_property: Note
) -> None:
    victim = real.hold(*QUARTER, "--retries", "1", mib=64, busy=True)
    culprit = real.use(*QUARTER, mib=64, how=["fault"])
    faulty = real.wait(culprit)
    record_property("a fault", faulty["reason"])
    real.await_event("retried", victim)
    first = real.client.job(victim)["attempts"][0]
    record_property("its neighbour", f"{first['reason']}: {first['exit_code']}")
    assert first["reason"] == f"GPU fault of job {victim} or {culprit}"

    until(
        lambda: real.client.job(victim)["attempts"],
        "the neighbour was not started again",
        lambda attempts: len(attempts) == 2,
    )
    real.await_line(victim, "holding")


@needs_torch
def test_four_quarters_get_equal_parts(real: GpuHome, record_property: Note) -> None:
    go = real.desk / "go"
    words = (sys.executable, str(HERE / "multiply.py"), str(go), "6")
    jobs = [real.enqueue(*QUARTER, "--", *words) for _ in range(4)]
    seen = {number_after("ready", real.await_line(job, "ready")) for job in jobs}
    go.touch()
    real.wait(*jobs)
    counts = sorted(number_after("multiplied", real.logs(job)) for job in jobs)
    apart = 100 * (counts[-1] - counts[0]) / counts[-1]
    record_property("a quarter sees", f"{seen} multiprocessors")
    record_property(
        "four quarters, multiplications each", f"{counts}: {apart:.1f} % apart (bar 5)"
    )
    assert apart <= 5


def test_many_processes_cost_the_daemon_little(
    real: GpuHome, record_property: Note
) -> None:
    words = (sys.executable, HOLD, "64")
    jobs = real.enqueue_array(
        *("--require", "{vram:'1G'}", "--array", f"1-{MANY}"), "--", *words
    )
    for job in jobs:
        real.await_line(job, "holding")
    until(
        lambda: real.gpus()[0]["processes"], "unseen", lambda it: len(it) >= MANY, 60.0
    )
    # Past the seconds in which a young attempt is looked at more often.
    time.sleep(12)
    daemon = psutil.Process(real.daemon_pid())
    observed = [daemon, *daemon.children()]
    before = list(map(used_s, observed))
    time.sleep(LOOK_S)
    parts = [
        100 * (used_s(one) - was_s) / LOOK_S
        for one, was_s in zip(observed, before, strict=True)
    ]
    each = " + ".join(f"{part:.2f}" for part in parts)
    record_property(
        f"daemon and its reader, {MANY} processes on the GPU",
        f"{each} % of a core (bar 1, goal 0.3)",
    )
    assert sum(parts) < 1


def used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def number_after(word: str, text: str) -> int:
    line = next(line for line in text.splitlines() if line.startswith(word))
    return int(line.split()[1])
