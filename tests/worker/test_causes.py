"""Why an attempt died, where its exit alone does not tell."""

import pytest

from grass.keeper.protocol import ExitEntry
from grass.worker.core.causes import OUT_OF_MEMORY, with_cause
from tests.worker.gpu_values import HALF, reading, running
from tests.worker.lab import FIRST, ready

FAULTY = reading(fault="it has fallen off the bus")


@pytest.mark.parametrize(
    ("ended", "out_of_memory", "reason"),
    [
        ({"signal": 9}, True, OUT_OF_MEMORY),
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
    assert with_cause(entry, {}, (), out_of_memory=out_of_memory).reason == reason


def test_a_failure_on_a_faulty_gpu_names_the_fault() -> None:
    failed = ExitEntry("exited", "a", code=1)
    told = "gpu 0: it has fallen off the bus"
    assert with_cause(failed, HALF, (FAULTY,), out_of_memory=False).reason == told
    assert with_cause(failed, {}, (FAULTY,), out_of_memory=False).reason is None
    done = ExitEntry("exited", "a", code=0)
    assert with_cause(done, HALF, (FAULTY,), out_of_memory=False).reason is None


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
