"""Shares of a real GPU that are enforced: by MPS, and what follows from a fault."""

import shutil
from collections.abc import Callable

import pytest

from tests.gpu.gpu_home import GpuHome
from tests.support.patience import until

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.daemon,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        shutil.which("nvidia-cuda-mps-control") is None, reason="there is no MPS here"
    ),
]

Note = Callable[[str, object], None]
QUARTER = ("-g", "0.25", "--enforce")


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
    assert first["reason"] == f"GPU fault of job {culprit}"

    def holds_again() -> bool:
        attempts = real.client.job(victim)["attempts"]
        return len(attempts) == 2 and "holding" in real.logs(victim)

    until(holds_again, "the neighbour was not started again", bool)
