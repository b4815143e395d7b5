"""Jobs that ended for want of memory are queued again with more of it."""

from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import a_job, a_spec

from grass.broker.core.attempts.more_memory import larger_requests
from grass.broker.core.attempts.outcomes import retried
from grass.broker.core.calls import ImportProfiles
from grass.link.messages import Exited, Start
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.jobs.endings import OUT_OF_GPU_MEMORY, OUT_OF_HOST_MEMORY
from grass.model.jobs.lifecycle import JobState
from grass.model.resources import request_from
from grass.model.usage.attempt_usage import ResourceUse, UnitUse
from grass.model.usage.profiles import MeasuredRun, Profile

GPU = {"cause": OUT_OF_GPU_MEMORY}
OTHER = f"{'a' * 16}.9.1"
UNITS = "{cpu:8, ram:[32], gpu:1, vram:{'0':40}}"


@pytest.fixture
def gpus(broker: Brokerage) -> Brokerage:
    broker.found = UNITS
    broker.hello()
    return broker


@pytest.mark.parametrize(
    ("asked", "held_gib", "times", "larger"),
    [
        ("{vram:8}", 8, 0, ["{vram:12}", "{gpu:1}"]),
        ("{vram:8}", 8, 1, ["{gpu:1}"]),
        ("{gpu:0.5}", 20, 0, ["{gpu:0.5, vram:30}", "{gpu:1}"]),
        ("{gpu:0.5, vram:10}", 10, 2, ["{gpu:1}"]),
        ("{gpu:1}", 40, 0, []),
        ("{gpu:2}", 40, 0, []),
        ("{gpu:1.5}", 40, 0, []),
    ],
)
def test_half_as_much_again_and_then_a_whole_gpu(
    asked: str, held_gib: int, times: int, larger: list[str]
) -> None:
    spec = a_spec(request=request_from(asked), short_of_memory=times)
    held = {"vram": {"0": held_gib * WHOLE}}
    found = list(larger_requests(spec, held, OUT_OF_GPU_MEMORY))
    assert found == [request_from(one) for one in larger]


def test_a_job_gets_more_until_it_has_a_whole_gpu(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{vram:8}", retries=9)
    held = []
    for _ in range(3):
        gpus.exit(job, 1, **GPU)
        held.append(gpus.said(Start)[0].allocation)
    assert [one["vram"]["0"] // WHOLE for one in held] == [12, 40, 40]
    gpus.exit(job, 1, **GPU)
    found = gpus.job(job)
    assert found.job.state is JobState.FAILED
    assert {one.cause for one in found.attempts} == {OUT_OF_GPU_MEMORY}


def test_a_job_whose_memory_is_learned_gets_a_whole_gpu_too(gpus: Brokerage) -> None:
    asked: dict[str, Any] = {"auto_vram": True, "request": (), "job_type": "fit"}
    known = MeasuredRun(1, 0, 4 * GIB - 256 * 2**20)
    gpus.call(ImportProfiles(ME, [Profile("fit", "", [known], 1)]))
    job = gpus.enqueue(**asked, retries=3)
    held = [gpus.said(Start)[-1].allocation["vram"]["0"] / WHOLE]
    for _ in range(3):
        gpus.exit(job, 1, **GPU)
        held.append(gpus.said(Start)[-1].allocation["vram"]["0"] / WHOLE)
    assert held == [4, 6, 40, 40]
    # What it needs is learned all the same.
    gpus.exit(job, 0, peak=ResourceUse(GIB, gpus={"0": UnitUse(30 * GIB)}))
    assert gpus.state.profiles.of("fit")[""].samples[-1].peak == 30 * GIB


def test_what_no_gpu_has_is_not_asked_for(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{vram:30}", retries=1)
    gpus.exit(job, 1, **GPU)
    (start,) = gpus.said(Start)
    assert start.allocation["gpu"] == {"0": WHOLE}


def test_a_victim_is_queued_again_as_it_was_and_loses_no_retry(
    gpus: Brokerage,
) -> None:
    job = gpus.enqueue(require="{vram:8}", retries=1)
    for _ in range(3):
        gpus.exit(job, 1, **GPU, blamed=OTHER, reason="out of GPU memory: job 9")
        (start,) = gpus.said(Start)
        assert start.allocation["vram"] == {"0": 8 * WHOLE}
        assert gpus.job(job).job.failures == 0
    gpus.exit(job, 1, **GPU, blamed=OTHER)
    assert gpus.job_state(job) is JobState.FAILED


def test_memory_of_the_machine_grows_too(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{ram:8}", retries=2)
    gpus.exit(job, None, signal=9, cause=OUT_OF_HOST_MEMORY)
    (start,) = gpus.said(Start)
    assert start.allocation["ram"] == {"0": 12 * WHOLE}


def test_without_retries_there_is_one_attempt(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{vram:8}")
    gpus.exit(job, 1, **GPU, blamed=OTHER)
    assert gpus.job_state(job) is JobState.FAILED


@pytest.mark.parametrize(
    ("how", "again"), [(GPU, True), ({"cause": OUT_OF_HOST_MEMORY}, True), ({}, False)]
)
def test_retry_on_may_name_want_of_memory(how: dict[str, Any], again: bool) -> None:
    spec = a_spec(retries=1, retry_on=("out-of-memory",))
    ended = Exited("x", 1, 1, **how)
    assert retried(a_job(), spec, JobState.FAILED, ended) is again


def test_another_request_by_hand_counts_anew(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{vram:8}", retries=1)
    gpus.exit(job, 1, **GPU)
    gpus.exit(job, 0)
    gpus.rerun(job, request=request_from("{vram:8}"))
    assert gpus.state.specs[gpus.state.jobs[job].spec].short_of_memory == 0
