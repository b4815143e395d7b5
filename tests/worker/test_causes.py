"""Why an attempt died, where its exit alone does not tell."""

import pytest

from grass.keeper.exit_reasons import MEMORY_LIMIT
from grass.keeper.protocol import ExitEntry, Usage
from grass.link.messages import Exited, KnownUnits
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.jobs.endings import GPU_FAULT, OUT_OF_GPU_MEMORY, OUT_OF_HOST_MEMORY
from grass.model.usage.attempt_usage import ResourceUse, UnitUse
from grass.model.worker import Unit
from grass.worker.core.causes import OUT_OF_MEMORY, Evidence, cause_of
from grass.worker.core.failure_messages import (
    tells_of_gpu_fault,
    tells_of_no_gpu_memory,
)
from grass.worker.core.mps_limits import MpsPlace
from grass.worker.core.usage.overruns import Overrun
from tests.worker.gpu_values import HALF, reading, running
from tests.worker.lab import FIRST, SECOND, THIRD, Lab, ready

FAULTY = reading(fault="it has fallen off the bus")


@pytest.mark.parametrize(
    ("ended", "out_of_memory", "reason"),
    [
        ({"signal": 9}, True, OUT_OF_MEMORY),
        ({"code": 137}, True, OUT_OF_MEMORY),
        ({"signal": 9}, False, None),
        ({"signal": 9, "reason": "time limit"}, True, "time limit"),
        ({"signal": 11}, True, None),
        ({"code": 0}, True, None),
    ],
)
def test_only_a_kill_that_grass_did_not_send_is_for_want_of_memory(
    ended: dict[str, object], out_of_memory: bool, reason: str | None
) -> None:
    entry = ExitEntry("exited", "a", **ended)  # type: ignore[arg-type]
    found = cause_of(entry, {}, Evidence(out_of_memory=out_of_memory)).reason
    assert (found or entry.reason) == reason


def test_a_failure_on_a_faulty_gpu_names_the_fault() -> None:
    failed = ExitEntry("exited", "a", code=1)
    told = "gpu 0: it has fallen off the bus"
    faulty = Evidence((FAULTY,))
    assert cause_of(failed, HALF, faulty).reason == told
    assert cause_of(failed, {}, faulty).reason is None
    done = ExitEntry("exited", "a", code=0)
    assert cause_of(done, HALF, faulty).reason is None


def test_a_kill_of_the_kernel_just_now_is_the_reason_of_an_exit() -> None:
    lab = ready()
    running(lab)
    lab.core.usage.oom_kills(3, 100.0)
    lab.core.usage.oom_kills(4, 101.0)
    # A look has seen it before the exit came.
    lab.core.usage.oom_kills(4, 101.1)
    lab.core.now_s = 101.2

    (exited,) = lab.keeper("exited", id=FIRST, signal=9).to_broker

    assert exited.reason == OUT_OF_MEMORY


@pytest.mark.parametrize(
    "said",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: CUDA error: out of memory",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while",
        "cudaErrorMemoryAllocation: out of memory",
        "HIP out of memory. Tried to allocate",
        "failed to allocate 2.0G: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ],
)
def test_libraries_tell_that_a_gpu_has_no_memory_left(said: str) -> None:
    assert tells_of_no_gpu_memory(f"epoch 3\n{said}\n".encode())
    assert not tells_of_no_gpu_memory(b"epoch 3\nKeyError: 'memory'\n")


OVERRUN = Overrun(SECOND, "0", 12 * GIB, 8 * GIB)
OWN = Overrun(FIRST, "0", 12 * GIB, 8 * GIB)
PEAK = ResourceUse(gpus={"0": UnitUse(int(11.2 * GIB))})


@pytest.mark.parametrize(
    ("peak", "overruns", "reason", "blamed"),
    [
        (PEAK, (), "out of GPU memory (asked 40 GiB, peak 11.2 GiB)", ""),
        (None, (), "out of GPU memory (asked 40 GiB)", ""),
        (PEAK, (OWN,), "out of GPU memory (asked 40 GiB, peak 11.2 GiB)", ""),
        (PEAK, (OWN, OVERRUN), "out of GPU memory (asked 40 GiB, peak 11.2 GiB)", ""),
        (
            PEAK,
            (OVERRUN,),
            "out of GPU memory: job 2 on gpu 0 used 12 GiB of 8 GiB",
            SECOND,
        ),
        (PEAK, (OVERRUN._replace(unit="1"),), "out of GPU memory (asked 40 GiB,", ""),
    ],
)
def test_one_that_overran_is_blamed_and_not_its_victim(
    peak: ResourceUse | None, overruns: tuple[Overrun, ...], reason: str, blamed: str
) -> None:
    failed = ExitEntry("exited", FIRST, code=1)
    known = Evidence(no_gpu_memory=True, peak=peak, overruns=overruns)
    found = cause_of(failed, HALF, known)
    assert found.word == OUT_OF_GPU_MEMORY
    assert (found.reason or "").startswith(reason)
    assert found.blamed == blamed


def test_an_exit_tells_its_cause_once_the_end_of_the_output_is_read() -> None:
    lab = ready()
    lab.core.from_broker(KnownUnits({"gpu": {"0": WHOLE}, "vram": {"0": 80 * WHOLE}}))
    lab.start(allocation=HALF)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5, since=1.0)
    failed = ExitEntry("exited", FIRST, code=1)

    assert lab.core.usage.telling_files(failed) == ["/out/p/n/1/1.log"]
    lab.core.usage.output_ended(FIRST, b"CUDA out of memory")
    (exited,) = lab.keeper("exited", id=FIRST, code=1).to_broker

    assert (exited.cause, exited.exit_code) == (OUT_OF_GPU_MEMORY, 1)
    assert exited.reason == "out of GPU memory (asked 40 GiB)"
    assert lab.core.usage.telling_files(failed) == []


@pytest.mark.parametrize(
    "said",
    [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "CUDA error: unspecified launch failure",
        "CUDA_ERROR_MPS_CLIENT_TERMINATED",
        "the MPS client has been terminated by the server",
    ],
)
def test_libraries_tell_of_a_fault(said: str) -> None:
    assert tells_of_gpu_fault(said.encode())
    assert not tells_of_gpu_fault(b"FileNotFoundError: data.csv")


def sharing_a_gpu(*names: str) -> Lab:
    lab = ready()
    lab.core.from_broker(KnownUnits({"gpu": {"0": WHOLE}, "vram": {"0": 80 * WHOLE}}))
    quarter = {"gpu": {"0": WHOLE // 4}, "vram": {"0": 20 * WHOLE}}
    gpu = Unit(WHOLE, {"uuid": "GPU-a"})
    lab.core.around = lab.core.around._replace(gpus={"0": gpu}, mps=MpsPlace("p", "/m"))
    for name in names:
        lab.start(name, quarter, enforce="warn")
    return lab


def reason_of_fault(lab: Lab, name: str, at_s: float) -> str | None:
    """End an attempt with a fault of its GPU."""
    assert lab.core.usage.output_ended(name, b"CUDA_ERROR_ILLEGAL", at_s) == "0"
    (exited,) = lab.keeper("exited", id=name, code=1).to_broker
    assert isinstance(exited, Exited)
    assert exited.cause == GPU_FAULT
    return exited.reason


def test_a_fault_may_be_that_of_any_client_which_was_there() -> None:
    lab = sharing_a_gpu(FIRST, SECOND, THIRD)
    assert reason_of_fault(lab, SECOND, 10.0) == "GPU fault of job 1, 2 or 3"
    assert reason_of_fault(lab, FIRST, 11.0) == "GPU fault of job 1, 2 or 3"
    # It was idle, and hears of it when it next calls CUDA.
    assert reason_of_fault(lab, THIRD, 1000.0) == "GPU fault of job 1, 2 or 3"


def test_the_fault_of_a_client_that_was_alone_is_its_own() -> None:
    lab = sharing_a_gpu(FIRST)
    own = "GPU fault: the end of its output says more"
    assert reason_of_fault(lab, FIRST, 10.0) == own


def test_a_client_that_failed_just_before_may_have_caused_a_fault() -> None:
    lab = sharing_a_gpu(FIRST, SECOND)
    lab.core.now_s = 10.0
    lab.keeper("exited", id=FIRST, code=134)
    assert reason_of_fault(lab, SECOND, 11.0) == "GPU fault of job 1 or 2"


def test_a_client_that_failed_before_another_began_has_not_caused_its_fault() -> None:
    lab = sharing_a_gpu(FIRST)
    lab.core.now_s = 10.0
    lab.keeper("exited", id=FIRST, code=134)
    lab.core.now_s = 10.5
    lab.start(SECOND, {"gpu": {"0": WHOLE // 4}}, enforce="warn")
    lab.keeper("started", id=SECOND, pid=7, since=10.5)
    own = "GPU fault: the end of its output says more"
    assert reason_of_fault(lab, SECOND, 11.0) == own


def test_an_end_at_the_limit_of_its_cgroup_is_for_want_of_memory() -> None:
    ended = ExitEntry("exited", FIRST, signal=9, reason=MEMORY_LIMIT)
    known = Evidence(peak=ResourceUse(8 * GIB))
    found = cause_of(ended, {"ram": {"0": 8 * WHOLE}}, known)
    assert found.word == OUT_OF_HOST_MEMORY
    assert found.reason == "out of memory (asked 8 GiB, peak 8 GiB)"


def test_the_peak_of_a_short_life_is_what_the_kernel_counted() -> None:
    counted = Usage(0.1, 0.1, 7 * GIB)
    ended = ExitEntry("exited", FIRST, signal=9, reason=MEMORY_LIMIT, rusage=counted)
    found = cause_of(ended, {"ram": {"0": 8 * WHOLE}}, Evidence())
    assert found.reason == "out of memory (asked 8 GiB, peak 7 GiB)"
