"""Looks at the machine that attempts start and end in the middle of."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grass.devices.readings import GpuProcess, GpuReading
from grass.keeper.process_table import start_ticks
from grass.link.messages import KnownUnits
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.worker.core.usage.samples import Sample, strangers
from grass.worker.shell.usage.process_use import AttemptProcesses
from grass.worker.shell.usage.sampler import Sampler, boot_s
from tests.worker.gpu_values import HALF, reading
from tests.worker.lab import FIRST, SECOND, Lab, ready

Process = subprocess.Popen[bytes]


class OneGpu:
    """A GPU with one process on it; something may happen after it was read."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.fault: str | None = None
        self.afterwards: Callable[[], object] = lambda: None

    async def read(self) -> tuple[GpuReading, ...]:
        seen = reading(GpuProcess(self._pid, 8 * GIB), used=9 * GIB, fault=self.fault)
        self.afterwards()
        return (seen,)


@pytest.fixture
def process() -> Iterator[Process]:
    sleeping = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True
    )
    yield sleeping
    sleeping.kill()
    sleeping.wait()


@pytest.fixture
def lab() -> Lab:
    lab = ready()
    lab.core.now_s = boot_s()
    lab.broker(KnownUnits({"gpu": {"0": WHOLE}, "vram": {"0": 80 * WHOLE}}))
    return lab


@pytest.fixture
def gpu(process: Process) -> OneGpu:
    return OneGpu(process.pid)


@pytest.fixture
def sampler(lab: Lab, gpu: OneGpu, tmp_path: Path) -> Iterator[Sampler]:
    sampler = Sampler(lab.core.usage, gpu, str(tmp_path))
    sampler._processes = AttemptProcesses(os.getpid())
    yield sampler
    sampler._processes.close()
    sampler._thread.shutdown()


def start(lab: Lab, process: Process, name: str = FIRST, age_s: float = 0.0) -> None:
    lab.start(name, HALF)
    lab.keeper(
        "started",
        id=name,
        pid=process.pid,
        ticks=start_ticks(process.pid),
        at=5,
        since=boot_s() - age_s,
    )


def end(lab: Lab, process: Process) -> None:
    process.kill()
    process.wait()
    lab.keeper("exited", id=FIRST, signal=9)


def looked(sampler: Sampler, lab: Lab) -> Sample:
    async def look() -> None:
        sampler.look_soon()
        await sampler.look()

    asyncio.run(look())
    return lab.core.usage.sample


def test_a_process_that_starts_on_a_gpu_is_its_attempts_at_once(
    sampler: Sampler, lab: Lab, process: Process
) -> None:
    start(lab, process)

    sample = looked(sampler, lab)

    assert strangers(sample) == {"0": []}
    assert sample.attempts[FIRST].gpu_memory == {"0": 8 * GIB}


def test_what_an_attempt_held_that_ends_during_a_look_is_free(
    sampler: Sampler, lab: Lab, process: Process, gpu: OneGpu
) -> None:
    start(lab, process, age_s=20.0)
    looked(sampler, lab)
    gpu.afterwards = lambda: end(lab, process)

    sample = looked(sampler, lab)

    assert strangers(sample) == {"0": []}
    assert sample.gpus[0].used == GIB
    gpu.afterwards = lambda: None
    # If the driver still lists it then, it does hold the memory.
    (listed,) = strangers(looked(sampler, lab))["0"]
    assert listed.pid == process.pid


def test_what_a_process_holds_that_gave_its_units_back_is_not_free(
    sampler: Sampler, lab: Lab, process: Process, gpu: OneGpu
) -> None:
    start(lab, process, age_s=20.0)
    looked(sampler, lab)
    gpu.afterwards = lambda: lab.keeper("exited", id=FIRST, code=0)

    (stranger,) = strangers(looked(sampler, lab))["0"]

    assert (stranger.pid, stranger.memory) == (process.pid, 8 * GIB)


def test_a_gpu_that_does_not_answer_keeps_no_process_that_has_ended(
    sampler: Sampler, lab: Lab, process: Process, gpu: OneGpu
) -> None:
    start(lab, process, age_s=20.0)
    looked(sampler, lab)
    end(lab, process)
    gpu.fault = "it does not answer in time"

    for _ in range(2):
        sample = looked(sampler, lab)

        assert (sample.gpus[0].processes, sample.gpus[0].used) == ((), GIB)


def test_gpus_are_looked_at_again_soon_after_an_attempt_on_one_ended(
    sampler: Sampler, lab: Lab, process: Process
) -> None:
    start(lab, process, age_s=20.0)
    looked(sampler, lab)
    end(lab, process)

    pause_s = lab.core.usage.pause_s(boot_s(), has_gpus=True)

    assert pause_s is not None
    assert pause_s <= 1.0


def test_a_look_at_young_attempts_forgets_no_process_of_the_others(
    sampler: Sampler, lab: Lab
) -> None:
    tree = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    young = subprocess.Popen(["sleep", "60"], start_new_session=True)
    assert tree.stdout is not None
    child = int(tree.stdout.readline())
    try:
        start(lab, tree, age_s=20.0)
        assert looked(sampler, lab).attempts[FIRST].pids == {tree.pid, child}
        start(lab, young, SECOND, age_s=1.0)
        for _ in range(3):
            looked(sampler, lab)
        lab.core.usage._all_at = float("-inf")

        # The next look at all processes of the machine is not due yet.
        sampler._processes._look_at = float("inf")  # type: ignore[union-attr]

        assert looked(sampler, lab).attempts[FIRST].pids == {tree.pid, child}
    finally:
        for one in (child, young.pid, tree.pid):
            os.kill(one, 9)
        young.wait()
        tree.wait()
        tree.stdout.close()
