"""Memory that is measured, not declared: jobs packed on a real GPU by it."""

import re
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.gpu.gpu_home import GpuHome
from tests.support.patience import until

pytestmark = [pytest.mark.gpu, pytest.mark.daemon, pytest.mark.timeout(400)]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="no torch here")

Note = Callable[[str, object], None]
HERE = Path(__file__).parent
TRAIN = (sys.executable, str(HERE / "train_small.py"))
ALONE_S = 17.0
TRAININGS, BY_ONE = 20, 3
"""How many are packed, and how many are run one at a time to know what that takes."""

TOO_MUCH = """
import torch
blocks = [torch.ones(2**28, device="cuda") for _ in range(5)]  # A GiB each.
torch.cuda.synchronize()
print("had it")
"""


def test_a_profile_is_known_while_the_first_still_runs(
    real: GpuHome, record_property: Note
) -> None:
    words = ("--vram", "auto", "--type", "holder")
    first = real.hold(*words, mib=2048)
    began_s = time.monotonic()
    second = real.enqueue(*words, "--", "true")
    assert "profile" in real.reason(second)
    assert real.wait(second)["state"] == "succeeded"
    assert real.state(first) == "running"
    record_property(
        "provisional profile after", f"{time.monotonic() - began_s:.1f} s of flat use"
    )
    record_property("its type reserves", told(real, "holder"))


@needs_torch
def test_a_job_that_ran_out_of_memory_runs_again_with_more(
    real: GpuHome, record_property: Note
) -> None:
    (real.desk / "large.py").write_text(TOO_MUCH)
    job = real.enqueue(
        *("--vram", "4G", "--enforce", "--retries", "2"),
        *("--", sys.executable, "large.py"),
    )
    ended = real.wait(job)
    assert ended["state"] == "succeeded", real.logs(job)
    first, *_, last = ended["attempts"]
    assert first["cause"] == "out-of-gpu-memory"
    given = [sum(one["allocation"]["vram"].values()) for one in (first, last)]
    record_property("after too little memory", f"{given[0]} GiB, then {given[1]} GiB")
    assert given[0] < given[1]


@needs_torch
def test_twenty_trainings_of_which_nothing_is_declared(
    real: GpuHome, record_property: Note
) -> None:
    steps = calibrated(real)
    by_one_s = makespan_s(real, BY_ONE, "-g", "1", steps=steps) / BY_ONE * TRAININGS
    record_property(
        f"{TRAININGS} trainings one at a time",
        f"{by_one_s:.0f} s ({BY_ONE} were run, {by_one_s / TRAININGS:.1f} s each)",
    )
    words = ("--vram", "auto", "--type", "small")
    for what in ("nothing known", "profile known"):
        packed_s = makespan_s(real, TRAININGS, *words, steps=steps)
        times = by_one_s / packed_s
        record_property(
            f"the same with `--vram auto`, {what}",
            f"{packed_s:.0f} s: {times:.1f} times shorter (bar 4, goal 5.5)",
        )
        assert times >= 4
    record_property("a training reserves", told(real, "small"))


def calibrated(home: GpuHome) -> int:
    """Return with how many steps a training alone takes as long as it should."""
    job = home.enqueue("-g", "1", "--", *TRAIN, "3000")
    assert home.wait(job)["state"] == "succeeded", home.logs(job)
    found = re.search(r"began (\S+) step (\S+)", home.logs(job))
    assert found is not None
    ended = home.client.job(job)
    around_s = ended["ran_s"] - 2999 * float(found[2])
    return int((ALONE_S - around_s) / float(found[2]))


def makespan_s(home: GpuHome, count: int, *options: str, steps: int) -> float:
    """Run trainings; return how long it took until the last had ended."""
    began_s = time.monotonic()
    jobs = home.enqueue_array(
        *(*options, "--array", f"1-{count}"), "--", *TRAIN, str(steps)
    )
    home.wait(*jobs)
    lasted_s = time.monotonic() - began_s
    for job in jobs:
        assert home.state(job) == "succeeded", home.logs(job)
    return lasted_s


def told(home: GpuHome, job_type: str) -> str:
    """Return why a type is given what it is given."""
    lines = home.ok("profile", "list").splitlines()
    return until(lambda: next(one for one in lines if one.startswith(job_type)), "none")
